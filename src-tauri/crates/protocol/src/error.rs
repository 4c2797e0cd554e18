//! The one error that crosses a boundary: a code for programs, arguments for texts, a message for people.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::{Argument, Arguments};

/// What went wrong, as far as somebody acts on it. A variant is added when the window, the command line or a script
/// behaves differently because of it, and removed when nobody does any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The prompt and the wanted answer do not fit the model's context. Nothing was dropped; shorten or branch.
    ContextFull,
    /// What the caller passed makes no sense; retrying the same does not help.
    BadRequest,
    /// No such chat, message or file. Retrying does not help.
    NotFound,
    /// No model of that name is on this computer.
    ModelNotFound,
    /// The model's files are there but broken or incomplete; repairing or fetching it again helps.
    ModelBroken,
    /// The model's family, quantisation or tokenizer is not known to this version.
    ModelUnsupported,
    /// A model, or what it is asked to read, takes more memory than there is. Nothing was loaded; close other programs, ask for
    /// less, or take a smaller model.
    MemoryShort,
    /// A picture cannot be read: it is broken, too large, or of a kind that is not known. Another file helps.
    PictureBroken,
    /// A document cannot be read: it is broken, protected, too large, or of a kind that is not known. Another file helps.
    FileBroken,
    /// The model cannot see, and a picture was to be shown to it. Nothing was sent; a model that sees helps, and `models` names those of
    /// this computer, if there are any.
    PictureNotSeen,
    /// The model's own chat template refused these messages.
    TemplateRefused,
    /// An answer is already running in this chat, or as many requests wait for the engine as may: then `retry_after` says after how
    /// many seconds trying again may help.
    Busy,
    /// The history file could not be read or written.
    Storage,
    /// This computer's keychain cannot be used, `reason` says why; the environment variable that `variable` names takes its place.
    Keychain,
    /// The app is set to open no connection; switching that off helps.
    Offline,
    /// The other computer could not be reached, or failed; trying again later helps.
    Network,
    /// An endpoint wants a key, or another one than it was sent; storing the right one helps.
    KeyRefused,
    /// The hub wants a token, or its terms accepted, before it hands this model out.
    Gated,
    /// The disk has not enough room; freeing some helps, and what was fetched is kept.
    DiskFull,
    /// The hub sent something else than it promised, again and again, or a new version of Ponder is not signed as it must be; nothing
    /// wrong was kept.
    Corrupt,
    /// A person, or another program, stopped it; nothing is wrong.
    Stopped,
    /// The engine failed in the middle; the next job works.
    Engine,
    /// The engine's thread is gone.
    EngineGone,
}

/// An error as it crosses IPC, the command line's JSON and the rooms' borders: `{code, arguments?, message}`.
///
/// The message says what failed, what is safe and what to do, in English words for a person. The arguments are the values that it
/// names, so that a window can say the same in another language.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize, TS)]
#[error("{message}")]
pub struct Error {
    /// For programs.
    pub code: ErrorCode,
    /// The values that the message names, such as `context` and `prompt` for [`ErrorCode::ContextFull`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[ts(type = "Record<string, string | number>", optional)]
    pub arguments: Arguments,
    /// For people.
    pub message: String,
}

impl Error {
    /// An error of this code with this message, without arguments.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            arguments: Arguments::new(),
            message: message.into(),
        }
    }

    /// The error with one more argument.
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
