//! The spelling of tokens: how a tokenizer writes bytes into them.

use std::sync::LazyLock;

use serde_json::Value;

use crate::error::{Error, Result};

/// How a tokenizer writes bytes into its tokens, from the `decoder` of tokenizer.json.
#[derive(Debug)]
pub(super) enum Spelling {
    /// GPT-2's alphabet: one character for each byte.
    ByteLevel,
    /// SentencePiece: replacements such as `▁` for a blank, and tokens `<0xNN>` for single bytes.
    Pieces {
        replace: Vec<(String, String)>,
        byte_fallback: bool,
    },
}

impl Default for Spelling {
    /// Tokens as they are written.
    fn default() -> Self {
        Self::Pieces {
            replace: Vec::new(),
            byte_fallback: false,
        }
    }
}

impl Spelling {
    pub(super) fn of(decoder: &Value) -> Result<Self> {
        let steps = match decoder.get("decoders").and_then(Value::as_array) {
            Some(steps) => steps.as_slice(),
            None => std::slice::from_ref(decoder),
        };
        let mut replace = Vec::new();
        let mut byte_fallback = false;
        for step in steps {
            match step.get("type").and_then(Value::as_str) {
                Some("ByteLevel") => return Ok(Self::ByteLevel),
                Some("ByteFallback") => byte_fallback = true,
                Some("Replace") => {
                    let pattern = step.pointer("/pattern/String").and_then(Value::as_str);
                    let pattern =
                        pattern.ok_or_else(|| Error::UnknownDecoder("Replace with a regular expression".into()))?;
                    let content = step["content"].as_str().unwrap_or_default();
                    replace.push((pattern.to_owned(), content.to_owned()));
                }
                Some("Metaspace") => replace.push((step["replacement"].as_str().unwrap_or("▁").to_owned(), " ".into())),
                // Strip takes a blank off the start of a whole text, and a streamed answer is never one.
                Some("Fuse" | "Strip") => {}
                other => return Err(Error::UnknownDecoder(other.unwrap_or("none").to_owned())),
            }
        }
        Ok(Self::Pieces { replace, byte_fallback })
    }

    pub(super) fn bytes(&self, token: String) -> Vec<u8> {
        match self {
            Self::ByteLevel => {
                let alphabet = &*BYTE_OF;
                let bytes = token.chars().map(|c| alphabet.get(c as usize).copied().flatten());
                // Added tokens with characters outside of the alphabet stand for themselves.
                bytes.collect::<Option<Vec<u8>>>().unwrap_or_else(|| token.into_bytes())
            }
            Self::Pieces { replace, byte_fallback } => {
                let hex = token.strip_prefix("<0x").and_then(|rest| rest.strip_suffix('>'));
                let hex = hex.filter(|hex| *byte_fallback && hex.len() == 2);
                if let Some(byte) = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
                    return vec![byte];
                }
                let mut text = token;
                for (pattern, content) in replace {
                    if text.contains(pattern.as_str()) {
                        text = text.replace(pattern, content);
                    }
                }
                text.into_bytes()
            }
        }
    }
}

/// GPT-2's alphabet: printable bytes stand for themselves, the others follow from U+0100 on.
static BYTE_OF: LazyLock<[Option<u8>; 0x144]> = LazyLock::new(|| {
    let printable = |byte: u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let same = (0..=u8::MAX)
        .filter(|byte| printable(*byte))
        .map(|byte| (byte, usize::from(byte)));
    let others = (0..=u8::MAX).filter(|byte| !printable(*byte)).zip(0x100..);
    let mut bytes = [None; 0x144];
    same.chain(others).for_each(|(byte, at)| bytes[at] = Some(byte));
    bytes
});
