//! Why an image cannot be used.

use std::borrow::Cow;

use protocol::{ErrorCode, Reason};
use serde::{Deserialize, Serialize};

/// An error of this room. Messages say what is wrong with the image and what to do about it.
#[derive(Debug, Serialize, Deserialize, thiserror::Error)]
pub enum Error {
    /// A kind of file that is not known, or known and not read.
    #[error("{0} cannot be shown to a model; save it as PNG or JPEG")]
    UnknownKind(String),
    /// The file is damaged or cut short.
    #[error("this {kind} file cannot be read: {reason}; save the image anew")]
    Broken {
        /// Its kind, such as `PNG`.
        kind: Cow<'static, str>,
        /// The reason.
        reason: String,
    },
    /// It is larger than is sensible.
    #[error("this image is too large: {0}; save it smaller")]
    TooLarge(String),
    /// The plan is of another image or another processor.
    #[error("the image does not fit its plan: {0}")]
    WrongPlan(String),
}

/// A result of this room.
pub type Result<T> = std::result::Result<T, Error>;

impl From<Error> for protocol::Error {
    fn from(error: Error) -> Self {
        let message = Self::new(ErrorCode::ImageBroken, error.to_string());
        match error {
            Error::UnknownKind(kind) => message.narrowed(Reason::ImageKind).with("kind", kind),
            Error::Broken { kind, reason } => message.with("kind", kind.into_owned()).with("reason", reason),
            Error::TooLarge(reason) => message.narrowed(Reason::ImageTooLarge).with("reason", reason),
            Error::WrongPlan(reason) => message.with("reason", reason),
        }
    }
}
