//! Calls walked at random through the masks: each is read back, and its arguments follow what the tool declares.
#![allow(clippy::unwrap_used)]

mod schemas;
mod walks;

use std::path::Path;

use constraint::{check_calls, Vocabulary};
use prompt::{ChatProcessor, Piece, RenderRequest};
use protocol::{CallBody, Message, Role};
use schemas::{fault, Random};
use serde_json::{json, Value};
use walks::{bytes, seed, vocabulary, walk, STOP};

fn tool(name: &str, parameters: &Value) -> Value {
    json!({"type": "function", "function": {"name": name, "description": "", "parameters": parameters}})
}

fn hermes() -> CallBody {
    CallBody::Json {
        before: "\n{\"name\": \"".into(),
        between: "\", \"arguments\": ".into(),
        after: "}\n".into(),
    }
}

#[test]
fn calls_as_json_follow_their_tools() {
    let (vocabulary, tokens, mut random) = (vocabulary(), bytes(), Random::new(seed()));
    for _ in 0..100 {
        let schemas = [schemas::random(&mut random), schemas::random(&mut random)];
        let tools = [tool("f", &schemas[0]), tool("g-h", &schemas[1])];
        check_calls(&hermes(), &tools).unwrap();
        let mut grammar = vocabulary.call_grammar(&hermes(), &tools).unwrap();
        let fresh = grammar.copy();
        let walk = walk(&mut grammar, &tokens, &mut random, 3000).unwrap();
        assert!(walk.ended, "{}", String::from_utf8_lossy(&walk.text));
        let call: Value = serde_json::from_slice(&walk.text).unwrap();
        let schema = &schemas[usize::from(call["name"] == "g-h")];
        assert_eq!(fault(schema, schema, &call["arguments"]), None, "{call}");
        assert!(fresh.copy().take_text("\n{\"name\": \"f\", \"arguments\": ").unwrap());
        assert!(!fresh.copy().take_text("\n{\"name\": \"x").unwrap());
    }
    assert!(!vocabulary
        .call_grammar(&hermes(), &[tool("f", &json!({}))])
        .unwrap()
        .take(STOP)
        .unwrap());
}

#[test]
fn calls_in_gemma_s_notation_are_read_back_by_pebble_s_parser() {
    let pebble = ChatProcessor::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pebble/model")).unwrap();
    let written = pebble.call_form().unwrap();
    let form = written.body.clone();
    assert!(matches!(form, CallBody::Gemma { .. }), "{written:?}");
    let tokens = pebble.tokenizer().vocabulary();
    let stops: Vec<u32> = pebble.stops().ids.keys().copied().collect();
    let vocabulary = Vocabulary::new(&tokens, &stops, tokens.len()).unwrap();
    let messages = [Message::text(Role::User, "Hi")];
    let request = RenderRequest {
        messages: &messages,
        tools: &[],
        thinking: None,
        add_generation_prompt: true,
        images: &[],
    };
    let prompt = pebble.prompt(&request).unwrap();
    let (mut random, mut read) = (Random::new(seed()), 0);
    for _ in 0..200 {
        let schema = schemas::random(&mut random);
        let tools = [tool("f", &schema)];
        if check_calls(&form, &tools).is_err() {
            continue;
        }
        let mut grammar = vocabulary.call_grammar(&form, &tools).unwrap();
        let mut ids = vec![written.opening];
        loop {
            let mask = grammar.mask().unwrap();
            let allowed: Vec<u32> = (0..mask.len() as u32).filter(|id| mask[*id as usize]).collect();
            let id = allowed[random.below(allowed.len())];
            if stops.contains(&id) {
                break;
            }
            assert!(grammar.take(id).unwrap());
            ids.push(id);
        }
        ids.extend(written.closing);
        let mut parser = pebble.parser(&prompt, false, &[]).with_tools(&tools);
        let mut pieces: Vec<Piece> = ids.iter().flat_map(|id| parser.push(*id)).collect();
        pieces.extend(parser.finish());
        let spelled = pebble.decode(&ids).unwrap();
        let [Piece::ToolCall { name, arguments }] = &pieces[..] else {
            panic!("{spelled}: {pieces:?}")
        };
        assert_eq!(
            (name.as_str(), fault(&schema, &schema, arguments)),
            ("f", None),
            "{spelled}"
        );
        read += 1;
    }
    println!("report: calls in Gemma 4's notation walked at random: {read} read back");
    assert!(read > 40, "{read}");
}

#[test]
fn what_a_notation_has_no_words_for_is_named() {
    let gemma = CallBody::Gemma { quote: STOP };
    for (parameters, named) in [
        (
            json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "a"}}}),
            "pattern",
        ),
        (json!({"type": "object", "properties": {"a": {}}}), "type"),
        (
            json!({"type": "object", "properties": {"a:b": {"type": "null"}}}),
            "a:b",
        ),
        (json!({"type": "object", "required": ["a"]}), "required"),
        (json!({"type": "object", "properties": {"a": {"$ref": "#"}}}), "nest"),
        (json!({"type": "object", "minProperties": 1}), "minProperties"),
    ] {
        let refusal = check_calls(&gemma, &[tool("f", &parameters)]).unwrap_err().to_string();
        assert!(refusal.contains(named) && refusal.contains("\"f\""), "{refusal}");
    }
    let refusal = check_calls(&hermes(), &[tool("f", &json!({"not": {}}))])
        .unwrap_err()
        .to_string();
    assert!(refusal.contains("not"), "{refusal}");
    assert!(check_calls(&hermes(), &[]).is_err());
    assert!(check_calls(&hermes(), &[tool("a\"b", &json!({}))]).is_err());
}
