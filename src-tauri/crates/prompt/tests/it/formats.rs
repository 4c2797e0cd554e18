//! Every format: hand-written cases, fed as text and as tokens, and what holds for whatever a model may write.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use crate::common::{byte_speaker, written};
use prompt::{ChatProcessor, Event, Piece, Prompt, Splitter};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Fixture {
    tools: Vec<Value>,
    formats: BTreeMap<String, Vec<Case>>,
}

/// A model's output and the expected events: `T:` a thought, `A:` the answer, `C:` a call, `N:` a notice.
#[derive(Deserialize)]
struct Case {
    source: String,
    events: Vec<String>,
    #[serde(default)]
    opened: bool,
    #[serde(default)]
    thinking: Option<String>,
}

/// The cases of most formats in one file, those of the others in a file of their own each.
static FIXTURE: LazyLock<Fixture> = LazyLock::new(|| {
    let mut fixture: Fixture = serde_json::from_str(include_str!("../fixtures/channels.json")).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/formats");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let cases = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        fixture
            .formats
            .insert(path.file_stem().unwrap().to_str().unwrap().to_owned(), cases);
    }
    fixture
});

impl Case {
    fn thinking_on(&self) -> bool {
        self.thinking.as_deref() != Some("off")
    }
}

fn splitter(format: &str, opened: bool, thinking_on: bool) -> Splitter {
    Splitter::named(format, opened, thinking_on)
        .unwrap()
        .with_tools(&FIXTURE.tools)
}

/// Neighboring pieces of one stretch as one event, so that the size of the pieces does not show; a paragraph that
/// separates two stretches has no place and stays alone.
fn joined(events: Vec<Event>) -> Vec<Event> {
    let mut out: Vec<Event> = Vec::new();
    for event in events {
        let goes_on = |last: &&mut Event| {
            last.source.end == event.source.start && !last.source.is_empty() && !event.source.is_empty()
        };
        if let Some(last) = out.last_mut().filter(goes_on) {
            match (&mut last.piece, &event.piece) {
                (Piece::Text(text), Piece::Text(more)) | (Piece::Thinking(text), Piece::Thinking(more)) => {
                    text.push_str(more);
                    last.source.end = event.source.end;
                    continue;
                }
                _ => {}
            }
        }
        out.push(event);
    }
    out
}

fn split<'a>(mut splitter: Splitter, pieces: impl IntoIterator<Item = &'a str>) -> Vec<Event> {
    let mut events: Vec<Event> = pieces.into_iter().flat_map(|piece| splitter.push(piece)).collect();
    events.extend(splitter.finish());
    joined(events)
}

/// A text in pieces of these numbers of characters, repeated.
fn in_pieces<'a>(source: &'a str, characters: &[usize]) -> Vec<&'a str> {
    let mut pieces = Vec::new();
    let mut rest = source;
    for length in characters.iter().cycle() {
        let end = rest.char_indices().nth(*length).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    pieces
}

/// The first error in the places of these events.
fn misplaced(source: &str, events: &[Event], format: &str) -> Option<String> {
    let markers: Vec<&str> = Splitter::named(format, false, true).unwrap().markers().collect();
    let mut covered = vec![false; source.len()];
    let mut last = 0;
    for event in events {
        let range = event.source.clone();
        if let Piece::Text(text) | Piece::Thinking(text) = &event.piece {
            if !range.is_empty() && source.get(range.clone()) != Some(text.as_str()) {
                return Some(format!("{text:?} is not at {range:?}"));
            }
        }
        if range.start < last {
            return Some(format!("{event:?} stands before what came before it"));
        }
        last = range.start;
        covered[range].fill(true);
    }
    let mut rest = 0;
    while let Some(start) = (rest..source.len()).find(|at| !covered[*at]) {
        let end = (start..source.len()).find(|at| covered[*at]).unwrap_or(source.len());
        if let Some(lost) = words(&source[start..end], &markers, format, end == source.len()) {
            return Some(format!("{lost:?} is lost"));
        }
        rest = end;
    }
    None
}

