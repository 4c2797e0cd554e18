//! Errors of calls, which say whether something may have been done.

use std::time::Duration;

use crate::http::Failure;

/// Why a call has no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CallError {
    /// The server refused it.
    #[error("the server refused: {0}")]
    Refused(String),
    /// The server was not reached, or refused before it worked.
    #[error("{0}; nothing was done")]
    NotDone(Failure),
    /// The server's answer did not arrive, or cannot be read.
    #[error("{0}; the call may or may not have been done")]
    Lost(Failure),
    /// The server ended; whether the call was done is not known.
    #[error("the server ended while it worked, so it may or may not have been done")]
    Ended,
    /// The server was silent for too long; it was told to stop.
    #[error("nothing came for {} s, so the call was given up; it may or may not have been done", .0.as_secs())]
    Silent(Duration),
    /// The person stopped it; the server was told.
    #[error("the call was stopped; it may or may not have been done")]
    Stopped,
}
