//! JSON as Python writes it: with `Infinity`, `-Infinity` and `NaN`, which JSON does not know.

use serde_json::{Error, Value};

/// The words, the longest first, and what newer files of transformers have in their place.
const WORDS: [(&str, &str); 3] = [
    ("-Infinity", r#"{"__float__": "-Infinity"}"#),
    ("Infinity", r#"{"__float__": "Infinity"}"#),
    ("NaN", r#"{"__float__": "NaN"}"#),
];

/// Reads a file of a model that a Python program wrote (`"time_step_limit": [0.0, Infinity]`).
///
/// # Errors
/// The first place that is not JSON either way.
pub fn parse_json(text: &str) -> Result<Value, Error> {
    serde_json::from_str(text).or_else(|error| match tagged(text) {
        Some(tagged) => serde_json::from_str(&tagged).map_err(|_| error),
        None => Err(error),
    })
}

/// The text with the words tagged; `None` if it has none outside of its texts.
fn tagged(text: &str) -> Option<String> {
    let (mut written, mut rest) = (String::new(), text);
    let mut found = false;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => string_length(rest),
            _ => match WORDS.iter().find(|(word, _)| rest.starts_with(word)) {
                Some((word, tag)) => {
                    found = true;
                    written.push_str(tag);
                    rest = &rest[word.len()..];
                    continue;
                }
                None => first.len_utf8(),
            },
        };
        written.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    found.then_some(written)
}

/// Bytes of the text in quotes at the beginning, with both of them; all bytes if it does not end.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (place, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return place + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_that_json_does_not_know_are_tagged() {
        let limit = parse_json(r#"{"limit": [0.0, Infinity], "low": -Infinity, "none":NaN}"#).unwrap();
        let tag = |word: &str| json!({"__float__": word});
        assert_eq!(
            limit,
            json!({"limit": [0.0, tag("Infinity")], "low": tag("-Infinity"), "none": tag("NaN")})
        );
    }

    #[test]
    fn texts_keep_their_words_and_what_is_broken_stays_so() {
        let text = r#"{"say \" NaN": "Infinity \\", "é": [Infinity]}"#;
        let read = parse_json(text).unwrap();
        assert_eq!(read["say \" NaN"], "Infinity \\");
        for broken in ["[Infinity", "Infinitys", "[\"NaN", "NaN NaN", ""] {
            assert!(parse_json(broken).is_err(), "{broken}");
        }
    }
}
