//! Schemas that nobody means well with: refused by name, or honored in bounded time and memory.
#![allow(clippy::unwrap_used)]

mod schemas;
mod walks;

use std::time::{Duration, Instant};

use constraint::{check, Vocabulary};
use schemas::Random;
use serde_json::{json, Map, Value};
use walks::{bytes, large, pebble, seed, vocabulary, walk};

/// The time limit of one schema, refused or compiled twice and walked, on a busy computer.
const MOST_TIME: Duration = Duration::from_secs(20);

/// The most memory of the process after all of them, in kB.
const MOST_MEMORY: u64 = 1 << 20;

fn nested(depth: usize) -> Value {
    (0..depth).fold(
        json!({"type": "null"}),
        |inner, _| json!({"type": "array", "items": inner}),
    )
}

/// Definitions `0` to `count`, each made of the name of the next one; the last is a number.
fn definitions(count: usize, one: impl Fn(&str) -> Value) -> Value {
    let mut all: Map<String, Value> = (0..count)
        .map(|n| (n.to_string(), one(&format!("#/$defs/{}", n + 1))))
        .collect();
    all.insert(count.to_string(), json!({"type": "integer"}));
    json!({"$defs": all, "$ref": "#/$defs/0"})
}

fn many(count: usize, one: impl Fn(usize) -> Value) -> Vec<Value> {
    (0..count).map(one).collect()
}

fn properties(count: usize, one: impl Fn(usize) -> (String, Value)) -> Value {
    Value::Object((0..count).map(one).collect())
}

/// Schemas that have to be refused, and the word that the refusal has to hold.
fn refused() -> Vec<(&'static str, Value)> {
    let both = |next: &str| json!({"type": "object", "properties": {"a": {"$ref": next, "type": "object"}, "b": {"$ref": next, "type": "object"}}});
    let all =
        |next: &str| json!({"allOf": [{"properties": {"a": {"$ref": next}, "b": {"$ref": next}}}, {"type": "object"}]});
    let mut named = vec![
        ("longer", json!({"description": "a".repeat(300 << 10)})),
        ("nest", nested(1100)),
        ("nest", definitions(5000, |next| json!({"$ref": next}))),
        ("too large", definitions(40, both)),
        ("too large", definitions(40, all)),
        (
            "oneOf",
            json!({"oneOf": many(3000, |n| json!({"properties": {"kind": {"const": n}}, "required": ["kind"], "type": "object"}))}),
        ),
        (
            "pattern",
            json!({"allOf": many(1500, |n| json!({"type": "string", "pattern": format!("a{n}|b.{{{n}}}")}))}),
        ),
        (
            "patternProperties",
            json!({"type": "object", "patternProperties": properties(200, |n| (format!("^(a|b)*a(a|b){{{n}}}$"), json!({})))}),
        ),
        ("file:///etc/passwd", json!({"$ref": "file:///etc/passwd"})),
        ("example.com", json!({"$ref": "https://example.com/schema"})),
        (
            "example.com",
            json!({"$id": "https://example.com/a", "type": "object", "properties": {"a": {"$ref": "b"}}}),
        ),
        (
            "127.0.0.1",
            json!({"allOf": [{"$ref": "http://127.0.0.1:1/"}, {"type": "object"}]}),
        ),
        ("other.json", json!({"$ref": "other.json#/a"})),
        ("nowhere", json!({"$ref": "#/nowhere"})),
        ("$dynamicRef", json!({"$dynamicRef": "#a"})),
        ("", json!({"type": "string", "pattern": "("})),
        ("", json!({"type": "string", "pattern": "(".repeat(5000)})),
        ("", json!({"type": "string", "pattern": r"(a)\1"})),
        ("", json!({"type": "string", "pattern": "^(?=a)b$"})),
        // llguidance cuts such values in the middle of a letter.
        ("", json!({"type": "integer", "minimum": "ö".repeat(99)})),
        ("", json!({"enum": "ä"})),
        ("", json!({"type": "object", "properties": []})),
        ("", json!({"type": "object", "required": "a"})),
    ];
    for keyword in [
        "not",
        "contains",
        "uniqueItems",
        "propertyNames",
        "if",
        "dependentRequired",
        "unevaluatedItems",
    ] {
        named.push((keyword, json!({keyword: {}})));
    }
    named
}

