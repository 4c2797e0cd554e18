//! The reason why a download, or a file of it, does not continue.

use std::time::Duration;

use protocol::ErrorCode;
use tokio_util::sync::CancellationToken;

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

/// Sleeps, unless the download is canceled.
///
/// # Errors
/// [`Stop::Canceled`].
pub async fn sleep(stop: &CancellationToken, wait: Duration) -> Result<(), Stop> {
    tokio::select! {
        () = stop.cancelled() => Err(Stop::Canceled),
        () = tokio::time::sleep(wait) => Ok(()),
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
            Stop::Canceled => Self::new(ErrorCode::Stopped, "the download was stopped; what has arrived is kept"),
            Stop::Changed(reason) | Stop::Restart(reason) => {
                let message = format!("{reason}; nothing wrong was kept, try again later");
                Self::new(ErrorCode::Corrupt, message)
            }
        }
    }
}
