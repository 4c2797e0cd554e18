//! JSON-RPC 2.0 as the Model Context Protocol uses it: messages that come, and those that go.

use serde_json::{json, Value};

/// The versions of the protocol, the newest first.
const VERSIONS: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];

/// Something else than JSON.
pub const NO_JSON: i32 = -32700;
/// JSON that is no message.
pub const NO_MESSAGE: i32 = -32600;
/// A method that is not served.
pub const NO_METHOD: i32 = -32601;
/// Parameters that the method does not take.
pub const BAD_PARAMS: i32 = -32602;
/// Too many requests at once.
pub const BUSY: i32 = -32000;

/// A message of the client.
#[derive(Debug, PartialEq)]
pub enum Incoming {
    /// It gets a response.
    Request { id: Value, method: String, params: Value },
    /// It gets none.
    Notification { method: String, params: Value },
    /// A response to a request, which Ponder makes none of.
    Response,
    /// It is no message; its id, if it has a proper one.
    Invalid { id: Value },
}

impl Incoming {
    /// Reads a message.
    pub fn read(mut message: Value) -> Self {
        let id = message.get("id").cloned();
        let is_version_2 = message.get("jsonrpc").is_some_and(|version| version == "2.0");
        let method = message.get("method").and_then(Value::as_str).map(str::to_owned);
        let is_response = message.get("result").or(message.get("error")).is_some();
        let params = message.get_mut("params").map(Value::take).unwrap_or_default();
        let proper = |id: &Value| id.is_string() || id.is_number();
        match (method, id) {
            (Some(method), None) if is_version_2 => Self::Notification { method, params },
            (Some(method), Some(id)) if is_version_2 && proper(&id) => Self::Request { id, method, params },
            (None, Some(_)) if is_version_2 && is_response => Self::Response,
            (_, id) => Self::Invalid {
                id: id.filter(proper).unwrap_or_default(),
            },
        }
    }
}

/// A refusal of a request.
#[derive(Debug)]
pub struct Refusal {
    pub code: i32,
    pub message: String,
}

impl Refusal {
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

/// The response to a request.
pub fn response(id: &Value, outcome: Result<Value, Refusal>) -> Value {
    match outcome {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(Refusal { code, message }) => {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
        }
    }
}

/// The result of `initialize`: the client's version of the protocol if it is known, else the newest.
///
/// # Errors
/// [`BAD_PARAMS`] without a version.
pub fn begin(params: &Value) -> Result<Value, Refusal> {
    let Some(asked) = params.get("protocolVersion").and_then(Value::as_str) else {
        return Err(Refusal::new(BAD_PARAMS, "there is no protocolVersion"));
    };
    let version = VERSIONS
        .iter()
        .find(|version| **version == asked)
        .unwrap_or(&VERSIONS[0]);
    Ok(json!({
        "protocolVersion": version,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "ponder", "title": "Ponder", "version": env!("CARGO_PKG_VERSION")},
    }))
}

/// The result of a call: a text, or why there is none, which the client's model is to read.
pub fn result(outcome: anyhow::Result<String>) -> Value {
    let (text, is_error) = match outcome {
        Ok(text) => (text, false),
        Err(error) => (crate::output::sentence(&error), true),
    };
    json!({"content": [{"type": "text", "text": text}], "isError": is_error})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_told_from_what_is_none() {
        let invalid = |id: Value| Incoming::Invalid { id };
        let method = || "ping".to_owned();
        for (message, read) in [
            (
                json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": 1}}),
                Incoming::Request {
                    id: 1.into(),
                    method: method(),
                    params: json!({"a": 1}),
                },
            ),
            (
                json!({"jsonrpc": "2.0", "method": "ping"}),
                Incoming::Notification {
                    method: method(),
                    params: Value::Null,
                },
            ),
            (json!({"jsonrpc": "2.0", "id": "a", "result": {}}), Incoming::Response),
            (
                json!({"jsonrpc": "2.0", "id": null, "method": "ping"}),
                invalid(Value::Null),
            ),
            (
                json!({"jsonrpc": "2.0", "id": [1], "method": "ping"}),
                invalid(Value::Null),
            ),
            (json!({"jsonrpc": "1.0", "id": 1, "method": "ping"}), invalid(1.into())),
            (json!({"jsonrpc": "2.0", "id": 1, "method": 7}), invalid(1.into())),
            (json!({"jsonrpc": "2.0", "id": 1}), invalid(1.into())),
            (json!({}), invalid(Value::Null)),
            (json!(7), invalid(Value::Null)),
            (json!("text"), invalid(Value::Null)),
        ] {
            assert_eq!(Incoming::read(message.clone()), read, "{message}");
        }
    }

    #[test]
    fn a_version_that_is_known_is_spoken() {
        let version = |asked: &str| begin(&json!({"protocolVersion": asked})).unwrap()["protocolVersion"].clone();
        for known in VERSIONS {
            assert_eq!(version(known), known);
        }
        assert_eq!(version("2024-11-05"), "2025-11-25");
        assert_eq!(version("2099-01-01"), "2025-11-25");
        assert_eq!(begin(&json!({})).unwrap_err().code, BAD_PARAMS);
    }
}
