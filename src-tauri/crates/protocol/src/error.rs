//! The one error that crosses a boundary: a code for programs, a reason and arguments for windows, a message.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::{Argument, Arguments, Reason};

/// The kind of failure, as far as a caller acts on it. A code exists if the window, the command line or a script
/// behaves differently because of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The prompt and the requested answer do not fit the model's context. Nothing was dropped; shorten or branch.
    ContextFull,
    /// The caller passed an invalid value; a retry does not help.
    BadRequest,
    /// No such chat, message or file. A retry does not help.
    NotFound,
    /// No model with that name is on this computer.
    ModelNotFound,
    /// The model's files are broken or incomplete; a repair or a new download helps.
    ModelBroken,
    /// The model's family, quantization or tokenizer is not supported by this version.
    ModelUnsupported,
    /// A model or its prompt takes more memory than there is. Nothing was loaded; close other programs, shorten the
    /// prompt, or use a smaller model.
    MemoryShort,
    /// An image cannot be read: it is broken, too large, or of an unknown kind. Another file helps.
    ImageBroken,
    /// A document cannot be read: it is broken, protected, too large, or of an unknown kind. Another file helps.
    FileBroken,
    /// The request has an image and the model does not support vision. Nothing was sent; `models` names the local
    /// models that do, if there are any.
    ImageNotSeen,
    /// The model's own chat template refused these messages.
    TemplateRefused,
    /// An answer is already running in this chat, or the engine's queue is full; then `retry_after` is the number of
    /// seconds after which a retry may help.
    Busy,
    /// The history file could not be read or written.
    Storage,
    /// The history file is damaged; the user chooses what takes its place.
    HistoryDamaged,
    /// This computer's keychain cannot be used; `reason` says why, and the environment variable in `variable` can take
    /// its place.
    Keychain,
    /// The app is offline by its settings; switching that off helps.
    Offline,
    /// The other computer could not be reached, or failed; a later retry helps.
    Network,
    /// An endpoint requires a key, or refused the one that was sent; storing the right one helps.
    KeyRefused,
    /// The hub requires a token, or acceptance of its terms, for this model.
    Gated,
    /// The disk is full; freeing space helps, and downloaded data is kept.
    DiskFull,
    /// The hub repeatedly sent wrong data, or a new version of Ponder is not signed correctly; nothing wrong was kept.
    Corrupt,
    /// The user or another program stopped it; nothing is wrong.
    Stopped,
    /// The engine failed in one job; the next one works.
    Engine,
    /// The engine's thread is gone.
    EngineGone,
}

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
}
