//! The test suites of vllm-mlx, llama.cpp, mlx-lm and vLLM as oracles: every case of theirs through the parser that the
//! engine uses, whole and in pieces. `PONDER_SUITES` names the folder with the cases, which `./dev test --full`
//! collects from the published sources; `PONDER_SUITES_DIFFERENCES` a file for all that differs, a case a line.

mod comparison;
mod differences;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use self::comparison::Comparison;
use crate::common::{byte_speaker, split};
use prompt::{ChatProcessor, Event, Piece, Prompt, Splitter};
use serde::Deserialize;
use serde_json::{json, Value};

/// A case as `tests/oracle/suites/collect.py` writes it.
#[derive(Debug, Clone, Default, Deserialize)]
struct Case {
    suite: String,
    test: String,
    /// The kinds that the peer's parser separates: `calls` or `reasoning` alone, or `both`.
    kind: String,
    /// Ours, by name; or the model's template, relative to the sources of its suite.
    format: Option<String>,
    template: Option<String>,
    /// The peer's parser.
    #[serde(default)]
    parser: String,
    /// True if it was streamed.
    #[serde(default)]
    streamed: bool,
    #[serde(default)]
    opened: bool,
    /// The template's text before an answer.
    prompt: Option<String>,
    tools: Option<Vec<Value>>,
    source: String,
    reasoning: String,
    content: String,
    calls: Vec<Call>,
}

impl Case {
    /// The tools of the request, and those that are called, since a model is offered what it is meant to call.
    fn offered(&self) -> Vec<Value> {
        let mut tools = self.tools.clone().unwrap_or_default();
        for call in &self.calls {
            let known = tools
                .iter()
                .any(|tool| tool.get("function").unwrap_or(tool)["name"] == call.name.as_str());
            if !known {
                tools.push(json!({"type": "function", "function": {"name": call.name}}));
            }
        }
        tools
    }
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
struct Call {
    name: String,
    arguments: Value,
}

/// All of the reasoning, all of the answer and the calls.
#[derive(Debug, Clone, Default, PartialEq)]
struct Reading {
    thinking: String,
    text: String,
    calls: Vec<Call>,
    notices: Vec<String>,
}

impl Reading {
    fn of(events: Vec<Event>) -> Self {
        let mut reading = Self::default();
        for event in events {
            match event.piece {
                Piece::Thinking(more) => reading.thinking.push_str(&more),
                Piece::Text(more) => reading.text.push_str(&more),
                Piece::ToolCall { name, arguments } => reading.calls.push(Call { name, arguments }),
                Piece::Notice(notice) => reading
                    .notices
                    .push(serde_json::to_value(notice.code).unwrap().as_str().unwrap().to_owned()),
            }
        }
        reading
    }
}

type Speaker = (ChatProcessor, tokenizers::Tokenizer);

/// The models of templates, their markers being tokens.
struct Speakers {
    folder: PathBuf,
    known: HashMap<String, Speaker>,
}

impl Speakers {
    fn get(&mut self, template: &str) -> &Speaker {
        let folder = &self.folder;
        self.known.entry(template.to_owned()).or_insert_with(|| {
            let source = std::fs::read_to_string(folder.join(template)).unwrap();
            let formats: Vec<Splitter> = Splitter::names()
                .map(|name| Splitter::named(name, false, true).unwrap())
                .collect();
            let mut markers: Vec<&str> = formats.iter().flat_map(Splitter::markers).collect();
            // Not every template writes the calls that its model makes; LFM2's leaves them to the tokenizer.
            let known = |marker: &str| {
                source.contains(marker) || marker.starts_with("<|tool_call_") && source.contains("<|tool_list_start|>")
            };
            markers.retain(|marker| marker.starts_with(['<', '[', '◁']) && known(marker));
            markers.sort_unstable();
            markers.dedup();
            byte_speaker(&markers, &source)
        })
    }

    /// The markers of a case's format.
    fn markers(&self, case: &Case) -> Vec<&'static str> {
        let formats = Splitter::names().filter(|name| case.format.as_deref().is_none_or(|format| format == *name));
        formats
            .flat_map(|name| {
                Splitter::named(name, false, true)
                    .unwrap()
                    .markers()
                    .collect::<Vec<_>>()
            })
            .collect()
    }

