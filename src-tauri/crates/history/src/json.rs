//! Values of `protocol` as columns: JSON, words, and text whatever its bytes are.

use serde::de::DeserializeOwned;
use serde::Serialize;
use serde_json::Value;

use crate::{Error, Result};

/// A text whatever its bytes are.
pub(crate) fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|broken| String::from_utf8_lossy(broken.as_bytes()).into_owned())
}

/// A value from its JSON, if it can be read: what it says is less than the message or the chat that it stands at.
pub(crate) fn readable<T: DeserializeOwned>(what: &'static str, json: Vec<u8>) -> Option<T> {
    from_json(what, &lossy(json))
        .inspect_err(|error| tracing::warn!(%error, "a value of the history is left out"))
        .ok()
}

/// A value as JSON.
pub(crate) fn to_json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("values of protocol have string keys and no failing serializer")
}

/// A value from its JSON; `what` names it in the error.
pub(crate) fn from_json<T: DeserializeOwned>(what: &'static str, json: &str) -> Result<T> {
    serde_json::from_str(json).map_err(|source| Error::Unreadable { what, source })
}

/// A variant without fields as its word, such as `streaming`.
pub(crate) fn to_word<T: Serialize>(value: &T) -> String {
    to_json(value).trim_matches('"').to_owned()
}

/// A variant from its word.
pub(crate) fn from_word<T: DeserializeOwned>(what: &'static str, word: &str) -> Result<T> {
    serde_json::from_value(Value::from(word)).map_err(|source| Error::Unreadable { what, source })
}
