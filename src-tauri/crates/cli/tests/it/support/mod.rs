//! The program as a process, with its data in a folder of its own, and Pebble for it. Each program of tests that
//! includes this names its program in `crate::PROGRAM` and uses a part of this alone.
#![allow(dead_code)]

pub mod pebble;
pub mod serving;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Variables of this computer's own environment about the hub, which no test uses.
const OF_THE_HUB: [&str; 6] = [
    "HF_ENDPOINT",
    "HF_TOKEN",
    "HF_TOKEN_PATH",
    "HF_HUB_CACHE",
    "HF_HUB_OFFLINE",
    "TRANSFORMERS_OFFLINE",
];

/// The program with its data in `home`, and no models but Pebble.
pub fn command(home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(crate::PROGRAM);
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
    command(home, args).output().expect("it starts")
}

/// The standard output of a run that must have succeeded.
pub fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("text")
}

/// The JSON lines of a run, even of one that failed.
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
