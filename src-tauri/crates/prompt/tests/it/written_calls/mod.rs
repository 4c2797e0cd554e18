//! Random calls of random tools, whose texts hold the markers and closing tags of every format, written as each format
//! writes them: what is read is exactly what was written. `PONDER_SEED` chooses them.

mod fragments;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use self::fragments::fragments;
use crate::common::templates::{spelled, templates};
use crate::common::writers::{self, Call, AMBIGUOUS};
use prompt::{ChatProcessor, Event, Piece, Prompt, RenderRequest, Splitter};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use protocol::{Message, NoticeCode, Role, ToolCall};
use serde_json::{json, Map, Value};

/// The tools of a request; the types of their arguments are known.
const TOOLS: [(&str, &[(&str, &str)]); 4] = [
    (
        "w",
        &[
            ("content", "string"),
            ("path", "string"),
            ("n", "integer"),
            ("tags", "array"),
        ],
    ),
    (
        "get_weather",
        &[
            ("city", "string"),
            ("days", "integer"),
            ("metric", "boolean"),
            ("x", "number"),
        ],
    ),
    ("Edit-2", &[("old", "string"), ("new", "string"), ("where", "object")]),
    ("rm", &[]),
];

static OFFERED: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let one = |(name, arguments): &(&str, &[(&str, &str)])| {
        let properties: Map<String, Value> = arguments
            .iter()
            .map(|(key, kind)| {
                let schema = match *kind {
                    "array" => json!({"type": "array", "items": {"type": "string"}}),
                    "object" => json!({"type": "object", "properties": {"file": {"type": "string"}, "line": {"type": "integer"}}}),
                    kind => json!({ "type": kind }),
                };
                ((*key).to_owned(), schema)
            })
            .collect();
        json!({"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties}}})
    };
    TOOLS.iter().map(one).collect()
});

fn text(fragments: &'static [String]) -> impl Strategy<Value = String> + Clone {
    prop::collection::vec(prop::sample::select(fragments), 0..6).prop_map(|parts| parts.concat())
}

fn value(kind: &str, text: impl Strategy<Value = String> + Clone + 'static) -> BoxedStrategy<Value> {
    match kind {
        "string" => text.prop_map(Value::from).boxed(),
        "integer" => any::<i32>().prop_map(Value::from).boxed(),
        "number" => prop_oneof![
            any::<i16>().prop_map(|n| json!(f64::from(n) / 8.0 + 0.0625)),
            any::<i16>().prop_map(Value::from)
        ]
        .boxed(),
        "boolean" => any::<bool>().prop_map(Value::from).boxed(),
        "array" => prop::collection::vec(text, 0..3).prop_map(Value::from).boxed(),
        _ => (text, any::<u8>())
            .prop_map(|(file, line)| json!({"file": file, "line": line}))
            .boxed(),
    }
}

fn call(text: impl Strategy<Value = String> + Clone + 'static) -> impl Strategy<Value = Call> {
    let tools = TOOLS.map(|(name, arguments)| {
        let fields: Vec<_> = arguments
            .iter()
            .map(|(key, kind)| {
                prop::option::of(value(kind, text.clone())).prop_map(move |value| Some(((*key).to_owned(), value?)))
            })
            .collect();
        fields
            .prop_map(move |fields| (name.to_owned(), fields.into_iter().flatten().collect()))
            .boxed()
    });
    prop::strategy::Union::new(tools)
}

fn read(format: &str, source: &str, characters: usize) -> Vec<Event> {
    let splitter = Splitter::named(format, false, true).unwrap().with_tools(&OFFERED);
    crate::common::split(splitter, source, characters)
}

fn calls(events: &[Event]) -> Vec<Call> {
    let call = |event: &Event| match &event.piece {
        Piece::ToolCall { name, arguments } => Some((name.clone(), arguments.as_object().unwrap().clone())),
        _ => None,
    };
    events.iter().filter_map(call).collect()
}

/// The outcome of a reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// Exactly what was written.
    Exact,
    /// No call, and a notice.
    GivenUp,
    /// Other calls, which are written in the very same characters: the proof that the format is ambiguous.
    Same,
    Wrong,
}

fn outcome(format: &str, written: &[Call], source: &str, events: &[Event]) -> Outcome {
    let found = calls(events);
    let notice = events
        .iter()
        .any(|event| matches!(&event.piece, Piece::Notice(notice) if notice.code == NoticeCode::BrokenToolCall));
    if found == written {
        Outcome::Exact
    } else if found.is_empty() && notice {
        Outcome::GivenUp
    } else if rewritten(format, events, source).is_some_and(|text| bare(&text) == bare(source)) {
        Outcome::Same
    } else {
        Outcome::Wrong
    }
}

/// Calls as the source has them, of which this stretch stands between their markers: as this format writes them, or as
/// another one that shares its markers.
fn same(format: &str, calls: &[Call], source: &str, between: &str) -> Option<String> {
    let others = Splitter::names().filter_map(|name| writers::write(name, calls));
    let mut written = writers::write(format, calls).into_iter().chain(others);
    written.find(|text| bare(source).contains(&bare(text)) && bare(text).contains(&bare(between)))
}

