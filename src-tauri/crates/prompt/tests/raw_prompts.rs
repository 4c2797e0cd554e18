//! Prompts without a chat template, with Pebble's tokenizer.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use prompt::{ChatProcessor, Piece};
use protocol::{ErrorCode, RawPrompt};

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
