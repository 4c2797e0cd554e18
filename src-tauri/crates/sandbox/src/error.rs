//! Why the work on a file has no result.

use std::io;

/// An error of this room.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The process could not be started, or does not speak as this version does.
    #[error("the process that reads files could not be started: {0}")]
    Start(#[source] io::Error),
    /// The work took longer than its time.
    #[error("it takes too long")]
    TimedOut,
    /// The process ended: the work took more memory than it may, crashed, or did what is not allowed.
    #[error("it takes too much memory, or is built to do harm")]
    Ended,
}

/// A result of this room.
pub type Result<T> = std::result::Result<T, Error>;