/// The events, written again: the calls between two markers, words and thoughts as they are.
fn rewritten(format: &str, events: &[Event], source: &str) -> Option<String> {
    let mut text = String::new();
    let mut rest = events;
    while let Some(event) = rest.first() {
        let together = rest.iter().take_while(|other| other.source == event.source).count();
        match &event.piece {
            Piece::ToolCall { .. } => text.push_str(&same(
                format,
                &calls(&rest[..together]),
                source,
                &source[event.source.clone()],
            )?),
            Piece::Text(words) | Piece::Thinking(words) => text.push_str(words),
            Piece::Notice(_) => {}
        }
        rest = &rest[if matches!(event.piece, Piece::ToolCall { .. }) {
            together
        } else {
            1
        }..];
    }
    Some(text)
}

/// Without blanks and the markers around several calls, a thought or a message, which stand between calls as the model
/// likes.
fn bare(text: &str) -> String {
    const BETWEEN: [&str; 32] = [
        "<tool_calls:opensource>",
        "</tool_calls:opensource>",
        "<|begin_of_box|>",
        "<|end_of_box|>",
        "<tool_calls>",
        "</tool_calls>",
        "<｜tool_calls_begin｜>",
        "<｜tool_calls_end｜>",
        "<|open|>tools<|sep|>",
        "<|close|>tools<|sep|>",
        "<|close|>message<|sep|>",
        "<|open|>think<|sep|>",
        "<|close|>think<|sep|>",
        "<|open|>response<|sep|>",
        "<|close|>response<|sep|>",
        "<think>",
        "</think>",
        "<think:opensource>",
        "</think:opensource>",
        "<seed:think>",
        "</seed:think>",
        "<longcat_think>",
        "</longcat_think>",
        "<mm:think>",
        "</mm:think>",
        "<|channel>thought\n",
        "<|channel>",
        "<channel|>",
        "<|start|>",
        "<|message|>",
        "<|eom|>",
        "<|eot|>",
    ];
    let text = BETWEEN
        .iter()
        .fold(text.to_owned(), |text, marker| text.replace(marker, ""));
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

fn runner(cases: u32) -> TestRunner {
    let seed: u64 = std::env::var("PONDER_SEED").map_or(20_261_121, |seed| seed.parse().unwrap());
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

#[test]
fn what_was_written_is_called_and_nothing_else() {
    let cases = if std::env::var_os("PONDER_FULL").is_some() {
        20_000
    } else {
        500
    };
    for format in Splitter::names().filter(|format| writers::write(format, &[]).is_some()) {
        let text = text(fragments(format));
        let answer = (
            prop::sample::select(vec!["", "Sure.\n", "I call it:\n\n"]),
            prop::collection::vec(call(text), 1..4),
            prop::sample::select(vec![usize::MAX, 1, 3, 7]),
        );
        let outcomes = std::cell::RefCell::new(BTreeMap::<Outcome, u32>::new());
        let result = runner(cases).run(&answer, |(words, written, characters)| {
            let words = if matches!(
                format,
                "functionary" | "harmony" | "llama3" | "llama4" | "muse" | "xlam"
            ) {
                ""
            } else {
                words
            };
            let source = format!("{words}{}", writers::write(format, &written).unwrap());
            let events = read(format, &source, characters);
            let outcome = outcome(format, &written, &source, &events);
            *outcomes.borrow_mut().entry(outcome).or_default() += 1;
            let allowed = outcome == Outcome::Exact || outcome != Outcome::Wrong && AMBIGUOUS.contains(&format);
            prop_assert!(
                allowed,
                "{outcome:?}: {source:?}\n{:?}",
                crate::common::written(&events)
            );
            Ok(())
        });
        result.unwrap_or_else(|error| panic!("{format}: {error}"));
        println!("report: {format}: {:?}", outcomes.into_inner());
    }
}

/// The proof that a format is ambiguous: one call whose text holds what ends a call and begins another one is written
/// in the same characters as two calls.
#[test]
fn one_call_may_be_written_like_two() {
    for format in AMBIGUOUS {
        let with = |content: &str| {
            writers::write(
                format,
                &[("w".into(), Map::from_iter([("content".to_owned(), json!(content))]))],
            )
            .unwrap()
        };
        let plain = with("<QUOKKA");
        let (before, after) = plain.split_once("<QUOKKA").unwrap();
        assert_eq!(
            with(&format!("<a{after}{before}<b")),
            format!("{}{}", with("<a"), with("<b")),
            "{format}"
        );
    }
}

/// The ids that a template writes after its question's prompt for an answer that consists of these calls.
fn rendered(processor: &ChatProcessor, written: &[Call]) -> Option<(Prompt, Vec<u32>)> {
    let question = Message::text(Role::User, "How is it in Oslo?");
    let mut answer = Message::text(Role::Assistant, "");
    answer.tool_calls = written
        .iter()
        .enumerate()
        .map(|(at, (name, arguments))| ToolCall {
            // As Kimi's models name them; the others' templates take any.
            id: format!("functions.{name}:{at}"),
            name: name.clone(),
            arguments: Value::Object(arguments.clone()),
        })
        .collect();
    let request = |messages: &[Message], add_generation_prompt| {
        let request = RenderRequest {
            messages,
            tools: &OFFERED,
            thinking: None,
            add_generation_prompt,
            images: &[],
        };
        processor.prompt(&request).ok()
    };
    let asked = request(std::slice::from_ref(&question), true)?;
    let whole = request(&[question, answer], false)?;
    let common = asked.ids.iter().zip(&whole.ids).take_while(|(a, b)| a == b).count();
    let mut prompt = asked;
    prompt.ids.truncate(common);
    prompt.text = processor.decode(&prompt.ids).ok()?;
    Some((prompt, whole.ids[common..].to_vec()))
}

fn read_ids(processor: &ChatProcessor, prompt: &Prompt, ids: &[u32]) -> Vec<Event> {
    let mut parser = processor.parser(prompt, true, &[]).with_tools(&OFFERED);
    let mut events: Vec<Event> = ids.iter().flat_map(|id| parser.push_event(*id)).collect();
    events.extend(parser.finish_events());
    events
}

/// Templates that write texts in Python's quotation marks without escaping anything: what is read has Python's escapes,
/// so texts for these hold neither a backslash nor the mark.
const UNESCAPED: [&str; 2] = ["LFM2.5-8B-A1B", "lfm2_2_5_v2"];

/// The same, by the templates of real models, for those whose plain calls are read. `PONDER_TEMPLATES` names the
/// folder.
#[test]
fn what_templates_write_is_called_and_nothing_else() {
    let Some(folder) = std::env::var_os("PONDER_TEMPLATES") else {
        println!("skipped: PONDER_TEMPLATES names no folder of templates; `./dev test` does");
        return;
    };
    let cases = if std::env::var_os("PONDER_FULL").is_some() {
        500
    } else {
        20
    };
    let plain: Call = (
        "w".into(),
        Map::from_iter([("content".to_owned(), json!("hello")), ("n".to_owned(), json!(3))]),
    );
    let (mut known, mut wrong) = (BTreeMap::<Outcome, usize>::new(), Vec::new());
    let mut names = 0;
    for path in templates(Path::new(&folder)) {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let source = std::fs::read_to_string(&path).unwrap();
        let (processor, _) = crate::common::byte_speaker(&spelled(&source), &source);
        let reads = |written: &[Call]| {
            let (prompt, ids) = rendered(&processor, written)?;
            let events = read_ids(&processor, &prompt, &ids);
            let found = calls(&events);
            let same = || rendered(&processor, &found).is_some_and(|(_, again)| again == ids);
            let notice = || crate::common::written(&events).contains(&"N:broken_tool_call".to_owned());
            let outcome = match () {
                () if found == written => Outcome::Exact,
                () if found.is_empty() && notice() => Outcome::GivenUp,
                () if same() => Outcome::Same,
                () => Outcome::Wrong,
            };
            Some((
                outcome,
                format!(
                    "{:?}\n  {:?}",
                    processor.decode(&ids).ok()?,
                    crate::common::written(&events)
                ),
            ))
        };
        if reads(std::slice::from_ref(&plain)).is_none_or(|(outcome, _)| outcome != Outcome::Exact) {
            continue;
        }
        names += 1;
        let unescaped = UNESCAPED.contains(&name.as_str());
        let text = text(fragments("qwen")).prop_map(move |text| {
            if unescaped {
                text.replace(['\\', '\''], "")
            } else {
                text
            }
        });
        let argument = |key: &'static str| {
            prop::option::of(text.clone()).prop_map(move |value| Some((key.to_owned(), Value::from(value?))))
        };
        let fields = (argument("content"), argument("path"), any::<i32>());
        let call = fields.prop_map(|(content, path, n)| {
            let fields: Map<String, Value> = [content, path]
                .into_iter()
                .flatten()
                .chain([("n".to_owned(), json!(n))])
                .collect();
            ("w".to_owned(), fields)
        });
        let answer = prop::collection::vec(call, 1..3);
        let known = std::cell::RefCell::new(&mut known);
        let result = runner(cases).run(&answer, |written| {
            // Some templates refuse several calls.
            let Some((outcome, shown)) = reads(&written) else {
                return Ok(());
            };
            *known.borrow_mut().entry(outcome).or_default() += 1;
            prop_assert!(outcome != Outcome::Wrong, "{shown}");
            Ok(())
        });
        if let Err(error) = result {
            wrong.push(format!("{name}: {error}"));
        }
    }
    println!("report: calls written by {names} templates: {known:?}");
    assert!(wrong.is_empty(), "{} templates:\n{}", wrong.len(), wrong.join("\n"));
}
