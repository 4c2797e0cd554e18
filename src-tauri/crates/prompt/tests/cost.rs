//! What reading one token costs: detokenizer, marker search and channels together.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::time::{Duration, Instant};

use prompt::{ChatProcessor, Prompt, Splitter};

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
