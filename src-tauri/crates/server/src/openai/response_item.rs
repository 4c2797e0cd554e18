//! The items of a response: a thought or a message that grows.

use serde_json::{json, Value};

/// An item that grows.
pub(super) struct Open {
    pub(super) kind: Growing,
    pub(super) id: String,
    pub(super) text: String,
    pub(super) logprobs: Vec<Value>,
    pub(super) annotations: Vec<Value>,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Growing {
    Reasoning,
    Message,
}

impl Open {
    pub(super) fn item(&self, status: &str, summary: bool) -> Value {
        let begun = !self.text.is_empty();
        match self.kind {
            Growing::Reasoning => {
                let part = |kind: &str, told: bool| match told && begun {
                    true => json!([{"type": kind, "text": self.text}]),
                    false => json!([]),
                };
                json!({"type": "reasoning", "id": self.id, "summary": part("summary_text", summary), "content": part("reasoning_text", true),
                    "encrypted_content": null, "status": status})
            }
            Growing::Message => {
                let content = match begun {
                    true => json!([output_text(&self.text, &self.logprobs, &self.annotations)]),
                    false => json!([]),
                };
                json!({"type": "message", "id": self.id, "role": "assistant", "status": status, "content": content})
            }
        }
    }
}

pub(super) fn output_text(text: &str, logprobs: &[Value], annotations: &[Value]) -> Value {
    json!({"type": "output_text", "text": text, "annotations": annotations, "logprobs": logprobs})
}
