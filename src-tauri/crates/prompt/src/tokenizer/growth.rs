//! Growth of a text by a tokenizer's normalizer, before tokens are made of it: forty replacements of `e` by `ee` make a
//! terabyte of one letter.

use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;
use serde_json::Value;

/// The longest normalized text, in bytes. The tokenizer holds some twenty times as much for it.
const LONGEST: usize = 128 << 20;

/// The factors by which UTF-8 grows at most, from Unicode's annex 15: NFC and NFD, NFKC and NFKD.
const CANONICAL: usize = 3;
const COMPATIBLE: usize = 11;

/// The most bytes that one byte of a text becomes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Growth(usize);

impl Growth {
    /// That of the `normalizer` of tokenizer.json.
    pub(super) fn of(normalizer: &Value) -> Self {
        Self(factor(normalizer))
    }

    /// True if a text of this many bytes may be normalized.
    pub(super) fn allows(self, bytes: usize) -> bool {
        bytes.saturating_mul(self.0) <= LONGEST
    }
}

fn factor(step: &Value) -> usize {
    let length = |name: &str| step[name].as_str().map_or(0, str::len);
    match step["type"].as_str().unwrap_or_default() {
        "Sequence" => {
            let steps = step["normalizers"].as_array().into_iter().flatten();
            steps.map(factor).fold(1, usize::saturating_mul)
        }
        "Replace" => match step.pointer("/pattern/String").and_then(Value::as_str) {
            Some(pattern) if !pattern.is_empty() => length("content").div_ceil(pattern.len()).max(1),
            // It may stand between any two letters.
            _ => length("content") + 1,
        },
        "Prepend" => length("prepend") + 1,
        "Precompiled" => longest_replacement(step["precompiled_charsmap"].as_str().unwrap_or_default()).max(1),
        "NFC" | "NFD" => CANONICAL,
        "NFKC" | "NFKD" => COMPATIBLE,
        // Blanks around Chinese letters, after a canonical form.
        "BertNormalizer" => 2 * CANONICAL,
        "ByteLevel" | "Lowercase" => 2,
        _ => 1,
    }
}

/// The longest text in a map of SentencePiece: the length of its index in four bytes, the index, and texts that end
/// with a zero.
fn longest_replacement(map: &str) -> usize {
    let map = STANDARD.decode(map).unwrap_or_default();
    let index = map
        .first_chunk()
        .map_or(0, |length| u32::from_le_bytes(*length) as usize);
    let texts = map.get(index.saturating_add(4)..).unwrap_or_default();
    texts.split(|byte| *byte == 0).map(<[u8]>::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sequence(steps: &[Value]) -> Value {
        json!({"type": "Sequence", "normalizers": steps})
    }

    #[test]
    fn texts_of_models_may_be_long_and_no_text_explodes() {
        let blanks = json!({"type": "Replace", "pattern": {"String": " "}, "content": "▁"});
        let llama = sequence(&[json!({"type": "Prepend", "prepend": "▁"}), blanks]);
        assert_eq!(factor(&llama), 12);
        for normalizer in [Value::Null, json!({"type": "NFC"}), llama] {
            assert!(Growth::of(&normalizer).allows(8 << 20), "{normalizer}");
        }
        let doubled = json!({"type": "Replace", "pattern": {"String": "e"}, "content": "ee"});
        for (hostile, bytes) in [
            (sequence(&vec![doubled.clone(); 40]), 1),
            (
                sequence(&[sequence(&vec![doubled.clone(); 20]), sequence(&vec![doubled; 60])]),
                1,
            ),
            (json!({"type": "Prepend", "prepend": "x".repeat(9 << 20)}), 100),
            (
                json!({"type": "Replace", "pattern": {"Regex": "a*"}, "content": "a".repeat(1 << 20)}),
                1000,
            ),
            (
                json!({"type": "Replace", "pattern": {"String": ""}, "content": "x".repeat(9000)}),
                20_000,
            ),
        ] {
            assert!(!Growth::of(&hostile).allows(bytes));
        }
    }

    #[test]
    fn the_map_of_sentencepiece_is_read() {
        let map = [&[2, 0, 0, 0, 9, 9][..], b"abc\0defgh\0"].concat();
        let normalizer = json!({"type": "Precompiled", "precompiled_charsmap": STANDARD.encode(map)});
        assert_eq!(factor(&normalizer), 5);
        assert_eq!(factor(&json!({"type": "Precompiled", "precompiled_charsmap": "?"})), 1);
    }
}
