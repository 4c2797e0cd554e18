//! Errors of the history file, in sentences that say what is safe and what to do.

use std::path::PathBuf;

use protocol::{ErrorCode, Reason};

/// An error of the history file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The id names nothing, or a chat in the trash. Says which kind of thing.
    #[error("there is no such {0}; it may have been deleted")]
    NotFound(&'static str),
    /// The chat has a running answer, in this process or another.
    #[error("an answer is already being written in this chat; wait for its end or stop it")]
    Busy,
    /// A call has one result, and this one has it.
    #[error("this call has its result already; nothing was changed")]
    HasResult,
    /// The answer is complete, is being written, or is not the last of what is looked at.
    #[error("only the last answer of a chat can be continued, and only if it ended early; nothing was changed")]
    CannotContinue,
    /// A question, an answer that is being written, or one that calls tools.
    #[error("only an answer that has ended can be written over, and none that calls tools; nothing was changed")]
    NoEdit,
    /// The file could not be opened; the source says why.
    #[error("the history file {} could not be opened: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<Error>,
    },
    /// The file is not a database, or a part of it is destroyed.
    #[error("it is damaged; nothing was changed in it. Ponder's window shows what can be read and asks what to do, and so does `ponder history repair`")]
    Damaged,
    /// The file's tables are of a later version.
    #[error(
        "it was written by a newer version of Ponder (format {found}, this version knows {known}); nothing was changed. Please update"
    )]
    Newer {
        /// The file's version.
        found: i64,
        /// The latest version that is known here.
        known: i64,
    },
    /// The file or its folder refuses writing.
    #[error("the history file or its folder may not be written, or was opened for reading only; what is stored is safe. Check the folder's permissions")]
    ReadOnly,
    /// No room is left.
    #[error("the disk is full; what was stored before is safe. Make room and try again")]
    DiskFull,
    /// Another program holds the file for longer than is waited.
    #[error("another program is using the history file; nothing was changed. Try again in a moment")]
    Locked,
    /// A stored value does not read as what it should be.
    #[error("a stored {what} cannot be read: {source}; the rest of the history is safe")]
    Unreadable {
        /// Which value.
        what: &'static str,
        /// Why.
        source: serde_json::Error,
    },
    /// Creating the folder failed.
    #[error("its folder cannot be made: {0}")]
    Folder(std::io::Error),
    /// A file beside the history, such as an image or a backup, cannot be read or written.
    #[error("a file beside the history cannot be read or written: {0}; what is stored is safe. Check the folder's permissions")]
    File(std::io::Error),
    /// The system does not tell of writes.
    #[error("the system does not tell when the history is written to: {0}")]
    Watch(std::io::Error),
    /// A file that a project does not take. Says why.
    #[error("the file was not added to the folder: {0}. Nothing was changed")]
    ProjectFile(String),
    /// A note that is not taken. Says why.
    #[error("the note was not stored: {0}. Nothing was changed")]
    Note(String),
    /// A file holds no chats that can be read.
    #[error("the file could not be imported: {0}. Nothing was changed")]
    Import(String),
    /// Anything else that SQLite reports.
    #[error("the history could not be read or written ({0}); what was stored before is safe. Try again")]
    Database(sqlx::Error),
}

/// A result of the history file.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// True if the file is damaged, which a repair may fix.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Damaged => true,
            Self::Open { source, .. } => source.is_damage(),
            _ => false,
        }
    }

    /// The words that windows have for it, if they are others than those of its code.
    fn reason(&self) -> Option<Reason> {
        Some(match self {
            error if error.is_damage() => return None,
            Self::Busy => Reason::ChatBusy,
            Self::CannotContinue => Reason::CannotContinue,
            Self::NoEdit => Reason::CannotEdit,
            Self::ProjectFile(_) => Reason::ProjectFile,
            Self::Note(_) => Reason::NoteRefused,
            Self::Import(_) => Reason::ImportFailed,
            Self::Open { source, .. } => return source.reason().or(Some(Reason::HistoryUnopened)),
            Self::Newer { .. } => Reason::HistoryNewer,
            Self::ReadOnly => Reason::HistoryReadOnly,
            Self::DiskFull => Reason::HistoryDiskFull,
            Self::Locked => Reason::HistoryLocked,
            Self::Folder(_) => Reason::HistoryUnopened,
            Self::File(_) => Reason::HistoryFiles,
            Self::NotFound(_)
            | Self::HasResult
            | Self::Damaged
            | Self::Unreadable { .. }
            | Self::Watch(_)
            | Self::Database(_) => return None,
        })
    }

    /// The error of a file that is opened, in which a statement can fail by itself only if the tables are not those of
    /// the version that the file says.
    pub(crate) fn at_opening(self) -> Self {
        match self {
            Self::Database(error) => sqlite::Error::from(error).at_opening().into(),
            error => error,
        }
    }

    /// Why a file beside the history cannot be read or written.
    pub(crate) fn from_file(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Self::DiskFull,
            _ => Self::File(error),
        }
    }
}

impl From<sqlite::Error> for Error {
    fn from(error: sqlite::Error) -> Self {
        match error {
            sqlite::Error::Locked => Self::Locked,
            sqlite::Error::ReadOnly => Self::ReadOnly,
            sqlite::Error::Damaged => Self::Damaged,
            sqlite::Error::DiskFull => Self::DiskFull,
            sqlite::Error::Other(error) => Self::Database(error),
        }
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        sqlite::Error::from(error).into()
    }
}

impl From<Error> for protocol::Error {
    fn from(error: Error) -> Self {
        let code = match &error {
            Error::NotFound(_) => ErrorCode::NotFound,
            Error::Busy => ErrorCode::Busy,
            Error::CannotContinue
            | Error::HasResult
            | Error::NoEdit
            | Error::ProjectFile(_)
            | Error::Note(_)
            | Error::Import(_) => ErrorCode::BadRequest,
            error if error.is_damage() => ErrorCode::HistoryDamaged,
            _ => ErrorCode::Storage,
        };
        let mut message = protocol::Error::new(code, error.to_string());
        if let Some(reason) = error.reason() {
            message = message.narrowed(reason);
        }
        match error {
            Error::Open { path, .. } => message.with("path", path.display().to_string()),
            _ => message,
        }
    }
}
