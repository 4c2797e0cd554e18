//! Prompts without a chat template, with Pebble's tokenizer.
use std::fs;
use std::path::Path;

use prompt::{ChatProcessor, Piece};
use protocol::{ErrorCode, RawPrompt};
use serde_json::{json, Value};

const TURN: &str = "<|turn>user\nHi<turn|>\n<|turn>model\n";

fn pebble() -> ChatProcessor {
    ChatProcessor::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pebble/model")).unwrap()
}

#[test]
fn control_tokens_that_are_spelled_are_control_tokens() {
    let pebble = pebble();
    let raw = pebble.raw_prompt(&RawPrompt::Text(TURN.into())).unwrap();
    let turn = pebble.tokenizer().id("<|turn>").unwrap();
    assert_eq!(raw.ids.iter().filter(|id| **id == turn).count(), 2);
    assert_eq!(
        (raw.text.as_str(), pebble.decode(&raw.ids).unwrap().as_str()),
        (TURN, TURN)
    );
    assert!(!pebble.encode(TURN).unwrap().contains(&turn));
    let ids = pebble.raw_prompt(&RawPrompt::Tokens(raw.ids.clone())).unwrap();
    assert_eq!(ids, raw);
}

#[test]
fn a_gap_is_refused_by_a_model_that_fills_none() {
    let gap = RawPrompt::FillIn {
        before: "a".into(),
        after: "b".into(),
    };
    let error = protocol::Error::from(pebble().raw_prompt(&gap).unwrap_err());
    assert_eq!(error.code, ErrorCode::BadRequest);
}

/// Pebble with tokens for a gap.
fn filler() -> (tempfile::TempDir, ChatProcessor) {
    let dir = tempfile::tempdir().unwrap();
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pebble/model");
    for name in ["chat_template.jinja", "config.json", "tokenizer_config.json"] {
        fs::copy(model.join(name), dir.path().join(name)).unwrap();
    }
    let mut tokenizer: Value = serde_json::from_slice(&fs::read(model.join("tokenizer.json")).unwrap()).unwrap();
    let added = tokenizer["added_tokens"].as_array_mut().unwrap();
    for (number, name) in ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"]
        .iter()
        .enumerate()
    {
        let mut token = added[0].clone();
        token["id"] = json!(100_000 + number);
        token["content"] = json!(name);
        added.push(token);
    }
    fs::write(dir.path().join("tokenizer.json"), tokenizer.to_string()).unwrap();
    let processor = ChatProcessor::open(dir.path()).unwrap();
    (dir, processor)
}

#[test]
fn control_tokens_in_a_file_around_a_gap_are_text() {
    let (_dir, filler) = filler();
    let ids_of = |before: &str, after: &str| {
        let gap = RawPrompt::FillIn {
            before: before.into(),
            after: after.into(),
        };
        let prompt = filler.raw_prompt(&gap).unwrap();
        let expected = format!("<|fim_prefix|>{before}<|fim_suffix|>{after}<|fim_middle|>");
        assert_eq!(prompt.text, expected);
        assert!(filler.decode(&prompt.ids).unwrap().ends_with(&expected), "{expected}");
        prompt.ids
    };
    let controls = |ids: Vec<u32>| -> Vec<u32> {
        let is_control = |id: &u32| filler.tokenizer().is_control(*id);
        ids.into_iter().filter(is_control).collect()
    };
    let plain = controls(ids_of("let a = 1", ";"));
    assert!(plain.len() >= 3);
    for (before, after) in [
        ("s = '<|fim_middle|>'", "<turn|>"),
        ("<|turn>system\n", "<eos>"),
        ("<|fim_suffix|><|fim_middle|>", "<|fim_prefix|>"),
        ("a <|fim_", "middle|> b"),
        ("<", "|fim_middle|>"),
        ("x\u{FDD0}<bos>", "\u{FDD1}"),
    ] {
        assert_eq!(controls(ids_of(before, after)), plain, "{before} {after}");
    }
    // Harmless halves get the ids that they always had.
    let raw = RawPrompt::Text("<|fim_prefix|>if a < b {<|fim_suffix|>}\n<|fim_middle|>".into());
    assert_eq!(ids_of("if a < b {", "}\n"), filler.raw_prompt(&raw).unwrap().ids);
}

#[test]
fn all_that_follows_is_text() {
    let pebble = pebble();
    let written = "\n\n<|channel>thought\nhm<channel|>\n<|tool_call>call:f{}<tool_call|> 4\n";
    let prompt = pebble.raw_prompt(&RawPrompt::Text(TURN.into())).unwrap();
    let ids = pebble.raw_prompt(&RawPrompt::Text(written.into())).unwrap().ids;
    let mut parser = pebble.raw_parser(&prompt, &[]);
    let mut pieces: Vec<Piece> = ids.iter().flat_map(|id| parser.push(*id)).collect();
    pieces.extend(parser.finish());
    let text: String = pieces
        .into_iter()
        .map(|piece| match piece {
            Piece::Text(text) => text,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(text, written);
}
