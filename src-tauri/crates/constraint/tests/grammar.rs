//! Masks walked at random, and what the grammar says of schemas.
#![allow(clippy::unwrap_used)]

mod schemas;

use std::path::Path;
use std::time::{Duration, Instant};

use constraint::{check, AnswerGrammar, Error, Vocabulary};
use prompt::ChatProcessor;
use schemas::Random;
use serde_json::{json, Value};

const STOP: u32 = 256;

/// The 256 bytes, a stop token, and some tokens of several characters.
fn bytes() -> Vec<Vec<u8>> {
    let mut tokens: Vec<Vec<u8>> = (0..=u8::MAX).map(|byte| vec![byte]).collect();
    tokens.push(Vec::new());
    tokens.extend([r#"{""#, r#"":"#, r#"", ""#, "}}", " \n", "true", "<|end|>"].map(|token| token.as_bytes().to_vec()));
    tokens
}

fn vocabulary() -> Vocabulary {
    let tokens = bytes();
    Vocabulary::new(&tokens, &[STOP], tokens.len() + 3).unwrap()
}

fn seed() -> u64 {
    std::env::var("PONDER_SEED").map_or(1, |seed| seed.parse().unwrap())
}

/// An answer of tokens chosen at random from the masks, and the time that each mask took; `None` if it has not ended after `most`.
fn walk(grammar: &mut AnswerGrammar, tokens: &[Vec<u8>], random: &mut Random, most: usize) -> (Option<Vec<u8>>, Vec<Duration>) {
    let (mut written, mut times) = (Vec::new(), Vec::new());
    for _ in 0..most {
        let start = Instant::now();
        let mask = grammar.mask().unwrap();
        times.push(start.elapsed());
        let allowed: Vec<usize> = (0..mask.len()).filter(|id| mask[*id]).collect();
        let id = allowed[random.below(allowed.len())];
        if tokens[id].is_empty() {
            assert!(
                grammar.is_whole().unwrap(),
                "it may end where it is not whole: {}",
                String::from_utf8_lossy(&written)
            );
            return (Some(written), times);
        }
        assert!(grammar.take(id as u32).unwrap(), "the mask allows what the grammar refuses");
        written.extend(&tokens[id]);
    }
    (None, times)
}

#[test]
fn what_the_masks_allow_parses_and_follows_the_schema() {
    let (vocabulary, tokens, mut random) = (vocabulary(), bytes(), Random::new(seed()));
    let (mut whole, mut cut) = (0, 0);
    for _ in 0..300 {
        let schema = schemas::random(&mut random);
        check(&schema).unwrap();
        let mut grammar = vocabulary.grammar(&schema).unwrap();
        match walk(&mut grammar, &tokens, &mut random, 2000).0 {
            Some(text) => {
                let value: Value = serde_json::from_slice(&text).unwrap();
                assert_eq!(schemas::fault(&schema, &schema, &value), None);
                whole += 1;
            }
            None => cut += 1,
        }
    }
    println!("report: random walks under random schemas: {whole} whole, {cut} cut off");
    assert!(whole > 200, "{whole}");
}

#[test]
fn rows_beyond_the_tokenizer_and_other_stop_tokens_are_masked() {
    let tokens = bytes();
    let vocabulary = Vocabulary::new(&tokens, &[STOP, 3], tokens.len() + 3).unwrap();
    let mut grammar = vocabulary.grammar(&json!({"const": "a"})).unwrap();
    let allowed = |grammar: &mut AnswerGrammar| -> Vec<usize> {
        let mask = grammar.mask().unwrap();
        assert_eq!(mask.len(), tokens.len() + 3);
        (0..mask.len()).filter(|id| mask[*id]).collect()
    };
    assert_eq!(allowed(&mut grammar), [usize::from(b'"')]);
    assert!(!grammar.take(STOP).unwrap() && !grammar.take(u32::from(b'a')).unwrap());
    assert!(grammar.take_text("\"a\"").unwrap() && grammar.is_whole().unwrap());
    assert_eq!(allowed(&mut grammar), [3, STOP as usize]);
    assert_eq!(Vocabulary::new(&tokens, &[999], 999).unwrap_err(), Error::NoStopToken);
}

#[test]
fn refusals_name_the_keyword() {
    for (schema, named) in [
        (json!({"not": {}}), "not"),
        (json!({"type": "array", "contains": {}}), "contains"),
        (json!({"properties": {"a": {"type": "array", "uniqueItems": true}}}), "uniqueItems"),
        (json!({"type": "object", "propertyNames": {}}), "propertyNames"),
        (json!({"if": {}, "then": {}}), "if"),
        (json!({"type": "object", "unevaluatedProperties": false}), "unevaluatedProperties"),
        (json!({"oneOf": [{"type": "object"}, {"type": "object"}]}), "oneOf"),
        (json!({"type": "string", "format": "sonnet"}), "sonnet"),
        (json!({"$ref": "https://example.com/schema"}), "example.com"),
        (json!({"type": "text"}), "text"),
        (json!({"type": "string", "minLength": 5, "maxLength": 4}), "minLength"),
        (json!({"x-guidance": {"lenient": true}, "not": {}}), "x-guidance"),
        (json!(["a"]), "not an object"),
        (json!(false), "false"),
        (json!({"description": "ä".repeat(200), "$ref": format!("#/{}", "ö".repeat(80))}), ""),
    ] {
        let refusal = check(&schema).unwrap_err().to_string();
        assert!(refusal.contains(named) && !refusal.contains('\n'), "{schema}: {refusal}");
    }
    for schema in [
        json!(true),
        json!({}),
        json!({"$defs": {"a": {"not": {}}}}),
        constraint::any_object(),
    ] {
        assert_eq!(check(&schema), Ok(()), "{schema}");
    }
}

#[test]
fn hostile_schemas_are_refused_or_honoured_in_bounded_work() {
    let nested = |depth: usize| (0..depth).fold(json!({"type": "null"}), |inner, _| json!({"type": "array", "items": inner}));
    let vocabulary = vocabulary();
    for schema in [
        json!({"$ref": "#"}),
        json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}),
        json!({"allOf": [{"$ref": "#"}, {"type": "object"}]}),
        json!({"type": "array", "items": {"$ref": "#"}}),
        json!({"type": "string", "pattern": "^((a{1000}){1000}){1000}$"}),
        json!({"type": "string", "pattern": "^(a?){200}a{200}$"}),
        json!({"type": "string", "pattern": "("}),
        json!({"type": "string", "minLength": 1_000_000_000, "maxLength": 2_000_000_000}),
        json!({"type": "array", "minItems": 1_000_000_000}),
        json!({"type": "number", "multipleOf": 1e-300, "minimum": 1e300}),
        json!({"enum": (0..20_000).map(|n| format!("{n:x}")).collect::<Vec<_>>()}),
        json!({"type": "object", "properties": (0..2000).map(|n| (n.to_string(), json!({}))).collect::<serde_json::Map<_, _>>()}),
        nested(95),
    ] {
        let name = schema.to_string().chars().take(80).collect::<String>();
        match (check(&schema), vocabulary.grammar(&schema)) {
            (Ok(()), Ok(mut grammar)) => assert!(grammar.mask().is_err() || grammar.mask().unwrap().contains(&true), "{name}"),
            (first, second) => assert_eq!(first.err(), second.err(), "{name}"),
        }
    }
}

