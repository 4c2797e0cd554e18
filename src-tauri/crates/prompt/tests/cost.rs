//! The cost of reading an answer: detokenizer, marker search and channels together, for usual answers and for hostile
//! ones.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

use common::{pieces, writers};
use prompt::{ChatProcessor, Prompt, Splitter};
use serde_json::{json, Map};

/// Microseconds per token that nobody notices beside a model's step: what an optimized build has to keep, and one with
/// debug assertions.
const BOUND: f64 = if cfg!(debug_assertions) { 20.0 } else { 1.0 };

/// A token is about this many characters.
const TOKEN: usize = 4;

/// The cost of a round per unit, in microseconds: the least of many short ones, because other programs of the computer
/// only ever make one longer, and of more if none keeps the bound.
fn best(units: usize, mut round: impl FnMut()) -> f64 {
    let mut least = f64::INFINITY;
    for rounds in 0..2000 {
        let start = Instant::now();
        round();
        least = least.min(start.elapsed().as_secs_f64() * 1e6 / units as f64);
        if rounds >= 50 && least < BOUND {
            break;
        }
    }
    least
}

const TALK: &str = "The cat 🐱 sat < the mat; it was 12:30, and {\"so\": [1, 2]} it went on.\n\n";

/// A call of this format whose argument is this text.
fn call(format: &str, text: &str) -> Option<String> {
    writers::write(
        format,
        &[("f".to_owned(), Map::from_iter([("a".to_owned(), json!(text))]))],
    )
}

#[test]
fn a_token_costs_little() {
    let pebble = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pebble/model");
    let processor = ChatProcessor::open(&pebble).unwrap();
    let talk = TALK.repeat(20);
    let answer = format!(
        "<|channel>thought\n{talk}<channel|>{talk}{}",
        call("gemma4", &talk).unwrap()
    );
    let (_, ids) = processor.reader(&answer, false, true).unwrap();
    let prompt = Prompt::default();
    for stops in [Vec::new(), vec!["END OF ANSWER".to_owned()]] {
        let cost = best(ids.len(), || {
            let mut parser = processor.parser(&prompt, true, &stops);
            let pieces: usize = ids.iter().map(|id| parser.push(*id).len()).sum();
            assert!(pieces + parser.finish().len() > 1);
        });
        println!(
            "report: gemma4, markers as tokens, {} stop texts: {cost:.3} µs per token ({} tokens)",
            stops.len(),
            ids.len()
        );
        assert!(cost < BOUND, "{cost} µs");
    }

    println!("report: µs per token of {TOKEN} characters, markers in text: in a thought, in words, in a call");
    for format in Splitter::names() {
        let cost = |opened: bool, text: &str| {
            let pieces = pieces(text, TOKEN);
            best(pieces.len(), || {
                read(format, opened, &pieces);
            })
        };
        let in_call = call(format, &talk).unwrap_or_else(|| talk.clone());
        let costs = [cost(true, &talk), cost(false, &talk), cost(false, &in_call)];
        println!("report: {format}: {:.3}, {:.3}, {:.3}", costs[0], costs[1], costs[2]);
        assert!(costs.iter().all(|cost| *cost < BOUND), "{format}: {costs:?} µs");
    }
}

/// A text of any length that makes a parser look at the same characters again and again, if it can be made to: after
/// `begin` come `first`, over and over for half of the length unless it is empty, `middle`, and `then` for the rest.
#[derive(Debug, Clone, Default)]
struct Hostile {
    /// True if the prompt opened a thought.
    opened: bool,
    begin: String,
    first: String,
    middle: String,
    then: String,
}

impl Hostile {
    fn new(begin: impl Into<String>, then: impl Into<String>) -> Self {
        let (begin, then) = (begin.into(), then.into());
        Self {
            begin,
            then,
            ..Self::default()
        }
    }

    /// With half of the length before what is repeated last.
    fn halves(begin: impl Into<String>, first: &str, middle: impl Into<String>, then: impl Into<String>) -> Self {
        let (first, middle) = (first.to_owned(), middle.into());
        Self {
            first,
            middle,
            ..Self::new(begin, then)
        }
    }

    fn of_length(&self, length: usize) -> String {
        let first = (length / 2).checked_div(self.first.len()).unwrap_or(0);
        let rest = length - first * self.first.len();
        let then = self.then.repeat(rest / self.then.len());
        format!("{}{}{}{then}", self.begin, self.first.repeat(first), self.middle)
    }
}

