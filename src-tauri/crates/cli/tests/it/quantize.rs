//! `ponder quantize` as a process, on a small trained model.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use rustix::process::{kill_process, Pid, Signal};
use serde_json::Value;

use crate::support;

/// The folder of SmolLM2; `None`, with a line printed, if the environment names none.
fn smollm2() -> Option<PathBuf> {
    let folder = std::env::var_os("PONDER_SMOLLM2").map(PathBuf::from);
    if folder.is_none() {
        println!("skipped: PONDER_SMOLLM2 names no folder of SmolLM2; `./dev test` provides one");
    }
    folder
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Starts to write a copy of 8 bits and waits until it is being written.
fn begun(home: &Path, source: &Path, target: &Path) -> Child {
    let (source, target) = (source.to_str().unwrap(), target.to_str().unwrap());
    let args = [
        "quantize",
        source,
        "--bits",
        "8",
        "--to",
        target,
        "--json",
        "--no-check",
    ];
    let mut command = support::command(home, &args);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(line.contains("progress"), "{line}");
    child
}

#[test]
fn a_killed_run_leaves_no_model_and_the_next_one_cleans_up() {
    let Some(source) = smollm2() else { return };
    let (home, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let target = out.path().join("copy");
    let mut child = begun(home.path(), &source, &target);
    child.kill().unwrap();
    child.wait().unwrap();
    let left = names(out.path());
    assert!(left.len() == 1 && left[0].starts_with(".ponder-draft-"), "{left:?}");
    assert!(!out.path().join(&left[0]).join("config.json").exists());
    let run = [
        "quantize",
        source.to_str().unwrap(),
        "--to",
        target.to_str().unwrap(),
        "--json",
    ];
    let events = support::run_json(home.path(), &run);
    assert_eq!(names(out.path()), ["copy"]);
    let of = |kind: &str| events.iter().find(|event| event["type"] == kind).unwrap();
    let bits = of("quantized")["bits_per_weight"].as_f64().unwrap();
    assert!((4.5..4.6).contains(&bits), "{bits}");
    let number = |name: &str| of("perplexity")[name].as_f64().unwrap();
    let (original, quantized) = (number("original"), number("quantized"));
    assert!(
        original > 5.0 && quantized > original && quantized < 2.0 * original,
        "{original} {quantized}"
    );
    let steps: Vec<&Value> = events.iter().filter(|event| event["type"] == "progress").collect();
    assert!(steps.len() > 20 && steps.iter().all(|step| step["done"].as_u64() <= step["total"].as_u64()));
    // A second one does not overwrite it.
    let again = support::run(home.path(), &run);
    assert_eq!(again.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&again.stderr).contains("exists already"));
    // And it answers.
    let ask = [
        "ask",
        "--model",
        target.to_str().unwrap(),
        "--temperature",
        "0",
        "--max-tokens",
        "8",
        "Hello!",
    ];
    assert!(!support::text(&support::run(home.path(), &[&ask[..], &["--json"]].concat())).is_empty());
}

#[test]
fn ctrl_c_leaves_nothing() {
    let Some(source) = smollm2() else { return };
    let (home, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut child = begun(home.path(), &source, &out.path().join("copy"));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    // Its last lines are read, so that it does not wait for a reader.
    let rest = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok);
    let last: Value = serde_json::from_str(&rest.last().unwrap()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(last["code"], "stopped");
    assert!(names(out.path()).is_empty());
}

#[test]
fn what_cannot_be_quantized_is_told_in_one_line() {
    let home = tempfile::tempdir().unwrap();
    let adapter = home.path().join("style");
    fs::create_dir(&adapter).unwrap();
    fs::write(adapter.join("adapter_config.json"), r#"{"model": "pebble"}"#).unwrap();
    fs::write(adapter.join("adapters.safetensors"), b"").unwrap();
    let adapted = format!("pebble:{}", adapter.to_str().unwrap());
    for (args, code, words) in [
        (&["quantize", "pebble"][..], 1, "quantized already"),
        (&["quantize", &adapted], 1, "is an adapter"),
        (&["quantize", "pebble", "--bits", "7"], 1, "7 bits"),
        (
            &["quantize", "pebble", "--bits", "5", "--mixed"],
            1,
            "mixtures of 2 and 6",
        ),
        (
            &["quantize", "pebble", "--mode", "mxfp4", "--bits", "8"],
            1,
            "mxfp4 has 4 bits",
        ),
        (&["quantize", "no/such-model"], 1, "no/such-model"),
        (&["quantize", "pebble", "--mode", "int4"], 2, "int4"),
    ] {
        let output = support::run(home.path(), args);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            (output.status.code(), errors.lines().count()),
            (Some(code), 1),
            "{errors}"
        );
        assert!(errors.contains(words), "{errors}");
    }
}
