//! The program as a process, with its data in a folder of its own, and Pebble for it. Each program of tests that
//! includes this names its program in `crate::PROGRAM` and uses a part of this alone.
#![allow(dead_code)]

pub mod pebble;
pub mod python;
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
    at_home(&mut command, home);
    command.args(args).stdin(Stdio::null());
    command
}

/// Has a program, and those that it starts, keep Ponder's data in `home` and know no models but Pebble.
pub fn at_home(program: &mut Command, home: &Path) {
    for variable in OF_THE_HUB {
        program.env_remove(variable);
    }
    program.env("PONDER_HOME", home).env("HF_HOME", home.join("hub"));
}

pub fn run(home: &Path, args: &[&str]) -> Output {
    command(home, args).output().expect("it starts")
}

/// The standard output of a run that must have succeeded; an answer that was cut (3) is one.
pub fn text(output: &Output) -> String {
    let code = output.status.code();
    assert!(
        matches!(code, Some(0 | 3)),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
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
