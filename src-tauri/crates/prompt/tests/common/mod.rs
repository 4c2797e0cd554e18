//! Models of a tokenizer and a template, made on the spot, and what was read as the fixtures write it.

#![allow(clippy::unwrap_used, dead_code)]

pub mod templates;
pub mod writers;

use prompt::{ChatProcessor, Event, Piece, Splitter};
use serde_json::{json, Value};

/// A model whose tokens are these markers and single bytes.
pub fn byte_speaker(markers: &[&str], template: &str) -> (ChatProcessor, tokenizers::Tokenizer) {
    byte_model(markers, template, &Value::Null)
}

/// The same with this config.json.
pub fn byte_model(markers: &[&str], template: &str, config: &Value) -> (ChatProcessor, tokenizers::Tokenizer) {
    let printable = |byte: &u32| matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
    let alphabet = (0..256)
        .filter(printable)
        .chain(256..256 + (0..256).filter(|byte| !printable(byte)).count() as u32);
    let vocabulary: serde_json::Map<String, Value> = alphabet
        .enumerate()
        .map(|(id, c)| (char::from_u32(c).unwrap().to_string(), id.into()))
        .collect();
    let added: Vec<Value> = (256..)
        .zip(markers)
        .map(|(id, text)| json!({"id": id, "content": text, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}))
        .collect();
    let level = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false});
    let tokenizer = json!({"version": "1.0", "truncation": null, "padding": null, "added_tokens": added, "normalizer": null,
        "pre_tokenizer": level, "post_processor": null, "decoder": level,
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
            "fuse_unk": false, "byte_fallback": false, "vocab": vocabulary, "merges": []}});
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("tokenizer.json"), tokenizer.to_string()).unwrap();
    // A family may bring one.
    let built_in = template.is_empty() && !config.is_null();
    if !built_in {
        std::fs::write(dir.path().join("chat_template.jinja"), template).unwrap();
    }
    if built_in && markers.contains(&"<bos>") {
        std::fs::write(dir.path().join("tokenizer_config.json"), r#"{"bos_token": "<bos>"}"#).unwrap();
    }
    std::fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
    let library = tokenizers::Tokenizer::from_file(dir.path().join("tokenizer.json")).unwrap();
    (ChatProcessor::open(dir.path()).unwrap(), library)
}

/// A text in pieces of this many characters.
pub fn pieces(text: &str, characters: usize) -> Vec<&str> {
    let mut ends: Vec<usize> = text.char_indices().map(|(at, _)| at).step_by(characters).collect();
    ends.push(text.len());
    ends.windows(2).map(|ends| &text[ends[0]..ends[1]]).collect()
}

/// The events of a text that comes in pieces of this many characters.
pub fn split(mut splitter: Splitter, text: &str, characters: usize) -> Vec<Event> {
    let pieces = pieces(text, characters);
    let mut events: Vec<Event> = pieces.iter().flat_map(|piece| splitter.push(piece)).collect();
    events.extend(splitter.finish());
    events
}

/// Events as the fixture writes them, neighbors of one kind joined.
pub fn written(events: &[Event]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for event in events {
        let (kind, text) = match &event.piece {
            Piece::Text(text) => ("A:", text.clone()),
            Piece::Thinking(text) => ("T:", text.clone()),
            Piece::ToolCall { name, arguments } => ("C:", format!("{name}{arguments}")),
            Piece::Notice(notice) => (
                "N:",
                serde_json::to_value(notice.code).unwrap().as_str().unwrap().to_owned(),
            ),
        };
        match out.last_mut() {
            Some(last) if last.starts_with(kind) && (kind == "A:" || kind == "T:") => last.push_str(&text),
            _ => out.push(format!("{kind}{text}")),
        }
    }
    out
}
