//! Templates of strangers: each ends in time, within its memory, and never the process.
#![allow(clippy::unwrap_used)]

mod pattern;
mod random;
mod sources;
mod values;

use std::sync::mpsc::{channel, RecvTimeoutError};
use std::time::{Duration, Instant};

use prompt::{RenderLimits, Template};
use serde_json::{json, Map, Value};

use pattern::Pattern;
use random::Random;

/// Time for a template in a list of models, and how far a build for tests on a busy computer may be beyond it.
const TIME: Duration = Duration::from_secs(2);
const SLACK: Duration = Duration::from_secs(8);
/// More than any one rendering may hold.
const MEMORY: u64 = 450 << 20;
/// Templates of a full run, and of an ordinary one.
const FULL: usize = 400;
const ORDINARY: usize = 40;

/// Peak of the process's memory, which is reset; `None` where the system does not tell.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let peak = peak.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10;
    std::fs::write("/proc/self/clear_refs", "5").ok()?;
    Some(peak)
}

fn variables() -> Map<String, Value> {
    let variables = json!({
        "messages": [
            {"role": "system", "content": "You are brief."},
            {"role": "user", "content": "How is it in Oslo? 🐱"},
            {"role": "assistant", "content": "", "tool_calls": [
                {"type": "function", "id": "a1B2c3D4e", "function": {"name": "weather", "arguments": {"city": "Oslo"}}}
            ]},
        ],
        "tools": [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}],
        "add_generation_prompt": true,
    });
    variables.as_object().unwrap().clone()
}

/// Compiles and renders, as a list of models does; on a thread with the stack that a server's has.
fn run(source: &str) -> (Result<Result<usize, String>, RecvTimeoutError>, Duration) {
    let (sender, receiver) = channel();
    let source = source.to_owned();
    let started = Instant::now();
    let render = move || {
        let rendered = RenderLimits::look().lasting(TIME).within(|| {
            let template = Template::new(&json!(source), Map::new())?;
            template.render(variables())
        });
        // Whoever waits no longer has failed already.
        let _ = sender.send(rendered.map(|text| text.len()).map_err(|error| error.to_string()));
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(render).unwrap();
    (receiver.recv_timeout(TIME + SLACK), started.elapsed())
}

fn shown(source: &str) -> String {
    let mut shown: String = source.chars().take(160).collect();
    if shown.len() < source.len() {
        shown += &format!("… ({} bytes)", source.len());
    }
    shown.replace('\n', "\\n")
}

fn check(pattern: &Pattern, source: &str) -> Option<String> {
    peak_memory();
    let (outcome, took) = run(source);
    let peak = peak_memory().unwrap_or(0);
    println!(
        "{:.2} s {:4} MB {}: {} -> {outcome:?}",
        took.as_secs_f64(),
        peak >> 20,
        pattern.name,
        shown(source),
    );
    let fault = match outcome {
        Err(_) => "it did not end",
        Ok(Ok(_)) if pattern.refused => "it was rendered",
        _ if peak > MEMORY => "it took too much memory",
        _ => return None,
    };
    Some(format!("{}: {fault}: {}", pattern.name, shown(source)))
}

#[test]
fn hostile_templates_end() {
    let full = std::env::var_os("PONDER_FULL").is_some();
    let seed = std::env::var("PONDER_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut random = Random::new(seed.unwrap_or(20_261_121));
    let patterns: Vec<&Pattern> = values::PATTERNS.iter().chain(sources::PATTERNS).collect();
    let count = if full { FULL } else { ORDINARY };
    let mut faults = Vec::new();
    for number in 0..count {
        let pattern = patterns[number % patterns.len()];
        let source = (pattern.write)(&mut random);
        faults.extend(check(pattern, &source));
    }
    println!("report: hostile templates: {count} of {} patterns", patterns.len());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
