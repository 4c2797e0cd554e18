//! Log probabilities in OpenAI's format, which Ollama's interface has too.

use protocol::TokenLogprobs;
use serde_json::{json, Value};

/// The maximum of `top_logprobs`.
pub(crate) const MOST: i64 = 20;

/// The tokens of a text, each with its most likely alternatives.
pub(crate) fn entries(logprobs: &[TokenLogprobs]) -> Vec<Value> {
    let entry = |token: &TokenLogprobs| {
        let mut entry = one(&token.bytes, token.logprob);
        entry["top_logprobs"] = token.top.iter().map(|top| one(&top.bytes, top.logprob)).collect();
        entry
    };
    logprobs.iter().map(entry).collect()
}

fn one(bytes: &[u8], logprob: f32) -> Value {
    json!({"token": text(bytes), "bytes": bytes, "logprob": finite(logprob)})
}

/// The text of a token; a partial character becomes U+FFFD.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// JSON has no infinity; OpenAI sends -9999 for impossible tokens.
pub(crate) fn finite(logprob: f32) -> f32 {
    if logprob.is_finite() {
        logprob
    } else {
        -9999.0
    }
}

#[cfg(test)]
mod tests {
    use protocol::TopLogprob;

    use super::*;

    #[test]
    fn a_token_is_told_with_its_bytes_and_the_likeliest() {
        let token = TokenLogprobs {
            token: 7,
            bytes: vec![0xe2, 0x82],
            logprob: -0.5,
            top: vec![TopLogprob {
                token: 8,
                bytes: b"a".to_vec(),
                logprob: f32::NEG_INFINITY,
            }],
        };
        assert_eq!(
            entries(&[token]),
            [json!({"token": "\u{fffd}", "bytes": [0xe2, 0x82], "logprob": -0.5,
                "top_logprobs": [{"token": "a", "bytes": [97], "logprob": -9999.0}]})]
        );
    }
}
