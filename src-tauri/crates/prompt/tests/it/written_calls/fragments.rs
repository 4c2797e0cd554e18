//! The fragments of which random texts are made.

use std::collections::BTreeSet;

use prompt::Splitter;
use serde_json::{json, Map};

use crate::common::writers::{self, Call};

/// The fragments of texts: markers of every format, the tags inside of calls, full closing sequences, full calls, and
/// everything that stands in code.
pub fn fragments(format: &str) -> &'static [String] {
    let mut found: BTreeSet<String> = Splitter::names()
        .flat_map(|name| {
            Splitter::named(name, false, true)
                .unwrap()
                .markers()
                .collect::<Vec<_>>()
        })
        .map(str::to_owned)
        .collect();
    let quoted = [
        ("rm".to_owned(), Map::new()),
        ("w".to_owned(), Map::from_iter([("content".to_owned(), json!("x"))])),
    ];
    for name in Splitter::names() {
        for call in &quoted {
            found.extend(writers::write(name, std::slice::from_ref(call)));
        }
    }
    // The text after the last string of a call, and before the first one.
    let probe: Call = ("w".into(), Map::from_iter([("content".to_owned(), json!("QUOKKA"))]));
    let mut own = Vec::new();
    if let Some((before, after)) = writers::write(format, &[probe])
        .as_deref()
        .and_then(|text| text.split_once("QUOKKA"))
    {
        own = vec![
            before.to_owned(),
            after.to_owned(),
            format!("{after}{before}"),
            format!("{after} and {before}"),
        ];
    }
    let words = [
        "a",
        " ",
        "\n",
        "\n\n",
        "é🐱",
        "\"",
        "'",
        "\\",
        "\\n",
        "\"\"\"",
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        ",",
        ":",
        "=",
        "<",
        ">",
        "</",
        "|",
        "&",
        "&amp;",
        "42",
        "true",
        "null",
        "[1, 2]",
        "{\"a\": 1}",
        "def f(x):\n    return x\n",
        "it's \"so\"",
        "</parameter>",
        "</function>",
        "<parameter=other>",
        "\n<parameter=other>\n",
        "<function=",
        "</invoke>",
        "<invoke name=\"rm\">",
        "<parameter name=\"other\">",
        "</arg_value>",
        "<arg_key>",
        "</arg_key>",
        "<arg_value>",
        "<|\"|>",
        "<escape>",
        "[ARGS]",
        "[CALL_ID]",
        "<｜tool▁sep｜>",
        "<|tool_call_argument_begin|>",
        "<tool_sep:opensource>",
        "call:rm{}",
        "<|constrain|>",
        "</param>",
        "]]>",
        "<![CDATA[",
        "```json",
        "```",
        "</content>",
        "thought\n",
        ":opensource>",
        "\u{0}",
        "\r\n",
        "\t",
    ];
    let mut all: Vec<String> = found.into_iter().chain(words.map(str::to_owned)).collect();
    // As often as all others together, so that they are met.
    let often = all.len() / 16;
    all.extend(own.into_iter().flat_map(|text| std::iter::repeat_n(text, often.max(1))));
    all.leak()
}
