//! The one error that crosses a boundary: a code for programs, a reason and arguments for windows, a message.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::{Argument, Arguments, ErrorCode, Reason};

/// An error as it crosses IPC, the command line's JSON and the boundaries of crates: `{code, reason?, arguments?,
/// message}`.
///
/// A window says the reason, or the code without one, in its language, with the arguments as values. The message is in
/// English, for the command line and for details: what failed, what is safe and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize, TS)]
#[error("{message}")]
pub struct Error {
    /// The code, for programs.
    pub code: ErrorCode,
    /// The reason, if windows have words for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub reason: Option<Reason>,
    /// The values that the message names, such as `context` and `prompt` for [`ErrorCode::ContextFull`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[ts(type = "Record<string, string | number>", optional)]
    pub arguments: Arguments,
    /// The message, in English.
    pub message: String,
}

impl Error {
    /// An error with this code and message, without arguments.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            reason: None,
            arguments: Arguments::new(),
            message: message.into(),
        }
    }

    /// An error with this reason and its code.
    pub fn because(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason: Some(reason),
            ..Self::new(reason.code(), message)
        }
    }

    /// Narrows it down to this reason, whose code it has then.
    pub fn narrowed(self, reason: Reason) -> Self {
        Self {
            code: reason.code(),
            reason: Some(reason),
            ..self
        }
    }

    /// The cause in the argument `reason`, for a sentence that says the rest; without one, the message.
    pub fn cause(&self) -> &str {
        match self.arguments.get("reason") {
            Some(Argument::Text(cause)) => cause,
            _ => &self.message,
        }
    }

    /// Adds an argument.
    pub fn with(mut self, name: &str, value: impl Into<Argument>) -> Self {
        self.arguments.insert(name.to_owned(), value.into());
        self
    }
}

/// A result whose error may cross a boundary.
pub type Result<T> = std::result::Result<T, Error>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_a_code_a_message_and_what_the_message_names() {
        let error = Error::new(ErrorCode::ContextFull, "too long");
        let json = serde_json::to_value(&error).unwrap();
        assert_eq!(json, serde_json::json!({"code": "context_full", "message": "too long"}));
        let json = serde_json::to_value(error.with("context", 4096u32)).unwrap();
        assert_eq!(json["arguments"], serde_json::json!({"context": 4096}));
    }

    #[test]
    fn the_cause_is_what_the_reason_names() {
        let error = Error::because(Reason::ModelVision, "it cannot be read: no depth");
        assert_eq!(error.cause(), "it cannot be read: no depth");
        assert_eq!(error.with("reason", "no depth").cause(), "no depth");
    }
}
