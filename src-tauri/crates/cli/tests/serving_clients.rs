//! `ponder serve` with Pebble, asked by the programs that people use and by scripts (tests/clients): recorded requests,
//! every surface in every situation, cases of other servers' tests, load and attack. Each prints a table of its cells,
//! all of them right. A program of its own, because `./dev test --full serving_clients` runs it for an hour.
#![allow(clippy::unwrap_used)]

#[path = "it/support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use support::pebble::pebble;
use support::serving::{assert_right, cells, import_embedder, scripts, Serving};

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_ponder");

/// A program that a variable names; `./dev test` provides it.
fn provided(variable: &str) -> Option<PathBuf> {
    let path = std::env::var_os(variable).map(PathBuf::from);
    if path.is_none() {
        println!("report: skipped: {variable} is not set; `./dev test` sets it if what it names could be installed");
    }
    path
}

/// Python without anything, for scripts that ask over raw HTTP.
fn python() -> Option<PathBuf> {
    provided("PONDER_ORACLE_PYTHON")
}

fn is_full() -> bool {
    std::env::var_os("PONDER_FULL").is_some()
}

fn fixtures() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/tests/fixtures");
    folder.to_str().unwrap().to_owned()
}

/// Prints how many cells of each name are right, in columns by what `split` makes of a cell: its row and its column.
fn report(title: &str, cells: &[Value], split: impl Fn(&Value) -> (String, String)) {
    let mut columns: Vec<String> = Vec::new();
    let mut rows: BTreeMap<String, BTreeMap<String, (usize, usize)>> = BTreeMap::new();
    for cell in cells {
        let (row, column) = split(cell);
        if !columns.contains(&column) {
            columns.push(column.clone());
        }
        let count = rows.entry(row).or_default().entry(column).or_default();
        count.0 += usize::from(cell["ok"] == true);
        count.1 += 1;
    }
    let right = cells.iter().filter(|cell| cell["ok"] == true).count();
    println!("report: {title}: {right} of {} cells right", cells.len());
    println!("report: | | {} |", columns.join(" | "));
    for (row, counts) in rows {
        let of = |column: &String| {
            counts
                .get(column)
                .map_or("".into(), |(right, all)| format!("{right}/{all}"))
        };
        let counts: Vec<String> = columns.iter().map(of).collect();
        println!("report: | {row} | {} |", counts.join(" | "));
    }
}

fn text(cell: &Value, field: &str) -> String {
    cell[field].as_str().unwrap_or_default().to_owned()
}

fn print_notes(cells: &[Value]) {
    for cell in cells.iter().filter(|cell| cell["note"].is_string()) {
        println!("report: {}: {}", text(cell, "cell"), text(cell, "note"));
    }
}

#[test]
fn what_clients_sent_is_answered_in_order() {
    let Some(python) = python() else { return };
    let serving = Serving::start(&[]);
    let cells = cells(&python, "replay.py", &[&serving.url(), &fixtures()]);
    let by = |cell: &Value| (text(cell, "note"), "right".to_owned());
    report("recorded requests", &cells, by);
    assert_right(&cells, 79);
}

#[test]
fn every_surface_is_right_in_every_situation() {
    let Some(python) = python() else { return };
    let serving = Serving::start(&["--max-sequences", "8"]);
    let cells = cells(&python, "matrix.py", &[&serving.url()]);
    report("surfaces x streamed or whole x thinking x situation", &cells, |cell| {
        let name = text(cell, "cell");
        let (mode, situation) = name.rsplit_once(", ").unwrap();
        (situation.to_owned(), mode.to_owned())
    });
    assert_right(&cells, 84);
}

#[test]
fn cases_of_other_servers_tests_hold_or_differ_for_a_reason() {
    let Some(python) = python() else { return };
    let serving = Serving::start(&[]);
    let mut all = cells(&python, "restated_anthropic.py", &[&serving.url()]);
    all.extend(cells(&python, "restated_openai.py", &[&serving.url()]));
    report("re-stated cases", &all, |cell| {
        let way = if cell["note"].is_string() {
            "ours differs"
        } else {
            "the same"
        };
        (text(cell, "client"), way.to_owned())
    });
    if is_full() {
        print_notes(&all);
    }
    let differ = all.iter().filter(|cell| cell["note"].is_string()).count();
    assert_eq!(differ, 26);
    assert_right(&all, 87);
}