/// The rest of a stretch that no event covers, without markers, whitespace and the names of channels.
fn words(stretch: &str, markers: &[&str], format: &str, at_end: bool) -> Option<String> {
    let names: &[&str] = match format {
        "harmony" => &[
            "assistant",
            "analysis",
            "commentary",
            "final",
            "musings",
            "to=functions.f",
            "<|constrain|>json",
            "json",
        ],
        "gemma4" => &["thought", "response", "final", "answer"],
        "muse" => &[
            "assistant",
            "to=self",
            "to=user",
            "to=commentary",
            "to=functions.f",
            "to=f",
        ],
        "functionary" => &["all\n", "f\n"],
        _ => &[],
    };
    let mut rest = stretch.trim_start();
    while !rest.is_empty() {
        // Names that a model makes up are part of a header.
        let named = ["<|channel|>", "<|constrain|>", "to="]
            .iter()
            .find_map(|word| rest.strip_prefix(word))
            .filter(|_| matches!(format, "harmony" | "muse"));
        if let Some(after) = named {
            rest = after
                .trim_start_matches(|c: char| c.is_alphanumeric() || "._-".contains(c))
                .trim_start();
            continue;
        }
        let known = markers.iter().chain(names).find_map(|word| rest.strip_prefix(word));
        match known {
            Some(after) => rest = after.trim_start(),
            None if at_end && names.iter().any(|name| name.starts_with(rest.trim_end())) => return None,
            None => return Some(rest.to_owned()),
        }
    }
    None
}

#[test]
fn every_format_reads_its_cases() {
    let names: Vec<&str> = Splitter::names().collect();
    assert_eq!(names, FIXTURE.formats.keys().map(String::as_str).collect::<Vec<_>>());
    for (format, cases) in &FIXTURE.formats {
        assert!(cases.len() >= 12, "{format}");
        for case in cases {
            let source = &case.source;
            let new = || splitter(format, case.opened, case.thinking_on());
            let whole = split(new(), [source.as_str()]);
            assert_eq!(written(&whole), case.events, "{format}: {source:?}");
            for size in [1, 3, 7] {
                let pieces = in_pieces(source, &[size]);
                assert_eq!(split(new(), pieces), whole, "{format}: {source:?} in pieces of {size}");
            }
            if case.thinking_on() {
                assert_eq!(
                    misplaced(source, &whole, format),
                    None,
                    "{format}: {source:?}: {whole:?}"
                );
            }
        }
    }
}

/// A model whose tokens are the markers of a format and single bytes.
fn speaker(format: &str) -> (ChatProcessor, tokenizers::Tokenizer) {
    let markers: Vec<&str> = Splitter::named(format, false, true).unwrap().markers().collect();
    // Some are told by how they stand beside each other, some by words of the template.
    let words = match format {
        "command-r" => "followed by a json-formatted list of actions",
        "functionary" => ">>>${recipient}",
        "xlam" => "in a single JSON array",
        _ => "",
    };
    byte_speaker(
        &markers,
        &format!("{}\n{}\n{words}", markers.join("\n"), markers.concat()),
    )
}

