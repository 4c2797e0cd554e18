//! OpenAI's surfaces.

pub(crate) mod chat;
pub(crate) mod chat_reply;
pub(crate) mod completions;
pub(crate) mod completions_reply;
pub(crate) mod embeddings;
pub(crate) mod logprobs;
pub(crate) mod responses;
pub(crate) mod responses_input;
pub(crate) mod responses_reply;
pub(crate) mod usage;

use serde_json::{json, Value};

/// The schema of what completions continue and embeddings are made of: a text, token ids, or a list of either.
pub(crate) fn text_or_ids() -> Value {
    let ids = json!({"type": "array", "items": {"type": "integer", "minimum": 0}});
    let either = json!({"anyOf": [{"type": "string"}, ids]});
    json!({"anyOf": [{"type": "string"}, ids, {"type": "array", "items": either}]})
}
