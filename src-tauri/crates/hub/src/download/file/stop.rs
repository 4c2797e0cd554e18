//! The reason why a download, or a file of it, does not continue.

use protocol::ErrorCode;

use super::progress::DownloadItem;
use crate::error::Error;

/// The reason why a download, or a file of it, does not continue.
#[derive(Debug)]
pub enum Stop {
    /// The user or the app canceled it.
    Canceled,
    /// The server's file differs from its file list.
    Changed(String),
    /// The bytes on disk cannot be continued.
    Restart(String),
    /// It failed.
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// The error of a file after its last retry.
pub fn retries_exhausted(item: &DownloadItem, reason: &str) -> Stop {
    let path = item.paths.first().map(ToString::to_string).unwrap_or_default();
    Stop::Failed(Error::RetriesExhausted {
        path,
        reason: reason.to_owned(),
    })
}

impl From<Stop> for protocol::Error {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Failed(error) => error.into(),
            Stop::Canceled => {
                protocol::Error::new(ErrorCode::Stopped, "the download was stopped; what has arrived is kept")
            }
            Stop::Changed(reason) | Stop::Restart(reason) => protocol::Error::new(
                ErrorCode::Corrupt,
                format!("{reason}; nothing wrong was kept, try again later"),
            ),
        }
    }
}