#[test]
fn the_same_comes_of_tokens() {
    for (format, cases) in &FIXTURE.formats {
        let (processor, library) = speaker(format);
        let ids = |text: &str| library.encode_fast(text, false).unwrap().get_ids().to_vec();
        let opening = match format.as_str() {
            "harmony" => "<|start|>assistant<|channel|>analysis<|message|>".to_owned(),
            "muse" => "<|start|>assistant to=self<|message|>".to_owned(),
            "gemma4" => "<|channel>thought\n".to_owned(),
            _ => Splitter::named(format, false, true)
                .unwrap()
                .markers()
                .next()
                .unwrap()
                .to_owned(),
        };
        for case in cases {
            let source = &case.source;
            let text = if case.opened { opening.as_str() } else { "" };
            let prompt = Prompt {
                text: text.to_owned(),
                ids: ids(text),
                ..Prompt::default()
            };
            let mut parser = processor
                .parser(&prompt, case.thinking_on(), &[])
                .with_tools(&FIXTURE.tools);
            let mut events: Vec<Event> = ids(source).into_iter().flat_map(|id| parser.push_event(id)).collect();
            events.extend(parser.finish_events());
            let one_shot = split(splitter(format, case.opened, case.thinking_on()), [source.as_str()]);
            assert_eq!(joined(events), one_shot, "{format}: {source:?}");
        }
    }
}

/// Any sequence of markers and texts that a model of this format may write.
fn script(format: &str) -> impl Strategy<Value = Vec<String>> {
    let mut words: Vec<String> = Splitter::named(format, false, true)
        .unwrap()
        .markers()
        .map(str::to_owned)
        .collect();
    let cases = &FIXTURE.formats[format];
    words.extend(
        cases
            .iter()
            .map(|case| case.source.clone())
            .filter(|source| source.len() < 160),
    );
    let texts = [
        " ",
        "\n\n",
        "a",
        "b c",
        "<",
        "🐱",
        "12",
        "x\n",
        "thought\n",
        "tho",
        "assistant",
        "{",
        "[f(",
        "}",
        "\"",
        "f",
        "to=functions.f",
    ];
    words.extend(texts.map(str::to_owned));
    if format == "muse" {
        words.extend(
            [
                " to=self<|message|>",
                " to=user<|message|>",
                "<|start|>assistant",
                " to=f<|message|>",
            ]
            .map(str::to_owned),
        );
    }
    if format == "functionary" {
        words.extend(["all\n", "f\n", "{\"a\": 1}", ">>>all\n"].map(str::to_owned));
    }
    if format == "harmony" {
        words.extend(
            [
                "analysis",
                "commentary",
                "final",
                "musings",
                " to=functions.f",
                " <|constrain|>json",
                " json",
                "{\"a\": 1}",
            ]
            .map(str::to_owned),
        );
    }
    prop::collection::vec(prop::sample::select(words), 0..12)
}

fn for_every_format(test: impl Fn(&str, &mut TestRunner)) {
    let mut config = Config::default();
    config.cases = config.cases.min(10_000);
    config.failure_persistence = None;
    for format in Splitter::names() {
        test(format, &mut TestRunner::new(config.clone()));
    }
}

#[test]
fn the_reading_does_not_depend_on_the_pieces() {
    for_every_format(|format, runner| {
        let cuts = prop::collection::vec(1..6usize, 1..8);
        let strategy = (script(format), cuts, any::<bool>(), any::<bool>());
        let outcome = runner.run(&strategy, |(words, cuts, opened, thinking_on)| {
            let source = words.concat();
            let whole = split(splitter(format, opened, thinking_on), [source.as_str()]);
            let pieces = in_pieces(&source, &cuts);
            prop_assert_eq!(
                &split(splitter(format, opened, thinking_on), pieces.iter().copied()),
                &whole,
                "{:?}",
                pieces
            );
            Ok(())
        });
        outcome.unwrap_or_else(|error| panic!("{format}: {error}"));
    });
}

#[test]
fn places_markers_and_whitespace_cover_the_source() {
    for_every_format(|format, runner| {
        let outcome = runner.run(&(script(format), any::<bool>()), |(words, opened)| {
            let source = words.concat();
            let events = split(splitter(format, opened, true), [source.as_str()]);
            prop_assert_eq!(misplaced(&source, &events, format), None, "{:?}: {:?}", source, events);
            Ok(())
        });
        outcome.unwrap_or_else(|error| panic!("{format}: {error}"));
    });
}
