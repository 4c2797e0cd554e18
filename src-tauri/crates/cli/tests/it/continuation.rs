//! `ponder ask`: thoughts that are ended, answers that are continued, and Ctrl+C, with Pebble.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{json, Value};

use crate::support::{self, joined, last, lines};

const SUM: &str = "What is 347 + 589?";

fn command(home: &Path, args: &[&str]) -> Command {
    let asked = [
        "ask",
        "--json",
        "--model",
        "pebble",
        "--temperature",
        "0",
        "--thinking",
        "on",
    ];
    support::command(home, &[&asked, args].concat())
}

/// The output of a run, and its lines.
fn ask(home: &Path, args: &[&str]) -> (Output, Vec<Value>) {
    let output = command(home, args).output().expect("it starts");
    let printed = lines(&output);
    (output, printed)
}

/// Thought, text and tokens.
fn said(lines: &[Value]) -> (String, String, Value) {
    let done = last(lines);
    assert_eq!(done["type"], "done", "{done}");
    (joined(lines, "thinking"), joined(lines, "text"), done["tokens"].clone())
}

#[test]
fn a_budget_ends_the_thought_to_the_token() {
    let home = tempfile::tempdir().expect("a folder");
    let (_, lines) = ask(home.path(), &["--thinking-budget", "20", SUM]);
    let (thought, text, tokens) = said(&lines);
    let usage = &lines.last().expect("a line")["usage"];
    assert_eq!(usage["thinking_tokens"], 20);
    assert_eq!(usage["completion_tokens"], tokens.as_array().expect("a list").len());
    assert!(!thought.is_empty() && !text.is_empty());
    assert!(lines.iter().any(|line| line["code"] == "thinking_ended"), "{lines:?}");
    assert_eq!(lines.last().expect("a line")["thinking_ended"], true);
}

#[test]
fn an_answer_goes_on_from_each_form_of_it() {
    let home = tempfile::tempdir().expect("a folder");
    let whole = said(&ask(home.path(), &[SUM]).1);
    let prefix = home.path().join("prefix.json");
    let path = prefix.to_str().expect("text");
    // The output of an earlier command.
    let (cut, lines) = ask(home.path(), &["--max-tokens", "15", SUM]);
    assert_eq!(lines.last().expect("a line")["ended_by"]["rule"], "token_limit");
    fs::write(&prefix, &cut.stdout).expect("written");
    assert_eq!(said(&ask(home.path(), &["--continue", path, SUM]).1), whole);
    // The same killed before its last line: its words.
    let printed = String::from_utf8_lossy(&cut.stdout).into_owned();
    let without: Vec<&str> = printed.lines().filter(|line| !line.contains("\"done\"")).collect();
    fs::write(&prefix, without.join("\n")).expect("written");
    let (thought, text, _) = said(&ask(home.path(), &["--continue", path, SUM]).1);
    assert_eq!((thought, text), (whole.0.clone(), whole.1.clone()));
    // Tokens alone, and an assistant's message.
    let tokens = whole.2.as_array().expect("a list");
    fs::write(&prefix, json!({"tokens": tokens[..tokens.len() - 4]}).to_string()).expect("written");
    assert_eq!(said(&ask(home.path(), &["--continue", path, SUM]).1), whole);
    let message = json!({"role": "assistant", "reasoning": whole.0, "content": "347 +"});
    fs::write(&prefix, message.to_string()).expect("written");
    let (thought, text, _) = said(&ask(home.path(), &["--continue", path, SUM]).1);
    assert_eq!((thought, text), (whole.0.clone(), whole.1.clone()));
    // Another model's.
    fs::write(
        &prefix,
        json!({"tokens": [300], "model_revision": "another"}).to_string(),
    )
    .expect("written");
    let (output, lines) = ask(home.path(), &["--continue", path, SUM]);
    assert!(!output.status.success());
    assert_eq!(lines.last().expect("a line")["code"], "bad_request");
    // Any other text.
    fs::write(&prefix, "Add the digits from the right.").expect("written");
    let (output, lines) = ask(home.path(), &["--continue", path, SUM]);
    assert!(!output.status.success());
    let refused = lines.last().expect("a line")["message"].to_string();
    assert!(
        refused.contains("ponder ask --json") && !refused.contains("line 1"),
        "{refused}"
    );
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_the_answer_with_an_exit_code_and_it_can_be_continued() {
    let home = tempfile::tempdir().expect("a folder");
    let question = "Tell me a story.";
    let whole = said(&ask(home.path(), &[question]).1);
    let mut child = command(home.path(), &[question])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut printed = String::new();
    for line in BufReader::new(child.stdout.take().expect("a pipe")).lines() {
        let line = line.expect("text");
        if printed.is_empty() && line.contains("\"thinking\"") {
            let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
            assert!(kill.expect("kill runs").success());
        }
        if !line.contains("\"progress\"") {
            printed.push_str(&format!("{line}\n"));
        }
    }
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    let lines: Vec<Value> = printed
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.last().expect("a line")["stop"], "cancelled");
    let prefix = home.path().join("prefix.json");
    fs::write(&prefix, printed).expect("written");
    let path = prefix.to_str().expect("text");
    assert_eq!(said(&ask(home.path(), &["--continue", path, question]).1), whole);
}
