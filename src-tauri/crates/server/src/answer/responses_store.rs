//! The last responses, in memory, so that a request can continue from one.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

/// The maximum number of stored responses.
const MOST_RESPONSES: usize = 256;

/// The maximum size of all stored responses, in bytes of JSON.
const MOST_BYTES: usize = 64 << 20;

/// A response and the conversation that it belongs to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredResponse {
    /// Its id.
    pub(crate) id: String,
    /// All items before its answer.
    pub(crate) input: Vec<Value>,
    /// The response as it was sent.
    pub(crate) body: Value,
}

impl StoredResponse {
    /// The items of its answer.
    pub(crate) fn output(&self) -> &[Value] {
        self.body["output"].as_array().map(Vec::as_slice).unwrap_or_default()
    }

    fn bytes(&self) -> usize {
        let input: usize = self.input.iter().map(bytes).sum();
        input + bytes(&self.body)
    }
}

/// The approximate size of a value in memory, in bytes.
fn bytes(value: &Value) -> usize {
    const NODE: usize = 64;
    NODE + match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(bytes).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + bytes(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// The store. The oldest responses are dropped first.
#[derive(Debug, Default)]
pub(crate) struct ResponsesStore(Mutex<Ring>);

#[derive(Debug, Default)]
struct Ring {
    responses: VecDeque<(usize, StoredResponse)>,
    bytes: usize,
}

impl ResponsesStore {
    /// Stores a response.
    pub(crate) fn keep(&self, response: StoredResponse) {
        let bytes = response.bytes();
        let mut ring = self.lock();
        ring.bytes += bytes;
        ring.responses.push_back((bytes, response));
        while ring.responses.len() > MOST_RESPONSES || ring.bytes > MOST_BYTES {
            let Some((bytes, _)) = ring.responses.pop_front() else {
                break;
            };
            ring.bytes -= bytes;
        }
    }

    /// The response of this id.
    pub(crate) fn get(&self, id: &str) -> Option<StoredResponse> {
        let ring = self.lock();
        let found = ring.responses.iter().rev().find(|(_, response)| response.id == id);
        found.map(|(_, response)| response.clone())
    }

    /// Removes the response of this id; returns true if there was one.
    pub(crate) fn remove(&self, id: &str) -> bool {
        let mut ring = self.lock();
        let Some(at) = ring.responses.iter().position(|(_, response)| response.id == id) else {
            return false;
        };
        if let Some((bytes, _)) = ring.responses.remove(at) {
            ring.bytes -= bytes;
        }
        true
    }

    /// An item of a stored response.
    pub(crate) fn item(&self, id: &str) -> Option<Value> {
        let ring = self.lock();
        let mut items = ring.responses.iter().rev().flat_map(|(_, response)| response.output());
        items.find(|item| item["id"] == id).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        // Nothing that can panic runs under this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn response(id: &str, text: &str) -> StoredResponse {
        StoredResponse {
            id: id.into(),
            input: vec![json!({"role": "user", "content": text})],
            body: json!({"id": id, "output": [{"id": format!("rs_{id}"), "type": "reasoning"}]}),
        }
    }

    #[test]
    fn a_response_and_its_items_are_found_until_they_are_removed() {
        let store = ResponsesStore::default();
        store.keep(response("a", "hi"));
        assert_eq!(store.get("a"), Some(response("a", "hi")));
        assert_eq!(store.item("rs_a").unwrap()["type"], "reasoning");
        assert!(store.remove("a") && !store.remove("a"));
        assert_eq!((store.get("a"), store.item("rs_a")), (None, None));
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many_or_too_large_ones() {
        let store = ResponsesStore::default();
        for index in 0..300 {
            store.keep(response(&index.to_string(), "hi"));
        }
        assert!(store.get("43").is_none() && store.get("44").is_some());
        let large = "x".repeat(40 << 20);
        store.keep(response("large", &large));
        store.keep(response("larger", &large));
        assert!(store.get("large").is_none() && store.get("299").is_none() && store.get("larger").is_some());
        // One that is too large by itself is not kept either.
        store.keep(response("largest", &"x".repeat(65 << 20)));
        assert!(store.get("largest").is_none() && store.lock().bytes == 0);
    }
}
