//! `ponder` as a process, with its data in a folder of its own.
#![allow(dead_code)]

pub mod serving;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// What this computer's own environment says about the hub, which no test goes by.
const OF_THE_HUB: [&str; 6] = [
    "HF_ENDPOINT",
    "HF_TOKEN",
    "HF_TOKEN_PATH",
    "HF_HUB_CACHE",
    "HF_HUB_OFFLINE",
    "TRANSFORMERS_OFFLINE",
];

/// `ponder` with its data in `home`, and no models but Pebble.
pub fn command(home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ponder"));
    for variable in OF_THE_HUB {
        command.env_remove(variable);
    }
    command
        .args(args)
        .env("PONDER_HOME", home)
        .env("HF_HOME", home.join("hub"))
        .stdin(Stdio::null());
    command
}

pub fn run(home: &Path, args: &[&str]) -> Output {
    command(home, args).output().expect("ponder starts")
}

/// What a run has printed that must have succeeded.
pub fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("text")
}

/// The JSON lines of a run, whether it succeeded or not.
pub fn lines(output: &Output) -> Vec<Value> {
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("a JSON line"))
        .collect()
}

/// The JSON lines of a run that must succeed.
pub fn run_json(home: &Path, args: &[&str]) -> Vec<Value> {
    let output = run(home, args);
    text(&output);
    lines(&output)
}

/// The text of all events of one type, joined.
pub fn joined(events: &[Value], kind: &str) -> String {
    events
        .iter()
        .filter(|event| event["type"] == kind)
        .filter_map(|event| event["text"].as_str())
        .collect()
}

pub fn last(events: &[Value]) -> &Value {
    events.last().expect("there are events")
}
