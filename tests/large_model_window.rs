//! A model of real size in the real window. It takes gigabytes, so that it is written by hand:
//!
//! `ponder-bench speed --shape qwen3-4b` or `tests/cpu_speed/models.py qwen3-4b` writes one of random weights.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::driver::Window;

/// Bytes of the process and of all that it started that are in memory.
fn resident(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("the app runs");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a size");
    let kilobytes: u64 = line
        .split_whitespace()
        .nth(1)
        .and_then(|word| word.parse().ok())
        .expect("a number");
    kilobytes * 1000
}

/// Adds a folder of models and starts a chat with the one of this name.
fn choose(window: &Window, folder: &Path, name: &str) {
    window.type_into("composer", "\u{e009},");
    window.switch_to("Settings");
    window.click("tab-models");
    window.wait_for("shared-folder");
    window.click("add-folder");
    window.type_into("folder-path", &format!("{}\u{e007}", folder.display()));
    window.wait_for("own-folder");
    window.switch_to("Ponder");
    window.click("model-picker");
    let choose = "const option = [...document.querySelectorAll('[role=option]')].find((option) => option.querySelector('.label').textContent === arguments[0]);
        if (option) option.click(); return Boolean(option)";
    window.wait_until("the model is offered", || {
        window.run(choose, json!([name])) == json!(true)
    });
}

#[test]
#[ignore = "PONDER_LARGE_MODEL names the folder of a model with gigabytes of weights"]
fn a_large_model_answers_stops_and_stays_small() {
    let model = PathBuf::from(std::env::var_os("PONDER_LARGE_MODEL").expect("PONDER_LARGE_MODEL names a folder"));
    let name = model
        .file_name()
        .and_then(|name| name.to_str())
        .expect("a name")
        .replace(['-', '_'], " ");
    let files = std::fs::read_dir(&model).expect("a folder").filter_map(Result::ok);
    let weights: u64 = files
        .filter(|file| file.path().extension().is_some_and(|kind| kind == "safetensors"))
        .map(|file| file.metadata().expect("a file").len())
        .sum();
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open_with(home.path(), &[]);
    let before = resident(window.process());
    choose(&window, model.parent().expect("a folder of models"), &name);

    let start = Instant::now();
    window.ask("Tell me about the sea.");
    window.wait_within(Duration::from_secs(120), "it answers", || !window.answer().is_empty());
    println!("report: first words after {:.1} s", start.elapsed().as_secs_f64());
    let grown = resident(window.process()).saturating_sub(before);
    println!(
        "report: {} MB more for {} MB of weights",
        grown / 1_000_000,
        weights / 1_000_000
    );
    assert!(grown < weights / 100 * 115 + 300_000_000, "{grown} bytes for {weights}");

    // The answer ends with the token that was being made.
    let start = Instant::now();
    window.click("stop");
    window.wait_until_answer_is("stopped");
    println!("report: stopped after {:.2} s", start.elapsed().as_secs_f64());
    let stopped = window.answer();
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(window.answer(), stopped);
    window.image("large-model");

    // The next question finds the model loaded, and a second one beside it.
    let start = Instant::now();
    window.ask("And about the wind?");
    window.wait_within(Duration::from_secs(60), "it answers again", || {
        !window.answer().is_empty() && window.answer() != stopped
    });
    println!(
        "report: the next first words after {:.1} s",
        start.elapsed().as_secs_f64()
    );
    window.click("stop");
    window.wait_until_answer_is("stopped");
    window.close();
}
