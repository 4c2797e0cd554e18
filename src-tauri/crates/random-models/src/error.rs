//! Errors while a random model is written.

use std::path::PathBuf;

use protocol::ErrorCode;

use crate::names::NAMES;

/// An error of this room.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No shape has this name.
    #[error("there is no shape `{name}`; the shapes are {}", NAMES.join(", "))]
    UnknownShape {
        /// The name that was asked for.
        name: String,
    },
    /// The tensors of such a config are not known here.
    #[error("no random model can be written for {0}")]
    UnsupportedConfig(String),
    /// The folder cannot be written.
    #[error("cannot write {}: {source}", folder.display())]
    Unwritable {
        /// The model's folder.
        folder: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}

/// A result of this room.
pub type Result<T> = std::result::Result<T, Error>;

impl From<Error> for protocol::Error {
    fn from(error: Error) -> Self {
        let code = match error {
            Error::UnknownShape { .. } => ErrorCode::BadRequest,
            Error::UnsupportedConfig(_) => ErrorCode::ModelUnsupported,
            Error::Unwritable { .. } => ErrorCode::ModelBroken,
        };
        Self::new(code, error.to_string())
    }
}
