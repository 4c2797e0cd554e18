//! The last responses, in memory, so that a request can continue from one.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

/// The maximum number of stored responses.
const MOST_RESPONSES: usize = 256;

/// The maximum size of all stored responses, in bytes of JSON.
const MOST_BYTES: usize = 64 << 20;

/// A response and the conversation that it belongs to. Clones share the items.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredResponse {
    /// Its id.
    pub(crate) id: String,
    /// All items before its answer.
    pub(crate) input: Vec<Arc<Value>>,
    /// The items of its answer.
    pub(crate) output: Vec<Arc<Value>>,
    /// The other fields of the response.
    fields: Value,
    /// The items of the answer that the client was sent in another form, by their places.
    sent: Vec<(usize, Value)>,
}

impl StoredResponse {
    /// A response as it was sent, and the items before its answer.
    pub(crate) fn new(id: &str, input: Vec<Arc<Value>>, mut body: Value) -> Self {
        let output = match body.get_mut("output").map(Value::take) {
            Some(Value::Array(items)) => items.into_iter().map(Arc::new).collect(),
            _ => Vec::new(),
        };
        Self {
            id: id.to_owned(),
            input,
            output,
            fields: body,
            sent: Vec::new(),
        }
    }

    /// The same with another item at a place of the answer, for requests that go on from it: the client was sent the
    /// one that is there.
    pub(crate) fn with_item(mut self, at: usize, item: Value) -> Self {
        if let Some(place) = self.output.get_mut(at) {
            let sent = std::mem::replace(place, Arc::new(item));
            self.sent.push((at, Value::clone(&sent)));
        }
        self
    }

    /// The response as it was sent.
    pub(crate) fn body(&self) -> Value {
        let mut body = self.fields.clone();
        body["output"] = self.output.iter().map(|item| Value::clone(item)).collect();
        for (at, item) in &self.sent {
            body["output"][*at] = item.clone();
        }
        body
    }

    fn bytes(&self) -> usize {
        let items = self.input.iter().chain(&self.output);
        let sent = self.sent.iter().map(|(_, item)| bytes(item));
        items.map(|item| bytes(item)).sum::<usize>() + sent.sum::<usize>() + bytes(&self.fields)
    }
}

/// The approximate size of a value in memory, in bytes.
pub(crate) fn bytes(value: &Value) -> usize {
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
    /// The items of all answers by their ids, which are unique.
    items: HashMap<String, Arc<Value>>,
    bytes: usize,
}

impl Ring {
    fn push(&mut self, response: StoredResponse) {
        let bytes = response.bytes();
        self.bytes += bytes;
        let id = |item: &Arc<Value>| Some((item["id"].as_str()?.to_owned(), item.clone()));
        self.items.extend(response.output.iter().filter_map(id));
        self.responses.push_back((bytes, response));
    }

    /// Removes the response at this place; `false` if there is none.
    fn remove(&mut self, at: usize) -> bool {
        let Some((bytes, response)) = self.responses.remove(at) else {
            return false;
        };
        self.bytes -= bytes;
        for id in response.output.iter().filter_map(|item| item["id"].as_str()) {
            self.items.remove(id);
        }
        true
    }
}

impl ResponsesStore {
    /// Stores a response.
    pub(crate) fn keep(&self, response: StoredResponse) {
        let mut ring = self.lock();
        ring.push(response);
        while ring.responses.len() > MOST_RESPONSES || ring.bytes > MOST_BYTES {
            if !ring.remove(0) {
                break;
            }
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
        let at = ring.responses.iter().position(|(_, response)| response.id == id);
        at.is_some_and(|at| ring.remove(at))
    }

    /// An item of a stored response.
    pub(crate) fn item(&self, id: &str) -> Option<Arc<Value>> {
        self.lock().items.get(id).cloned()
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
        let input = vec![Arc::new(json!({"role": "user", "content": text}))];
        let body = json!({"id": id, "output": [{"id": format!("rs_{id}"), "type": "reasoning"}]});
        StoredResponse::new(id, input, body)
    }

    #[test]
    fn a_response_and_its_items_are_found_until_they_are_removed() {
        let store = ResponsesStore::default();
        store.keep(response("a", "hi"));
        assert_eq!(store.get("a"), Some(response("a", "hi")));
        assert_eq!(store.item("rs_a").unwrap()["type"], "reasoning");
        assert_eq!(
            store.get("a").unwrap().body(),
            json!({"id": "a", "output": [{"id": "rs_a", "type": "reasoning"}]})
        );
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
        assert!(store.get("largest").is_none() && store.lock().bytes == 0 && store.lock().items.is_empty());
    }
}
