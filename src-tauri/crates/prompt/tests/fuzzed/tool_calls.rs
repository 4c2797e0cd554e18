//! An answer of any text in every format: pieces of it, whichever way it is cut. tests/fuzz has the same for cargo-fuzz.

use prompt::{Event, Piece, Splitter};
use serde_json::{json, Value};

use super::words::spelled;

const WORDS: &[&str] = &[
    "<tool_call>",
    "</tool_call>",
    "<|tool_call>",
    "<tool_call|>",
    "call:f{",
    "a:<|\"|>",
    "<|\"|>",
    "<function=f>",
    "</function>",
    "<parameter=a>",
    "</parameter>",
    "[TOOL_CALLS]",
    "[ARGS]",
    "[{\"name\":\"f\",\"arguments\":",
    "{\"name\":\"f\",\"arguments\":",
    "{\"a\":",
    "f(a=",
    "[f(a=",
    "<think>",
    "</think>",
    "<|channel>",
    "<channel|>",
    "thought\n",
    "<|channel|>analysis<|message|>",
    "<|start|>assistant",
    "<|call|>",
    "<|end|>",
    "<|python_tag|>",
    "<invoke name=\"f\">",
    "</invoke>",
    "<arg_key>a</arg_key>",
    "<arg_value>",
    "</arg_value>",
    "\u{ff5c}DSML\u{ff5c}",
    "\"",
    "'",
    "\\",
    "\\u",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    ",",
    ":",
    "1",
    "-",
    "1e999",
    "true",
    "null",
    "a",
    " ",
    "\n",
    "```",
];

/// One answer, in each format, at once and in two pieces.
pub fn run(data: &[u8]) {
    let (place, data) = data
        .split_first()
        .map_or((0, data), |(first, rest)| (usize::from(*first), rest));
    let text = String::from_utf8_lossy(&spelled(data, WORDS)).into_owned();
    let cut = (0..=text.len())
        .filter(|at| text.is_char_boundary(*at))
        .nth(place)
        .unwrap_or(0);
    let tools = [
        json!({"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}}),
    ];
    for format in Splitter::names() {
        let whole = read(format, &tools, &[&text]);
        let pieces = read(format, &tools, &[&text[..cut], &text[cut..]]);
        assert_eq!(whole, pieces, "{format}, cut at {cut}: {text:?}");
    }
}

/// The texts of an answer by kind, with calls between them.
fn read(format: &str, tools: &[Value], pieces: &[&str]) -> Vec<(String, String)> {
    let mut splitter = Splitter::named(format, false, true)
        .unwrap_or_else(|| panic!("{format} is a name"))
        .with_tools(tools);
    let mut events: Vec<Event> = pieces.iter().flat_map(|piece| splitter.push(piece)).collect();
    events.extend(splitter.finish());
    let mut said: Vec<(String, String)> = Vec::new();
    for event in events {
        let (kind, text) = match event.piece {
            Piece::Text(text) => ("text".to_owned(), text),
            Piece::Thinking(text) => ("thinking".to_owned(), text),
            Piece::ToolCall { name, arguments } => (format!("call {name}"), arguments.to_string()),
            Piece::Notice(_) => continue,
        };
        match said
            .last_mut()
            .filter(|last| last.0 == kind && !kind.starts_with("call"))
        {
            Some(last) => last.1 += &text,
            None => said.push((kind, text)),
        }
    }
    said
}
