//! Why a download, or a file of it, does not continue.

use protocol::ErrorCode;

use super::progress::DownloadItem;
use crate::error::Error;

/// Why a download, or a file of it, does not continue.
#[derive(Debug)]
pub enum Halt {
    /// Somebody stopped it.
    Stopped,
    /// The server has something else than its file list says.
    Changed(String),
    /// What is on disk of this file cannot be continued.
    Restart(String),
    /// It went wrong.
    Failed(Error),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// The error of a file that is given up for now.
pub fn gave_up(item: &DownloadItem, reason: &str) -> Halt {
    let path = item.paths.first().map(ToString::to_string).unwrap_or_default();
    Halt::Failed(Error::GaveUp {
        path,
        reason: reason.to_owned(),
    })
}

impl From<Halt> for protocol::Error {
    fn from(halt: Halt) -> Self {
        match halt {
            Halt::Failed(error) => error.into(),
            Halt::Stopped => {
                protocol::Error::new(ErrorCode::Stopped, "the download was stopped; what has arrived is kept")
            }
            Halt::Changed(reason) | Halt::Restart(reason) => protocol::Error::new(
                ErrorCode::Corrupt,
                format!("{reason}; nothing wrong was kept, try again later"),
            ),
        }
    }
}