    /// The result for a text in pieces of this many characters or tokens; `None` if the format is unknown.
    fn read(&mut self, case: &Case, source: &str, opened: bool, size: usize) -> Option<Reading> {
        let tools = Some(case.offered());
        let tools = tools.as_deref();
        if let Some(format) = &case.format {
            let mut splitter = Splitter::named(format, opened, true)?;
            if let Some(tools) = tools {
                splitter = splitter.with_tools(tools);
            }
            return Some(Reading::of(split(splitter, source, size)));
        }
        let (processor, library) = self.get(case.template.as_deref().unwrap());
        let ids = |text: &str| library.encode_fast(text, false).unwrap().get_ids().to_vec();
        let mut parser = match &case.prompt {
            Some(text) => {
                let prompt = Prompt {
                    text: text.clone(),
                    ids: ids(text),
                    ..Prompt::default()
                };
                processor.parser(&prompt, true, &[])
            }
            None => processor.reader("", opened, true).unwrap().0,
        };
        if let Some(tools) = tools {
            parser = parser.with_tools(tools);
        }
        let mut events: Vec<Event> = ids(source).into_iter().flat_map(|id| parser.push_event(id)).collect();
        events.extend(parser.finish_events());
        Some(Reading::of(events))
    }
}

/// Arguments are alike if they are the same JSON; 1 and 1.0 are.
fn alike(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| alike(a, b)))
        }
        _ => a == b,
    }
}

fn same_calls(a: &[Call], b: &[Call]) -> bool {
    a.len() == b.len()
        && a.iter()
            .zip(b)
            .all(|(a, b)| a.name == b.name && alike(&a.arguments, &b.arguments))
}

/// The peer's result, completed by ours where its parser separates only one kind: one for thoughts leaves the calls in
/// the content, and one for calls leaves the thoughts there or drops them.
fn expected(case: &Case, ours: &Reading, speakers: &mut Speakers) -> Vec<Reading> {
    let theirs = Reading {
        thinking: case.reasoning.clone(),
        text: case.content.clone(),
        calls: case.calls.clone(),
        notices: Vec::new(),
    };
    let mut found = vec![theirs.clone()];
    let alone = Case {
        prompt: None,
        ..case.clone()
    };
    if let Some(rest) = speakers.read(&alone, &case.content, false, usize::MAX) {
        match case.kind.as_str() {
            "reasoning" => found.push(Reading {
                thinking: theirs.thinking.clone(),
                ..rest
            }),
            "calls" if rest.calls.is_empty() => found.push(Reading {
                calls: theirs.calls.clone(),
                ..rest
            }),
            _ => {}
        }
    }
    if case.kind == "calls" {
        found.push(Reading {
            thinking: ours.thinking.clone(),
            ..theirs
        });
    }
    found
}

fn equal(ours: &Reading, theirs: &Reading) -> bool {
    ours.thinking.trim() == theirs.thinking.trim()
        && ours.text.trim() == theirs.text.trim()
        && same_calls(&ours.calls, &theirs.calls)
}

/// A difference as one line, with the rule that explains it.
fn described(case: &Case, ours: &Reading, reason: Option<&str>) -> String {
    let calls = |calls: &[Call]| -> Value { calls.iter().map(|call| json!([call.name, call.arguments])).collect() };
    let line = json!({
        "reason": reason,
        "suite": case.suite,
        "test": case.test,
        "format": case.format.as_ref().or(case.template.as_ref()),
        "parser": case.parser,
        "kind": case.kind,
        "opened": case.opened,
        "prompt": case.prompt,
        "source": case.source,
        "tools": case.tools,
        "theirs": [case.reasoning, case.content, calls(&case.calls)],
        "ours": [ours.thinking, ours.text, calls(&ours.calls), ours.notices],
    });
    line.to_string()
}

fn cases(folder: &Path) -> Vec<Case> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let lines = files.iter().flat_map(|file| {
        let text = std::fs::read_to_string(file).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect::<Vec<Case>>()
    });
    lines.collect()
}

