//! A quantized copy, made of a real model in the real Models window: its sheet, its progress, a stop, a failure, and a
//! chat with it. `PONDER_SMOLLM2` is the model's folder.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::images_window::invoke_in_settings;
use crate::models_window::press;
use crate::support::driver::Window;

/// Copies SmolLM2 to a folder of models; `None` without it.
pub fn float_model(models: &Path) -> Option<PathBuf> {
    let Some(from) = std::env::var_os("PONDER_SMOLLM2").map(PathBuf::from) else {
        println!("skipped: PONDER_SMOLLM2 names no folder of SmolLM2; `./dev test` provides one");
        return None;
    };
    let folder = models.join("SmolLM2-135M");
    fs::create_dir_all(&folder).expect("a folder");
    for entry in fs::read_dir(from)
        .expect("its files")
        .map(|entry| entry.expect("a file"))
    {
        let name = entry.file_name();
        if !name.to_string_lossy().starts_with('.') {
            fs::copy(entry.path(), folder.join(name)).expect("it is copied");
        }
    }
    Some(folder)
}

/// Opens the sheet of a local model, and waits for its formats.
pub fn open_sheet(window: &Window, reference: &str) {
    press(window, "model-row", reference, "model-menu");
    window.click("quantize");
    window.wait_for("quantize-four_bits");
}

/// Waits until the state below the model's row is this one.
pub fn wait_for_status(window: &Window, kind: &str) {
    window.wait_until(&format!("the copy is {kind}"), || {
        window.count("quantize-status") == 1 && window.attribute("quantize-status", "data-kind") == kind
    });
}

/// The folders beside the models that Ponder made, hidden ones among them.
fn copies(home: &Path) -> Vec<String> {
    let mut found: Vec<String> = walk(home)
        .into_iter()
        .filter(|path| path.is_dir() && path.to_string_lossy().contains("SmolLM2-135M-"))
        .map(|path| path.file_name().unwrap_or_default().to_string_lossy().into_owned())
        .collect();
    found.sort();
    found
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .flat_map(|path| {
            let below = if path.is_dir() && !path.is_symlink() {
                walk(&path)
            } else {
                Vec::new()
            };
            std::iter::once(path).chain(below)
        })
        .collect()
}

#[test]
fn a_model_is_quantized_and_its_copy_answers() {
    let home = tempfile::tempdir().expect("a folder");
    let models = home.path().join("my-models");
    let Some(folder) = float_model(&models) else { return };
    let reference = folder.to_string_lossy().into_owned();
    let window = Window::open(home.path());
    invoke_in_settings(&window, &[("add_model_folder", json!({"path": models}))]);
    window.click("open-models");
    window.switch_to("Models");
    window.click("tab-local");
    window.wait_until("it is listed", || window.count("model-row") == 2);

    open_sheet(&window, &reference);
    window.image("quantize-sheet");

    // Stopped, nothing of it stays.
    window.click("quantize-eight_bits");
    window.click("start-quantize");
    window.wait_for("stop-quantize");
    window.click("stop-quantize");
    window.wait_until("it is stopped", || window.count("quantize-status") == 0);
    assert_eq!(copies(home.path()), [""; 0]);

    open_sheet(&window, &reference);
    window.click("start-quantize");
    wait_for_status(&window, "done");
    assert!(
        window.newest("quantize-perplexity").contains("33."),
        "{}",
        window.newest("quantize-perplexity")
    );
    window.wait_until("the copy is listed", || window.count("model-row") == 3);
    window.image("quantize-done");
    assert_eq!(copies(home.path()).len(), 1, "{:?}", copies(home.path()));

    window.click("chat-with-copy");
    window.switch_to("Ponder");
    // The answer of a small model is sampled: it may go on, or be over after a few words.
    window.ask("Say hello.");
    let over = |window: &Window| ["complete", "stopped"].contains(&window.answer_state().as_str());
    window.wait_until("the copy answers", || window.answer().len() > 20 || over(&window));
    window.run("document.querySelector('[data-testid=stop]')?.click()", json!([]));
    window.wait_until("its answer is over", || over(&window));
    assert!(!window.answer().is_empty());

    // The same copy is not made twice.
    window.switch_to("Models");
    open_sheet(&window, &reference);
    assert!(window
        .run(
            "return document.querySelector('[data-testid=start-quantize]').disabled",
            json!([])
        )
        .as_bool()
        .expect("a button"));
    window.image("quantize-exists");
    // A model that is gone meanwhile fails with its name, and leaves nothing.
    window.click("quantize-eight_bits");
    fs::remove_file(folder.join("model.safetensors")).expect("it is removed");
    window.click("start-quantize");
    wait_for_status(&window, "failed");
    window.image("quantize-failed");
    assert_eq!(copies(home.path()).len(), 1, "{:?}", copies(home.path()));
    window.close();
}
