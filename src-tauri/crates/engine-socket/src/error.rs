//! Why an engine is not shared.

use std::path::PathBuf;

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
