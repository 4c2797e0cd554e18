//! What reading one token costs: detokenizer, marker search and channels together.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;
use std::time::{Duration, Instant};

use common::writers;
use prompt::{ChatProcessor, Prompt, Splitter};
use serde_json::{json, Map};

/// Microseconds per token that nobody notices beside a model's step.
const BOUND: f64 = 20.0;

/// The best of some rounds, per unit, in microseconds; other programs of the computer only ever make one longer.
fn best(units: usize, mut round: impl FnMut()) -> f64 {
    let once = |round: &mut dyn FnMut()| {
        let start = Instant::now();
        round();
        start.elapsed()
    };
    let best = (0..7).map(|_| once(&mut round)).min().unwrap_or(Duration::MAX);
    best.as_secs_f64() * 1e6 / units as f64
}

const TALK: &str = "The cat 🐱 sat < the mat; it was 12:30, and {\"so\": [1, 2]} it went on.\n\n";

#[test]
fn a_token_costs_little() {
    let pebble = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pebble/model");
    let processor = ChatProcessor::open(&pebble).unwrap();
    let thought = TALK.repeat(100);
    let (_, ids) = processor
        .reader(&format!("<|channel>thought\n{thought}<channel|>{thought}"), false, true)
        .unwrap();
    let prompt = Prompt::default();
    let cost = best(ids.len(), || {
        let mut parser = processor.parser(&prompt, true, &["END OF ANSWER".into()]);
        let pieces: usize = ids.iter().map(|id| parser.push(*id).len()).sum();
        assert!(pieces + parser.finish().len() > 1);
    });
    println!("report: gemma4, markers as tokens: {cost:.2} µs per token ({} tokens)", ids.len());
    assert!(cost < BOUND, "{cost} µs");

    // Markers in text, four characters at a time.
    for format in Splitter::names() {
        let characters: Vec<char> = thought.chars().collect();
        let pieces: Vec<String> = characters.chunks(4).map(|piece| piece.iter().collect()).collect();
        let cost = best(pieces.len(), || {
            let mut splitter = Splitter::named(format, true, true).unwrap();
            let events: usize = pieces.iter().map(|piece| splitter.push(piece).len()).sum();
            assert!(events + splitter.finish().len() > 0);
        });
        println!("report: {format}, markers in text: {cost:.2} µs per piece of four characters");
        assert!(cost < BOUND, "{format}: {cost} µs");
    }
}

/// The cost of a character in microseconds, of this text in pieces of four characters.
fn cost_of(format: &str, text: &str) -> f64 {
    let characters: Vec<char> = text.chars().collect();
    let pieces: Vec<String> = characters.chunks(4).map(|piece| piece.iter().collect()).collect();
    let start = Instant::now();
    let mut splitter = Splitter::named(format, false, true).unwrap();
    let events: usize = pieces.iter().map(|piece| splitter.push(piece).len()).sum();
    std::hint::black_box(events + splitter.finish().len());
    start.elapsed().as_secs_f64() * 1e6 / characters.len() as f64
}

/// What is repeated to make a parser look at the same text again and again: openings without an end, texts that seem to end, blanks.
fn hostile(format: &str) -> Vec<(String, String)> {
    let markers: Vec<&str> = Splitter::named(format, false, true).unwrap().markers().collect();
    let mut found: Vec<(String, String)> = markers.iter().map(|marker| (String::new(), (*marker).to_owned())).collect();
    let open = markers[0].to_owned();
    found.extend(markers.iter().map(|marker| (open.clone(), format!("{marker}{{"))));
    found.extend(markers.iter().map(|marker| (format!("{marker}["), " ".to_owned())));
    found.push(("thought".to_owned(), " ".to_owned()));
    found.push((format!("{open}thought"), " ".to_owned()));
    let call = ("f".to_owned(), Map::from_iter([("a".to_owned(), json!("QUOKKA"))]));
    let Some(written) = writers::write(format, &[call]) else {
        return found;
    };
    let (before, after) = written.split_once("QUOKKA").unwrap();
    let half = &after[..after.floor_char_boundary(after.len() / 2)];
    found.push((String::new(), before.to_owned()));
    found.push((String::new(), format!("{before}{half}")));
    found.push((String::new(), format!("{before}\"")));
    found.push((String::new(), written.clone()));
    found.push((before.to_owned(), after.to_owned()));
    found.push((before.to_owned(), half.to_owned()));
    found.push((format!("{before}{half}"), " ".into()));
    found.push((format!("{before}{after}"), " x".into()));
    found.push((written.clone(), after.to_owned()));
    found.extend(markers.iter().map(|marker| (before.to_owned(), (*marker).to_owned())));
    found
}

#[test]
fn a_hostile_text_costs_what_a_short_one_costs() {
    let long = if std::env::var_os("PONDER_FULL").is_some() {
        1 << 20
    } else {
        1 << 17
    };
    let mut worst = (0.0, String::new());
    for format in Splitter::names() {
        for (begin, unit) in hostile(format) {
            let text = |length: usize| format!("{begin}{}", unit.repeat(length / unit.len()));
            let (short, long) = (text(long / 16), text(long));
            // Other programs only ever make a round longer, so the least of some counts; a text of sixteen times the length that is read
            // anew with each piece would cost sixteen times as much a character.
            let grows = || cost_of(format, &long) / cost_of(format, &short).max(0.05);
            let growth = (0..5).map(|_| grows()).find(|growth| *growth < 8.0);
            let growth = growth.unwrap_or_else(|| panic!("{format}: {begin:?}, then {unit:?} again and again"));
            if growth > worst.0 {
                worst = (growth, format!("{format}: {begin:?}, {unit:?}"));
            }
        }
    }
    println!(
        "report: a text of sixteen times the length costs at most {:.1} times as much a character ({})",
        worst.0, worst.1
    );
}
