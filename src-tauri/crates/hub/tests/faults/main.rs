//! Faults between a hub and a disk. A model is never left incomplete or with wrong content.

#[path = "../support/ponder.rs"]
mod ponder;
mod process;
mod python;
mod table;

use std::path::Path;
use std::process::{Command, Stdio};

use hub_imitation::Dice;
use ponder::Ponder;
use process::{full, killed, limited, may_mount, read_only, row, two, Process};
use python::Python;
use table::{full_run, how_often, rows, run_all, Ended, Fetches, HEAD, MODEL};

/// huggingface_hub, for rows of comparison.
fn peer() -> Option<Python> {
    full_run().then(Python::start).flatten()
}

/// A fresh Ponder for each fetch.
struct Fresh;

impl Fetches for Fresh {
    fn fetch(&self, endpoint: &str, cache: &Path) -> Result<(), String> {
        Ponder::at(endpoint, cache).fetch(MODEL)
    }
}

fn never_wrong(name: &str, ended: &Ended) {
    assert_eq!((ended.wrong, ended.not_repaired), (0, 0), "{name}: {:#?}", ended.said);
}

/// Asserts that the messages are readable.
fn plain(name: &str, ended: &Ended) {
    for said in ended.said.keys() {
        let readable = said.len() < 600
            && !said.contains("Error {")
            && !said.contains("did not end")
            && !said.chars().any(char::is_control);
        assert!(readable, "{name}: {said}");
    }
}

#[test]
fn every_fault_ends_in_the_model_or_in_a_clear_error() {
    let (runs, seed) = how_often(5, 25);
    println!("report: faults, each at {runs} random moments (seed {seed})");
    println!("report: {HEAD}");
    let mut all = Vec::new();
    for (fault, ended) in rows().iter().zip(run_all(&rows(), &Fresh, runs, seed)) {
        println!("report: {}", ended.line(fault.name, runs));
        for (said, count) in &ended.said {
            println!("  {count} x {said}");
        }
        all.push((fault.name, ended));
    }
    for (name, ended) in &all {
        never_wrong(name, ended);
        plain(name, ended);
    }
}

/// For comparison, in a full run.
#[test]
fn the_same_through_huggingface_hub() {
    let (runs, seed) = how_often(1, 20);
    let Some(python) = peer() else { return };
    println!("report: faults through Python's huggingface_hub");
    println!("report: {HEAD}");
    for (fault, ended) in rows().iter().zip(run_all(&rows(), &python, runs, seed)) {
        println!("report: {}", ended.line(fault.name, runs));
        for (said, count) in &ended.said {
            println!("  {count} x {said}");
        }
    }
}

fn pull(program: &Path, endpoint: &str, cache: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .args(["pull", MODEL])
        .env("HF_ENDPOINT", endpoint)
        .env("HF_HUB_CACHE", cache)
        .env("HF_HOME", cache.with_file_name("no-hf-home"))
        .env("PONDER_HOME", cache.with_file_name("ponder-home"))
        .env_remove("HF_HUB_OFFLINE")
        .env_remove("HF_TOKEN")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

#[test]
fn killed_at_any_moment_it_goes_on_where_it_was() {
    let (runs, seed) = how_often(5, 25);
    let Some(program) = process::ponder() else { return };
    let start = |endpoint: &str, cache: &Path| pull(&program, endpoint, cache);
    let mut again = Vec::new();
    let ended = row(
        "kill -9 of ponder pull",
        (0..runs as u64).map(|run| {
            let (run, bytes) = killed(&start, seed + run);
            again.push(bytes);
            run
        }),
    );
    println!("report: of 15.7 MB the next try asked for {again:?} bytes");
    never_wrong("kill -9", &ended);
    if full_run() && python::command().is_some() {
        let start = |endpoint: &str, cache: &Path| python::alone(endpoint, cache).expect("Python was there just now");
        row(
            "kill -9 of huggingface_hub",
            (0..runs as u64).map(|run| killed(&start, seed + run).0),
        );
    }
}

#[test]
fn two_at_once_do_not_hurt_each_other() {
    let (runs, seed) = how_often(5, 25);
    let seeds = || seed..seed + runs as u64;
    let ended = row(
        "two Ponders on one model",
        seeds().map(|seed| two(&Fresh, &Fresh, seed)),
    );
    never_wrong("two Ponders", &ended);
    assert_eq!(ended.verified, runs, "{:#?}", ended.said);
    if let Some(program) = process::ponder() {
        let start = |endpoint: &str, cache: &Path| pull(&program, endpoint, cache);
        let ended = row(
            "two processes on one model",
            seeds().map(|seed| two(&Process(&start), &Fresh, seed)),
        );
        never_wrong("two processes", &ended);
        assert_eq!(ended.verified, runs, "{:#?}", ended.said);
    }
    if let Some(python) = Python::start() {
        let ended = row(
            "Ponder and huggingface_hub at once",
            seeds().map(|seed| {
                if seed % 2 == 0 {
                    two(&Fresh, &python, seed)
                } else {
                    two(&python, &Fresh, seed)
                }
            }),
        );
        never_wrong("Ponder and huggingface_hub", &ended);
        assert_eq!(ended.verified, runs, "{:#?}", ended.said);
    }
}

#[test]
fn a_full_disk_is_said_and_survived() {
    let (runs, seed) = how_often(5, 25);
    if !may_mount("a_full_disk_is_said_and_survived") {
        return;
    }
    let ended = row("disk full", (0..runs as u64).filter_map(|run| full(&Fresh, seed + run)));
    never_wrong("disk full", &ended);
    plain("disk full", &ended);
    if let Some(python) = peer() {
        row(
            "disk full, huggingface_hub",
            (0..runs as u64).filter_map(|run| full(&python, seed + run)),
        );
    }
}

#[test]
fn a_quota_is_said_and_survived() {
    let (runs, seed) = how_often(2, 20);
    let Some(program) = process::ponder() else { return };
    let mut dice = Dice::new(seed);
    let start = |endpoint: &str, cache: &Path| pull(&program, endpoint, cache);
    let ended = row(
        "file size limit",
        (0..runs).map(|_| limited(&start, dice.between(1, 14))),
    );
    never_wrong("file size limit", &ended);
    plain("file size limit", &ended);
    assert_eq!(ended.refused, runs, "{:#?}", ended.said);
}

#[test]
fn a_folder_that_may_not_be_written_is_said() {
    let (runs, seed) = how_often(5, 25);
    if process::writes_where_it_may_not() && !may_mount("a_folder_that_may_not_be_written_is_said") {
        return;
    }
    let ended = row(
        "read-only folder",
        (0..runs as u64).filter_map(|run| read_only(&Fresh, seed + run)),
    );
    never_wrong("read-only folder", &ended);
    plain("read-only folder", &ended);
    assert_eq!(ended.verified, 0);
    if let Some(python) = peer() {
        let runs = (0..runs as u64).filter_map(|run| read_only(&python, seed + run));
        row("read-only folder, huggingface_hub", runs);
    }
}
