//! Why an engine is not shared.

use std::path::PathBuf;

use protocol::ErrorCode;

/// Why an engine is not shared.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The folder of the socket cannot be made or locked.
    #[error("{path} cannot be used: {reason}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The system's message.
        reason: std::io::Error,
    },
    /// The folder of the socket stays open to other users.
    #[error("{path} can be opened by other users of this computer, because its file system keeps no permissions")]
    FolderNotPrivate {
        /// The folder.
        path: PathBuf,
    },
    /// The socket cannot be made.
    #[error("the socket {path} cannot be made: {reason}")]
    Socket {
        /// The socket.
        path: PathBuf,
        /// The system's message. Paths of more than about 100 bytes are too long for a socket.
        reason: std::io::Error,
    },
}

/// A result of this room.
pub type Result<T> = std::result::Result<T, Error>;

/// The error of a job whose request or result is too long for the socket.
pub(crate) fn frame_too_long() -> protocol::Error {
    let message = "this is too large for the engine of another Ponder process; send less, or close the other one";
    protocol::Error::new(ErrorCode::BadRequest, message)
}
