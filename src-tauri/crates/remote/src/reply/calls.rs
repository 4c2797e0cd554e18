//! Puts tool calls together from their pieces.

use protocol::{Notice, NoticeCode};
use serde_json::{Map, Value};

use super::chunk::CallPiece;

/// The calls of one answer, in the order in which they began.
#[derive(Debug, Default)]
pub(crate) struct PartialCalls(Vec<PartialCall>);

/// A call as far as it has come.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct PartialCall {
    index: Option<u64>,
    pub(crate) id: Option<String>,
    pub(crate) name: String,
    /// JSON, perhaps cut off.
    pub(crate) arguments: String,
}

impl PartialCall {
    /// The arguments as an object; `None` if they are none. No arguments at all are an empty object.
    pub(crate) fn object(&self) -> Option<Value> {
        if self.arguments.trim().is_empty() {
            return Some(Map::new().into());
        }
        serde_json::from_str(&self.arguments).ok().filter(Value::is_object)
    }

    /// True if one of these tools is called.
    pub(crate) fn is_of(&self, tools: &[Value]) -> bool {
        let name = |tool: &Value| tool.get("function").unwrap_or(tool)["name"] == self.name.as_str();
        tools.iter().any(name)
    }

    /// Reports a call of a tool that was not offered.
    pub(crate) fn unknown(&self) -> Notice {
        let message = "The model called a tool that was not offered to it; the call is shown in the answer as text.";
        Notice::new(NoticeCode::UnknownTool, message).with("name", self.name.as_str())
    }

    /// Reports a call that is not whole.
    pub(crate) fn broken(&self) -> Notice {
        let message =
            "A tool call of this answer is broken or was cut off, so it was not made; it is shown in the answer as text.";
        Notice::new(NoticeCode::BrokenToolCall, message)
    }
}

impl PartialCalls {
    /// Adds a piece to the call that it belongs to. Without an index, a piece that names a tool begins a call and any
    /// other continues the last one.
    pub(crate) fn push(&mut self, piece: CallPiece) {
        let known = match (piece.index, &piece.id) {
            (Some(index), _) => self.0.iter().rposition(|call| call.index == Some(index)),
            (None, Some(id)) => self.0.iter().rposition(|call| call.id.as_ref() == Some(id)),
            (None, None) if piece.name.is_none() => self.0.len().checked_sub(1),
            (None, None) => None,
        };
        // Some servers count every call as number 0; another id under the same number is another call.
        let known = known.filter(|at| match (&self.0[*at].id, &piece.id) {
            (Some(id), Some(other)) => id == other,
            _ => true,
        });
        let at = known.unwrap_or_else(|| {
            self.0.push(PartialCall {
                index: piece.index,
                ..PartialCall::default()
            });
            self.0.len() - 1
        });
        let call = &mut self.0[at];
        call.id = call.id.take().or(piece.id);
        // A name comes whole, and some servers repeat it with every piece.
        if call.name.is_empty() {
            call.name = piece.name.unwrap_or_default();
        }
        call.arguments.push_str(&piece.arguments);
    }

    /// All calls, complete or as far as they came.
    pub(crate) fn take(&mut self) -> Vec<PartialCall> {
        std::mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn piece(index: Option<u64>, id: Option<&str>, name: Option<&str>, arguments: &str) -> CallPiece {
        CallPiece {
            index,
            id: id.map(str::to_owned),
            name: name.map(str::to_owned),
            arguments: arguments.to_owned(),
        }
    }

    fn assembled(pieces: Vec<CallPiece>) -> Vec<(String, Option<Value>)> {
        let mut calls = PartialCalls::default();
        pieces.into_iter().for_each(|piece| calls.push(piece));
        calls
            .take()
            .into_iter()
            .map(|call| (call.name.clone(), call.object()))
            .collect()
    }

    #[test]
    fn pieces_of_two_calls_may_alternate() {
        let made = assembled(vec![
            piece(Some(0), Some("a"), Some("f"), "{\"x\""),
            piece(Some(1), Some("b"), Some("g"), ""),
            piece(Some(0), None, None, ":1}"),
            piece(Some(1), None, None, "{}"),
        ]);
        assert_eq!(
            made,
            [("f".into(), Some(json!({"x": 1}))), ("g".into(), Some(json!({})))]
        );
    }

    #[test]
    fn calls_without_numbers_or_all_number_0_are_told_apart() {
        let made = assembled(vec![
            piece(None, Some("a"), Some("f"), "{}"),
            piece(None, Some("b"), Some("f"), "{"),
            piece(None, None, None, "}"),
        ]);
        assert_eq!(made.len(), 2);
        let made = assembled(vec![
            piece(Some(0), Some("a"), Some("f"), "{}"),
            piece(Some(0), Some("b"), Some("g"), "{}"),
        ]);
        assert_eq!(made, [("f".into(), Some(json!({}))), ("g".into(), Some(json!({})))]);
        let made = assembled(vec![
            piece(None, None, Some("f"), ""),
            piece(None, None, Some("g"), "[1]"),
        ]);
        assert_eq!(made, [("f".into(), Some(json!({}))), ("g".into(), None)]);
    }

    #[test]
    fn a_name_that_is_repeated_stays_one_name() {
        let made = assembled(vec![
            piece(Some(0), Some("a"), Some("f"), "{"),
            piece(Some(0), Some("a"), Some("f"), "}"),
        ]);
        assert_eq!(made, [("f".into(), Some(json!({})))]);
    }
}
