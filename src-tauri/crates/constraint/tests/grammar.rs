//! Masks walked at random, and what the grammar says of schemas.
#![allow(clippy::unwrap_used)]

mod schemas;
mod walks;

use std::time::Instant;

use constraint::{check, AnswerGrammar, Error, Vocabulary};
use schemas::Random;
use serde_json::{json, Value};
use walks::{bytes, large, pebble, seed, vocabulary, walk, STOP};

#[test]
fn what_the_masks_allow_parses_and_follows_the_schema() {
    let (vocabulary, tokens, mut random) = (vocabulary(), bytes(), Random::new(seed()));
    let (mut whole, mut cut) = (0, 0);
    for _ in 0..300 {
        let schema = schemas::random(&mut random);
        check(&schema).unwrap();
        let mut grammar = vocabulary.grammar(&schema).unwrap();
        let walk = walk(&mut grammar, &tokens, &mut random, 2000).unwrap();
        if walk.ended {
            let value: Value = serde_json::from_slice(&walk.text).unwrap();
            assert_eq!(schemas::fault(&schema, &schema, &value), None);
            whole += 1;
        } else {
            cut += 1;
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
fn blanks_between_parts_are_few() {
    let vocabulary = vocabulary();
    for (blanks, fits) in [(16, true), (17, false)] {
        let text = format!("{{{}\"a\": 1}}", " ".repeat(blanks));
        let taken = vocabulary
            .grammar(&constraint::any_object())
            .unwrap()
            .take_text(&text)
            .unwrap();
        assert_eq!(taken, fits, "{blanks}");
    }
}

#[test]
fn what_a_schema_does_not_name_is_not_written() {
    let vocabulary = vocabulary();
    let takes = |schema: &Value, text: &str| {
        let mut grammar = vocabulary.grammar(schema).unwrap();
        grammar.take_text(text).unwrap() && grammar.is_whole().unwrap()
    };
    // As a person writes it by hand, and pydantic for a class.
    let open = json!({"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]});
    assert!(takes(&open, r#"{"answer": 5}"#) && takes(&open, r#"{"answer": -9007199254740991}"#));
    assert!(!takes(&open, r#"{"answer": 5, "re": 30}"#) && !takes(&open, r#"{"answer": 12345678901234567}"#));
    let mut explicit = open.clone();
    explicit["additionalProperties"] = json!(true);
    assert!(takes(&explicit, r#"{"answer": 5, "re": 30}"#));
    let both = json!({"allOf": [{"properties": {"a": {"type": "null"}}}, {"properties": {"b": {"type": "null"}}}]});
    assert!(takes(&both, r#"{"a": null, "b": null}"#));
    assert!(takes(&constraint::any_object(), r#"{"anything": [1, {}]}"#));
}

#[test]
fn refusals_name_the_keyword() {
    for (schema, named) in [
        (json!({"not": {}}), "not"),
        (json!({"type": "array", "contains": {}}), "contains"),
        (
            json!({"properties": {"a": {"type": "array", "uniqueItems": true}}}),
            "uniqueItems",
        ),
        (json!({"type": "object", "propertyNames": {}}), "propertyNames"),
        (json!({"if": {}, "then": {}}), "if"),
        (
            json!({"type": "object", "unevaluatedProperties": false}),
            "unevaluatedProperties",
        ),
        (json!({"oneOf": [{"type": "object"}, {"type": "object"}]}), "oneOf"),
        (json!({"type": "string", "format": "sonnet"}), "sonnet"),
        (json!({"$ref": "https://example.com/schema"}), "example.com"),
        (json!({"type": "text"}), "text"),
        (json!({"type": "string", "minLength": 5, "maxLength": 4}), "minLength"),
        (json!({"x-guidance": {"lenient": true}, "not": {}}), "x-guidance"),
        (json!(["a"]), "not an object"),
        (json!(false), "false"),
        (
            json!({"description": "ä".repeat(200), "$ref": format!("#/{}", "ö".repeat(80))}),
            "",
        ),
    ] {
        let refusal = check(&schema).unwrap_err().to_string();
        assert!(
            refusal.contains(named) && !refusal.contains('\n'),
            "{schema}: {refusal}"
        );
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

/// The schema with what it leaves open said in words, as JSON Schema means it.
fn explicitly_open(schema: &Value) -> Value {
    match schema {
        Value::Object(keywords) => {
            let mut open: serde_json::Map<_, _> = keywords
                .iter()
                .map(|(name, value)| (name.clone(), explicitly_open(value)))
                .collect();
            if open.get("properties").is_some_and(Value::is_object) {
                open.entry("additionalProperties").or_insert(json!(true));
            }
            open.into()
        }
        Value::Array(parts) => parts.iter().map(explicitly_open).collect(),
        other => other.clone(),
    }
}

/// JSON-Schema-Test-Suite, from the published sources of a validator; `PONDER_SCHEMA_SUITE` names the folder of a
/// draft.
#[test]
fn of_a_foreign_suite_nothing_invalid_is_accepted() {
    let Ok(folder) = std::env::var("PONDER_SCHEMA_SUITE") else {
        println!("report: JSON-Schema-Test-Suite: skipped, it is not here");
        return;
    };
    let vocabulary = vocabulary();
    let (mut schemas, mut compiled, mut valid, mut accepted, mut invalid) = (0, 0, 0, 0, 0);
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    for file in files
        .iter()
        .filter(|file| file.extension().is_some_and(|ending| ending == "json"))
    {
        let groups: Vec<Value> = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        for group in groups {
            schemas += 1;
            let schema = &explicitly_open(&group["schema"]);
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
    assert!(
        compiled >= 160 && accepted * 100 >= valid * 92,
        "{compiled} {accepted} {valid}"
    );
}

#[test]
fn real_vocabularies_take_what_their_masks_allow() {
    let (small, stops) = pebble();
    let mut random = Random::new(seed());
    let large = large(small.clone(), &mut random);
    for (tokens, count) in [(&small, 40), (&large, 10)] {
        let start = Instant::now();
        let vocabulary = Vocabulary::new(tokens, &stops, tokens.len()).unwrap();
        let made = start.elapsed();
        let mut times = Vec::new();
        for _ in 0..count {
            let schema = schemas::random(&mut random);
            times.extend(
                walk(&mut vocabulary.grammar(&schema).unwrap(), tokens, &mut random, 200)
                    .unwrap()
                    .times,
            );
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