#[test]
fn the_suites_of_others_find_no_fault() {
    let Some(folder) = std::env::var_os("PONDER_SUITES").map(PathBuf::from) else {
        println!("skipped: PONDER_SUITES names no folder of cases; `./dev test --full` does");
        return;
    };
    let mut speakers = Speakers {
        folder: folder.clone(),
        known: HashMap::new(),
    };
    let mut table: BTreeMap<(&'static str, String), usize> = BTreeMap::new();
    let (mut faults, mut differences, mut torn) = (Vec::new(), Vec::new(), Vec::new());
    for case in cases(&folder.join("cases")) {
        let mut count = |row: &'static str| *table.entry((row, case.suite.clone())).or_default() += 1;
        let Some(ours) = speakers.read(&case, &case.source, case.opened, usize::MAX) else {
            count("~ a format that is not known");
            continue;
        };
        for size in [1, 3, 7] {
            if speakers.read(&case, &case.source, case.opened, size).as_ref() != Some(&ours) {
                torn.push(format!(
                    "{} {} in pieces of {size}: {:?}",
                    case.suite, case.test, case.source
                ));
            }
        }
        let theirs = expected(&case, &ours, &mut speakers);
        if theirs.iter().any(|theirs| equal(&ours, theirs)) {
            count(" equal");
            continue;
        }
        let markers = speakers.markers(&case);
        let reason = theirs.iter().find_map(|theirs| {
            differences::reason(&Comparison {
                case: &case,
                ours: &ours,
                theirs,
                markers: &markers,
            })
        });
        count(reason.unwrap_or("~~ fault"));
        let difference = described(&case, &ours, reason);
        if reason.is_none() {
            faults.push(difference.clone());
        }
        differences.push(difference);
    }
    report(&table);
    if let Some(path) = std::env::var_os("PONDER_SUITES_DIFFERENCES") {
        std::fs::write(path, differences.join("\n")).unwrap();
    }
    assert!(torn.is_empty(), "{}", torn.join("\n"));
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults[..faults.len().min(40)].join("\n")
    );
}

/// Templates that vLLM gives as examples, and a call as their models write it.
const EXAMPLES: [(&str, &str); 5] = [
    (
        "internlm2_tool",
        "<|action_start|><|plugin|>\n{\"name\": \"f\", \"parameters\": {\"a\": 1}}<|action_end|>",
    ),
    (
        "granite_20b_fc",
        "<function_call> {\"name\": \"f\", \"arguments\": {\"a\": 1}}",
    ),
    ("phi4_mini", "functools[{\"name\": \"f\", \"arguments\": {\"a\": 1}}]"),
    ("xlam_llama", "[{\"name\": \"f\", \"arguments\": {\"a\": 1}}]"),
    ("xlam_qwen", "[{\"name\": \"f\", \"arguments\": {\"a\": 1}}]"),
];

#[test]
fn templates_tell_how_their_models_write_calls() {
    let Some(folder) = std::env::var_os("PONDER_SUITES").map(PathBuf::from) else {
        println!("skipped: PONDER_SUITES names no folder of cases; `./dev test --full` does");
        return;
    };
    let vllm = std::fs::read_dir(folder.join("sources"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let vllm = vllm
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("vllm-0"))
        .max()
        .unwrap();
    let mut speakers = Speakers {
        folder,
        known: HashMap::new(),
    };
    let call = Call {
        name: "f".into(),
        arguments: json!({"a": 1}),
    };
    for (name, source) in EXAMPLES {
        let case = Case {
            template: Some(
                vllm.join(format!("examples/tool_chat_template_{name}.jinja"))
                    .to_str()
                    .unwrap()
                    .to_owned(),
            ),
            calls: vec![call.clone()],
            ..Case::default()
        };
        let read = speakers.read(&case, source, false, 1).unwrap();
        assert_eq!((read.text.as_str(), read.calls), ("", vec![call.clone()]), "{name}");
    }
}

fn report(table: &BTreeMap<(&'static str, String), usize>) {
    let suites: Vec<&String> = {
        let mut names: Vec<&String> = table.keys().map(|(_, suite)| suite).collect();
        names.sort_unstable();
        names.dedup();
        names
    };
    let mut rows: Vec<&'static str> = table.keys().map(|(row, _)| *row).collect();
    rows.dedup();
    println!(
        "report: | {} | |",
        suites.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" | ")
    );
    for row in rows {
        let counts: Vec<String> = suites
            .iter()
            .map(|suite| {
                table
                    .get(&(row, (*suite).clone()))
                    .copied()
                    .unwrap_or_default()
                    .to_string()
            })
            .collect();
        println!("report: | {} | {row} |", counts.join(" | "));
    }
}
