//! `ponder pull` as a process: whole runs, Ctrl+C, and a kill in the middle, after which the next run resumes.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use hub_imitation::{Fault, Imitation, Repository, Times};
use serde_json::Value;

use crate::support::{self, last, lines};

const ID: &str = "owner/model";
/// Its weights.
const WEIGHTS: &str = "model.safetensors";

fn pull(home: &Path, hub: &Imitation, extra: &[&str]) -> Command {
    let mut command = support::command(home, &[&["pull", ID], extra].concat());
    command.env("HF_ENDPOINT", hub.endpoint());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A model that can be loaded, and the size of its weights.
fn model(hub: &Imitation) -> (Repository, u64) {
    let source = hub.repository(ID).pebble();
    let size = source.bytes(WEIGHTS).expect("Pebble has weights").len() as u64;
    (source, size)
}

/// Lets a run go until more than `enough` bytes are on disk; what it said last, and its output, without whose reader it
/// would end.
fn watch(run: &mut Child, enough: u64) -> (Value, BufReader<ChildStdout>) {
    let mut output = BufReader::new(run.stdout.take().expect("it is piped"));
    let mut lines = output
        .by_ref()
        .lines()
        .map(|line| serde_json::from_str::<Value>(&line.expect("text")).expect("a JSON line"));
    let said = lines
        .find(|line| line["done"].as_u64().is_some_and(|done| done > enough))
        .expect("it comes that far");
    (said, output)
}

fn blobs(home: &Path) -> PathBuf {
    home.join("hub/hub/models--owner--model/blobs")
}

/// Bytes that the next run may count on: whole blobs, and what the records say of the others.
fn kept(home: &Path) -> u64 {
    fs::read_dir(blobs(home))
        .expect("the folder is there")
        .map(|entry| entry.expect("an entry").path())
        .map(|path| match path.extension().and_then(|ending| ending.to_str()) {
            None => fs::metadata(&path).expect("a file").len(),
            Some("json") => {
                let record: Value = serde_json::from_slice(&fs::read(&path).expect("a record")).expect("JSON");
                let written = record["written"].as_array().expect("a list");
                written
                    .iter()
                    .map(|range| range[1].as_u64().unwrap_or(0) - range[0].as_u64().unwrap_or(0))
                    .sum()
            }
            _ => 0,
        })
        .sum()
}

fn assert_whole(home: &Path, source: &Repository) {
    let snapshot = blobs(home).with_file_name("snapshots").join(source.commit());
    for path in source.paths() {
        if path.ends_with(".safetensors") || path.ends_with(".json") {
            assert!(fs::read(snapshot.join(&path)).ok() == source.bytes(&path), "{path}");
        }
    }
    let left: Vec<_> = fs::read_dir(blobs(home))
        .expect("a folder")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert!(
        left.iter().all(|name| !name.to_string_lossy().contains('.')),
        "{left:?}"
    );
}

#[test]
fn a_run_that_was_killed_is_gone_on_with_at_the_byte() {
    let (hub, home) = (Imitation::start(), tempfile::tempdir().expect("a folder"));
    let (source, size) = model(&hub);
    let home = home.path();
    let (bytes, pause) = (64 * 1024, Duration::from_millis(10));
    hub.fault(WEIGHTS, Fault::Drip { bytes, pause }, Times::Always);
    let mut run = pull(home, &hub, &["--json"]).spawn().expect("it starts");
    let (said, _output) = watch(&mut run, size / 2);
    run.kill().expect("it runs");
    run.wait().expect("it ends");
    let (kept, total) = (kept(home), said["total"].as_u64().expect("a size"));
    assert!(kept > size / 4 && kept < total, "{kept} of {total}");
    assert!(!blobs(home).with_file_name("refs").join("main").exists());

    hub.clear_faults();
    hub.forget_requests();
    let output = pull(home, &hub, &["--json"]).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(last(&lines(&output))["commit"], source.commit());
    assert_eq!(hub.sent(), total - kept);
    assert_whole(home, &source);
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_what_came_and_fails() {
    let (hub, home) = (Imitation::start(), tempfile::tempdir().expect("a folder"));
    let (source, size) = model(&hub);
    let home = home.path();
    hub.fault(WEIGHTS, Fault::Stall { after: size / 2 }, Times::Once);
    // On a busy computer the stalled connection may be replaced before the signal arrives.
    hub.fault(WEIGHTS, Fault::Stall { after: 0 }, Times::Always);
    let mut run = pull(home, &hub, &["--json"]).spawn().expect("it starts");
    let (_, _output) = watch(&mut run, size / 3);
    let interrupted = Command::new("kill")
        .args(["-INT", &run.id().to_string()])
        .status()
        .expect("kill starts");
    assert!(interrupted.success());
    let output = run.wait_with_output().expect("it ends");
    assert!(!output.status.success());
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(complaint.contains("again to resume"), "{complaint}");

    let (kept, total) = (
        kept(home),
        source
            .paths()
            .iter()
            .filter_map(|path| source.bytes(path))
            .map(|bytes| bytes.len() as u64)
            .sum::<u64>(),
    );
    assert!(kept > size / 3);
    hub.clear_faults();
    hub.forget_requests();
    let output = pull(home, &hub, &[]).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(hub.sent() <= total - kept, "{} of {total}, {kept} kept", hub.sent());
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.starts_with("owner/model is ready: "), "{said}");
    assert_whole(home, &source);
}

#[test]
fn what_is_not_there_is_one_clear_line() {
    let (hub, home) = (Imitation::start(), tempfile::tempdir().expect("a folder"));
    let output = pull(home.path(), &hub, &["--json"]).output().expect("it starts");
    assert!(!output.status.success());
    let said = last(&lines(&output)).clone();
    assert_eq!(
        (said["type"].as_str(), said["code"].as_str()),
        (Some("error"), Some("not_found")),
        "{said}"
    );
    assert_eq!(String::from_utf8_lossy(&output.stderr).trim().lines().count(), 1);
}