/// JSON-Schema-Test-Suite, from the published sources of a validator; `PONDER_SCHEMA_SUITE` names the folder of a draft.
#[test]
fn of_a_foreign_suite_nothing_invalid_is_accepted() {
    let Ok(folder) = std::env::var("PONDER_SCHEMA_SUITE") else {
        println!("report: JSON-Schema-Test-Suite: skipped, it is not here");
        return;
    };
    let vocabulary = vocabulary();
    let (mut schemas, mut compiled, mut valid, mut accepted, mut invalid) = (0, 0, 0, 0, 0);
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some_and(|ending| ending == "json")) {
        let groups: Vec<Value> = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        for group in groups {
            schemas += 1;
            let schema = &group["schema"];
            assert_eq!(check(schema).is_ok(), vocabulary.grammar(schema).is_ok(), "{schema}");
            if check(schema).is_err() {
                continue;
            }
            compiled += 1;
            for test in group["tests"].as_array().unwrap() {
                let mut grammar = vocabulary.grammar(schema).unwrap();
                let text = test["data"].to_string();
                let fits = grammar.take_text(&text).unwrap() && grammar.is_whole().unwrap();
                if test["valid"] == true {
                    valid += 1;
                    accepted += usize::from(fits);
                } else {
                    invalid += 1;
                    assert!(!fits, "{}: {text} is accepted under {schema}", group["description"]);
                }
            }
        }
    }
    println!("report: JSON-Schema-Test-Suite: {compiled} of {schemas} schemas compile, {invalid} invalid refused, {accepted} of {valid} valid accepted");
    assert!(compiled >= 160 && accepted * 100 >= valid * 92, "{compiled} {accepted} {valid}");
}

#[test]
fn real_vocabularies_take_what_their_masks_allow() {
    let pebble = ChatProcessor::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pebble/model")).unwrap();
    let tokenizer = pebble.tokenizer();
    let stops: Vec<u32> = pebble.stops().ids.keys().copied().collect();
    let small = tokenizer.vocabulary();
    // As many tokens as today's large tokenizers have, words of two to nine letters with and without a blank before them.
    let mut random = Random::new(seed());
    let mut large = small.clone();
    while large.len() < 150_000 {
        let mut word: Vec<u8> = (0..2 + random.below(8)).map(|_| b'a' + random.below(26) as u8).collect();
        if random.below(2) == 0 {
            word.insert(0, b' ');
        }
        large.push(word);
    }
    for (tokens, count) in [(&small, 40), (&large, 10)] {
        let start = Instant::now();
        let vocabulary = Vocabulary::new(tokens, &stops, tokens.len()).unwrap();
        let made = start.elapsed();
        let mut times = Vec::new();
        for _ in 0..count {
            let schema = schemas::random(&mut random);
            times.extend(walk(&mut vocabulary.grammar(&schema).unwrap(), tokens, &mut random, 200).1);
        }
        times.sort_unstable();
        let part = |share: usize| times[(times.len() - 1) * share / 100].as_micros();
        println!(
            "report: masks of {} tokens: p50 {} µs, p99 {} µs of {}; the vocabulary took {} ms",
            tokens.len(),
            part(50),
            part(99),
            times.len(),
            made.as_millis()
        );
    }
}