/// Openings without an end, texts that seem to end, blanks, calls that are whole but for a word, long names.
fn hostile(format: &str) -> Vec<Hostile> {
    let markers: Vec<&str> = Splitter::named(format, false, true).unwrap().markers().collect();
    let open = markers[0];
    let mut found: Vec<Hostile> = markers.iter().map(|marker| Hostile::new("", *marker)).collect();
    found.extend(markers.iter().map(|marker| Hostile::new(open, format!("{marker}{{"))));
    found.push(Hostile::new("thought", " "));
    found.push(Hostile::new(format!("{open}thought"), " "));
    let Some(written) = call(format, "QUOKKA") else {
        return found;
    };
    let (before, after) = written.split_once("QUOKKA").unwrap();
    let half = &after[..after.floor_char_boundary(after.len() / 2)];
    for marker in markers.iter().filter(|marker| before.contains(**marker)) {
        found.push(Hostile::new(format!("{marker}["), " "));
        found.push(Hostile::new(format!("{marker}<function=f>{{\"a\": 1}}"), " "));
    }
    found.push(Hostile::new("", before));
    found.push(Hostile::new("", format!("{before}{half}")));
    found.push(Hostile::new("", format!("{before}\"")));
    found.push(Hostile::new("", &written));
    found.push(Hostile::new(before, after));
    found.push(Hostile::new(before, half));
    found.push(Hostile::new(format!("{before}{half}"), " "));
    found.push(Hostile::new(format!("{before}{after}"), " x"));
    found.push(Hostile::new(&written, after));
    found.extend(markers.iter().map(|marker| Hostile::new(before, *marker)));
    let in_thought = found
        .iter()
        .filter(|text| text.begin.is_empty() && text.then.starts_with(before));
    let in_thought: Vec<Hostile> = in_thought
        .cloned()
        .map(|text| Hostile { opened: true, ..text })
        .collect();
    found.extend(in_thought);
    // The call but for what closes it, and a word; many calls and a word: at each marker they may end or not.
    let closing = markers
        .iter()
        .filter_map(|marker| after.rfind(marker))
        .max()
        .unwrap_or(after.len());
    let opening = markers
        .iter()
        .filter_map(|marker| Some(before.rfind(marker)? + marker.len()))
        .max()
        .unwrap_or(0);
    let calls = "{\"name\": \"f\", \"arguments\": {}};";
    for marker in &markers {
        found.push(Hostile::halves(before, "a", after, *marker));
        found.push(Hostile::halves(before, "a", format!("{}x", &after[..closing]), *marker));
        found.push(Hostile::halves(&before[..opening], calls, "x", *marker));
    }
    if let Some((name, value)) = before.rsplit_once("<a>") {
        // The name of an element that is as long as the text, and closed by half.
        let space = &name[name.rfind("f\">").unwrap() + 3..];
        found.push(Hostile::halves(
            format!("{name}<"),
            "a",
            format!(">{value}x{space}</"),
            "a",
        ));
    }
    found
}

fn read(format: &str, opened: bool, pieces: &[&str]) {
    let mut splitter = Splitter::named(format, opened, true).unwrap();
    let events: usize = pieces.iter().map(|piece| splitter.push(piece).len()).sum();
    std::hint::black_box(events + splitter.finish().len());
}

/// A text that is read anew with each piece costs sixteen times as much a character if it has sixteen times the length;
/// memory that grows costs a little more than memory that is there.
const LINEAR: f64 = 6.0;

/// How long this thread has been on a processor, to the millisecond or so; if the system does not tell, how long it has
/// run.
fn on_processor() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = told.and_then(|told| told.split_whitespace().next()?.parse().ok());
    nanoseconds.map_or_else(|| START.elapsed(), Duration::from_nanos)
}

/// How many times as much a character of a text of this length costs as one of a sixteenth of it.
fn growth(format: &str, text: &Hostile, length: usize, characters: usize) -> f64 {
    let (short, long) = (text.of_length(length / 16), text.of_length(length));
    let (short, long) = (pieces(&short, characters), pieces(&long, characters));
    let read = |pieces: &[&str], times: usize| (0..times).for_each(|_| read(format, text.opened, pieces));
    // The least of some rounds, because other programs only ever make one longer.
    let (mut of_short, mut of_long) = (Duration::MAX, Duration::MAX);
    for _ in 0..5 {
        let start = Instant::now();
        read(&short, 4);
        of_short = of_short.min(start.elapsed() * 4);
        let start = Instant::now();
        read(&long, 1);
        of_long = of_long.min(start.elapsed());
        if of_long < of_short.mul_f64(LINEAR / 2.0) {
            return of_long.div_duration_f64(of_short);
        }
    }
    // Too little of the processor was left for that, so the process's own time decides, over enough characters that a
    // millisecond does not matter.
    let times = (1 << 22) / length;
    let start = on_processor();
    read(&short, 16 * times);
    let between = on_processor();
    read(&long, times);
    (on_processor() - between).div_duration_f64((between - start).max(Duration::from_millis(1)))
}

#[test]
fn a_hostile_text_costs_what_a_short_one_costs() {
    let length = if std::env::var_os("PONDER_FULL").is_some() {
        1 << 20
    } else {
        1 << 16
    };
    let mut texts = Vec::new();
    for format in Splitter::names() {
        for text in hostile(format) {
            // In one piece the search for markers is all that may go back.
            texts.extend((text.begin.is_empty() && !text.opened).then(|| (format, text.clone(), usize::MAX)));
            texts.push((format, text, TOKEN));
        }
    }
    let (next, grown) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        let work = || {
            while let Some((format, text, characters)) = texts.get(next.fetch_add(1, Ordering::Relaxed)) {
                let growth = growth(format, text, length, *characters);
                grown
                    .lock()
                    .unwrap()
                    .push((growth, format!("{format}: {text:?}, in pieces of {characters}")));
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        (0..threads).for_each(|_| drop(scope.spawn(work)));
    });
    let mut grown = grown.into_inner().unwrap();
    grown.sort_by(|one, other| other.0.total_cmp(&one.0));
    println!(
        "report: {} hostile texts of {length} characters cost at most {:.1} times as much a character as a sixteenth of them ({})",
        grown.len(),
        grown[0].0,
        grown[0].1
    );
    let failed: Vec<&(f64, String)> = grown.iter().filter(|(growth, _)| *growth >= LINEAR).collect();
    assert!(
        failed.is_empty(),
        "{} texts cost more the longer they are: {failed:#?}",
        failed.len()
    );
}