/// Schemas that may be honored or refused, but have to be one of both soon.
fn either() -> Vec<Value> {
    let mut all = vec![
        nested(95),
        json!({"$ref": "#"}),
        json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}),
        json!({"allOf": [{"$ref": "#"}, {"type": "object"}]}),
        json!({"anyOf": [{"$ref": "#"}, {"type": "object"}]}),
        json!({"type": "array", "items": {"$ref": "#"}, "minItems": 1}),
        json!({"type": "object", "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}, "required": ["a", "b"]}),
        json!({"$defs": {"t": {"properties": {"a": {"$ref": "#/$defs/t"}, "b": {"$ref": "#/$defs/t"}}},
            "u": {"properties": {"a": {"$ref": "#/$defs/u"}, "b": {"$ref": "#/$defs/u"}}}}, "allOf": [{"$ref": "#/$defs/t"}, {"$ref": "#/$defs/u"}]}),
        definitions(300, |next| json!({"$ref": next})),
        definitions(900, |next| json!({"type": "array", "items": {"$ref": next}})),
        definitions(
            40,
            |next| json!({"type": "object", "properties": {"a": {"$ref": next}, "b": {"$ref": next}}, "required": ["a", "b"]}),
        ),
        definitions(
            9,
            |next| json!({"type": "object", "properties": {"a": {"$ref": next, "type": "object"}, "b": {"$ref": next, "type": "object"}}}),
        ),
        json!({"type": "string", "minLength": 1_000_000_000, "maxLength": 2_000_000_000}),
        json!({"type": "string", "maxLength": 100_000}),
        json!({"type": "array", "minItems": 1_000_000_000}),
        json!({"type": "array", "maxItems": u64::MAX, "prefixItems": many(500, |n| json!({"const": n}))}),
        json!({"type": "object", "minProperties": 1_000_000_000}),
        json!({"type": "number", "multipleOf": 1e-300, "minimum": 1e300}),
        json!({"type": "number", "multipleOf": 0.0}),
        json!({"type": "integer", "multipleOf": 1_000_000_007, "minimum": 3, "maximum": 9e15}),
        json!({"enum": many(20_000, |n| json!(format!("{n:x}")))}),
        json!({"const": "a".repeat(200 << 10)}),
        json!({"oneOf": many(600, |n| json!({"const": n.to_string()}))}),
        json!({"type": "object", "properties": properties(2000, |n| (n.to_string(), json!({})))}),
        json!({"type": "object", "properties": properties(300, |n| (n.to_string(), json!({}))), "minProperties": 100}),
        json!({"type": "object", "patternProperties": properties(50, |n| (format!("^{n}_.*a.{{50}}$"), json!({})))}),
        json!({"allOf": many(8, |n| json!({"type": "string", "pattern": format!("a{n}|b.{{{n}}}")}))}),
        json!({"anyOf": many(2000, |n| json!({"type": "object", "properties": {"a": {"const": n}}}))}),
    ];
    for pattern in [
        "^((a{1000}){1000}){1000}$",
        "^(a?){200}a{200}$",
        "(x+x+)+y",
        "^.*a.{300}$",
        "^(.*a.{15}){10}$",
        "^(a|b|ab)*c{500}$",
        "a{1,1000000000}",
        r"^\p{L}{1,5000}$",
        r"^[^\x00-\x7F]{1000}$",
        "^((((a*)*)*)*)*$",
        r"^(\d+\.){100}(\w*\s*){100}$",
        "^(?:a|b|c|d|e|f|g){1,400}(?:ab|cd){1,400}$",
    ] {
        all.push(json!({"type": "string", "pattern": pattern}));
        all.push(json!({"type": "object", "patternProperties": {pattern: {}, "^z": {"type": "null"}}, "additionalProperties": false}));
    }
    all
}

/// The most memory that this process has held, in kB; 0 if that is not told.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap_or_default();
    line.split_whitespace()
        .next()
        .map_or(0, |kilobytes| kilobytes.parse().unwrap())
}

fn beginning(schema: &Value) -> String {
    schema.to_string().chars().take(100).collect()
}

#[test]
fn hostile_schemas_end_soon_in_bounded_memory() {
    let (small, mut random) = (vocabulary(), Random::new(seed()));
    let (tokens, stops) = pebble();
    let many = large(tokens, &mut random);
    let large = Vocabulary::new(&many, &stops, many.len()).unwrap();
    let mut slowest = (Duration::ZERO, String::new());
    let mut took = |schema: &Value, start: Instant| {
        let (time, name) = (start.elapsed(), beginning(schema));
        assert!(time < MOST_TIME, "{name} took {} ms", time.as_millis());
        if time > slowest.0 {
            slowest = (time, name);
        }
    };
    let mut faults = Vec::new();
    for (word, schema) in refused() {
        let start = Instant::now();
        match check(&schema).map_err(|refusal| refusal.to_string()) {
            Err(refusal) if refusal.contains(word) && refusal.len() < 500 && !refusal.contains('\n') => {}
            other => faults.push(format!("{}: {other:?}", beginning(&schema))),
        }
        took(&schema, start);
    }
    let (mut honoured, mut longest_mask, mut most_spent) = (0, Duration::ZERO, 0);
    for schema in either() {
        let start = Instant::now();
        let checked = check(&schema);
        for (vocabulary, tokens) in [(&small, &bytes()), (&large, &many)] {
            let grammar = vocabulary.grammar(&schema);
            if grammar.is_ok() != checked.is_ok() {
                faults.push(format!("{}: {grammar:?} {checked:?}", beginning(&schema)));
            }
            let Ok(mut grammar) = grammar else { continue };
            // It may become too complex on the way, which is an error and no hang.
            if let Ok(walk) = walk(&mut grammar, tokens, &mut random, 100) {
                longest_mask = walk.times.into_iter().fold(longest_mask, Duration::max);
                honoured += 1;
            }
            most_spent = most_spent.max(grammar.spent());
        }
        took(&schema, start);
    }
    assert!(faults.is_empty(), "{faults:#?}");
    let peak = peak();
    println!(
        "report: hostile schemas: {honoured} of {} walks without an error, the longest mask took {} ms, a lexer cost {most_spent} at most, the slowest schema {} ms, {} MB at most ({})",
        2 * either().len(),
        longest_mask.as_millis(),
        slowest.0.as_millis(),
        peak >> 10,
        slowest.1
    );
    assert!(longest_mask < Duration::from_secs(2), "{longest_mask:?}");
    assert!(peak < MOST_MEMORY, "{peak} kB");
}
