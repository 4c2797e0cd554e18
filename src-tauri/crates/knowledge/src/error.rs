//! Errors of the index, in sentences that say what is safe and what to do.

use std::path::PathBuf;

/// An error of a collection or of the index.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The id names nothing. Says which kind of thing.
    #[error("there is no such {0}; it may have been removed")]
    NotFound(&'static str),
    /// The folder of a collection cannot be listed, such as one of a disk that is not attached.
    #[error("the folder {} cannot be listed: {source}; what was read of it stays", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The folder or file of a collection is not there.
    #[error("{} is not there, or is no folder; what was read of it stays. Attach its disk, or choose another folder", path.display())]
    NoFolder {
        /// Its path.
        path: PathBuf,
    },
    /// Work on a file ended without a result.
    #[error("reading a file ended in an error of Ponder; what was read before stays. Try again")]
    Broken,
    /// A file cannot be read. Says why.
    #[error("the file cannot be read: {0}")]
    Unreadable(String),
    /// A model cannot read images. Says why.
    #[error("{}", .0.message)]
    Model(protocol::Error),
    /// A pattern that says which files count. Says what is wrong with it.
    #[error("this pattern cannot be used: {0}")]
    Pattern(String),
    /// The collection has more folders than are watched for changes.
    #[error("changes are not noticed by themselves: the collection has more than {most} folders. It is read whenever you look for changes; to have it watched, leave folders out by patterns")]
    TooManyFolders {
        /// The most that are watched.
        most: usize,
    },
    /// The system lets this user watch no more.
    #[error("changes are not noticed by themselves: the system lets you watch no more folders. The collection is read whenever you look for changes; to have it watched, close programs that watch many folders, or raise {setting}")]
    WatchLimit {
        /// The system's setting.
        setting: &'static str,
    },
    /// The system does not watch for another reason.
    #[error("changes are not noticed by themselves: {0}. The collection is read whenever you look for changes")]
    Watch(String),
    /// The file of the index is no database, or a part of it is destroyed.
    #[error("the index is damaged; no document is. Build it anew: all documents are read once more")]
    Damaged,
    /// The tables are of a later version.
    #[error("the index was written by a newer version of Ponder (format {found}, this version knows {known}). Please update, or build it anew")]
    Newer {
        /// The file's version.
        found: i64,
        /// The version that is known here.
        known: i64,
    },
    /// The file or its folder refuses writing.
    #[error("the index or its folder may not be written; no document is touched. Check the folder's permissions")]
    ReadOnly,
    /// No room is left.
    #[error("the disk is full; what was indexed before stays. Make room and try again")]
    DiskFull,
    /// Another program holds the file for longer than is waited.
    #[error("another program is using the index; nothing was changed. Try again in a moment")]
    Locked,
    /// The folder of the index cannot be made, or its file cannot be removed.
    #[error("the file of the index cannot be made or removed: {0}. Check the folder's permissions")]
    File(std::io::Error),
    /// A vector whose bytes are not those of its dimensions.
    #[error("a vector has {bytes} bytes, which {dimensions} dimensions do not divide; it was not stored")]
    Vector {
        /// Its bytes.
        bytes: usize,
        /// Its dimensions.
        dimensions: u32,
    },
    /// Anything else that SQLite reports.
    #[error("the index could not be read or written ({0}); no document is touched. Try again")]
    Database(sqlx::Error),
}

/// A result of this room.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// True if only building the index anew helps.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged)
    }
}

impl From<sqlite::Error> for Error {
    fn from(error: sqlite::Error) -> Self {
        match error {
            sqlite::Error::Damaged => Self::Damaged,
            sqlite::Error::ReadOnly => Self::ReadOnly,
            sqlite::Error::DiskFull => Self::DiskFull,
            sqlite::Error::Locked => Self::Locked,
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
        error.told()
    }
}

impl Error {
    /// The error as a window is told of it.
    pub(crate) fn told(&self) -> protocol::Error {
        use protocol::{ErrorCode, Reason};
        if let Self::Model(error) = self {
            return error.clone();
        }
        let code = match self {
            Self::NotFound(_) => ErrorCode::NotFound,
            Self::Pattern(_) | Self::NoFolder { .. } | Self::Folder { .. } => ErrorCode::BadRequest,
            Self::Unreadable(_) => ErrorCode::FileBroken,
            Self::DiskFull => ErrorCode::DiskFull,
            _ => ErrorCode::Storage,
        };
        let message = protocol::Error::new(code, self.to_string());
        match self {
            Self::NoFolder { path } => message
                .narrowed(Reason::FolderGone)
                .with("path", path.to_string_lossy().into_owned()),
            Self::Folder { path, .. } => message
                .narrowed(Reason::FolderUnreadable)
                .with("path", path.to_string_lossy().into_owned()),
            _ => message,
        }
    }
}