#[test]
fn sdks_and_frameworks_talk_with_pebble() {
    let (python, node) = (provided("PONDER_CLIENTS_PYTHON"), provided("PONDER_CLIENTS_NODE"));
    let home = tempfile::tempdir().unwrap();
    let embedder = import_embedder(home.path());
    let serving = Serving::at(home, &[]);
    let url = serving.url();
    let run = |program: Option<PathBuf>, all: &str, scripts: &[&str]| {
        let arguments: Vec<&str> = [url.as_str(), embedder.unwrap_or_default()]
            .iter()
            .chain(scripts)
            .copied()
            .collect();
        program.map_or(Vec::new(), |program| cells(&program, all, &arguments))
    };
    let (mut by_python, by_node) = if embedder.is_some() { (48, 45) } else { (44, 40) };
    // The frameworks' structured answers.
    by_python += if is_full() { 10 } else { 0 };
    let expected = python.iter().len() * by_python + node.iter().len() * by_node;
    let python_scripts = [
        "with_langchain.py",
        "with_litellm.py",
        "with_llm.py",
        "with_ollama.py",
        "with_pydantic_ai.py",
    ];
    let node_scripts = [
        "with_openai.mjs",
        "with_anthropic.mjs",
        "with_ai_sdk.mjs",
        "with_ollama.mjs",
    ];
    // Side by side, so that their answers are made in one batch.
    let all = std::thread::scope(|scope| {
        let by_python = scope.spawn(|| run(python, "several.py", &python_scripts));
        let mut all = run(node.map(|_| "node".into()), "several.mjs", &node_scripts);
        all.extend(by_python.join().unwrap());
        all
    });
    report("clients", &all, |cell| (text(cell, "client"), text(cell, "cell")));
    assert_right(&all, expected);
}

#[test]
fn under_load_nothing_is_wrong_or_lost() {
    let Some(python) = python() else { return };
    let serving = Serving::start(&[]);
    let (seconds, connections) = if is_full() { ("60", "64") } else { ("5", "48") };
    let process = serving.process.id().to_string();
    let cells = cells(&python, "load.py", &[&serving.url(), &process, seconds, connections]);
    print_notes(&cells);
    assert_right(&cells, 1);
}

#[test]
fn hostile_requests_break_nothing() {
    let Some(python) = python() else { return };
    let serving = Serving::start(&[]);
    let (changed, slow, expected) = if is_full() { ("2000", "60", 6) } else { ("120", "0", 5) };
    let process = serving.process.id().to_string();
    let cells = cells(
        &python,
        "attack.py",
        &[&serving.url(), &process, &fixtures(), changed, slow],
    );
    print_notes(&cells);
    assert_right(&cells, expected);
}

#[cfg(target_os = "linux")]
#[test]
fn pages_of_strangers_get_nothing_in_a_real_browser() {
    let Some(python) = python() else { return };
    let home = tempfile::tempdir().unwrap();
    let seconds = if is_full() { "20" } else { "2" };
    let cells = cells(
        &python,
        "browser.py",
        &[PROGRAM, home.path().to_str().unwrap(), seconds],
    );
    print_notes(&cells);
    assert_right(&cells, 4);
}

#[test]
fn agents_talk_with_pebble_and_with_models_of_a_long_context() {
    if !is_full() {
        return;
    }
    let Some(python) = python() else { return };
    let home = tempfile::tempdir().unwrap();
    let call = |tool: &str, argument: &str| {
        format!(
            r#"{{"question": ["<|tool_call>", "call:{tool}{{{argument}:", "<|\"|>pwd<|\"|>}}", "<tool_call|>"], "result": ["The result is here."]}}"#
        )
    };
    for (name, script) in [
        (
            "says",
            r#"{"question": ["Hello from Ponder."], "result": ["The result is here."]}"#.to_owned(),
        ),
        (
            "thinks",
            r#"{"question": ["<|channel>", "thought\n", "I think.\n", "<channel|>", "Hello from Ponder."], "result": ["The result is here."]}"#
                .to_owned(),
        ),
        ("calls", call("Bash", "command")),
        ("runs", call("bash", "command")),
        ("executes", call("exec_command", "cmd")),
    ] {
        let folder = home.path().join("models").join(name);
        let mut writing = Command::new(&python);
        let written = writing
            .arg(scripts().join("scripted_model.py"))
            .arg(folder)
            .arg(pebble())
            .arg(script);
        assert!(written.status().unwrap().success());
    }
    let (serving, scripted) = (Serving::start(&[]), Serving::at(home, &[]));
    let agents = provided("PONDER_AGENTS").map_or(Vec::new(), |_| vec![("claude", 5), ("codex", 4), ("opencode", 4)]);
    let aider = provided("PONDER_AIDER").map(|_| ("aider", 3));
    let (mut all, mut expected) = (Vec::new(), 0);
    for (agent, count) in agents.into_iter().chain(aider) {
        all.extend(cells(&python, "agents.py", &[&serving.url(), &scripted.url(), agent]));
        expected += count;
    }
    report("agents", &all, |cell| (text(cell, "client"), text(cell, "cell")));
    print_notes(&all);
    assert_right(&all, expected);
}
