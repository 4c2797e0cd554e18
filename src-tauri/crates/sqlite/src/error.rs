//! The meaning of SQLite's errors.

/// An error of SQLite, by what somebody can do about it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is not a database, or a part of it is destroyed.
    #[error("the file is damaged")]
    Damaged,
    /// The file or its folder refuses writing.
    #[error("the file or its folder may not be written")]
    ReadOnly,
    /// No room is left.
    #[error("the disk is full")]
    DiskFull,
    /// Another program holds the file for longer than is waited.
    #[error("another program is using the file")]
    Locked,
    /// Anything else.
    #[error(transparent)]
    Other(sqlx::Error),
}

/// A result of this room.
pub type Result<T> = std::result::Result<T, Error>;

/// The messages of SQLite's general error for a file of another format.
const WRONG_FILE: [&str; 2] = ["SQL logic error", "unsupported file format"];

impl Error {
    /// The error of a file that is opened, in which a statement can fail by itself only if the tables are not those of
    /// the version that the file says.
    #[must_use]
    pub fn at_opening(self) -> Self {
        match self {
            Self::Other(sqlx::Error::Database(error)) if error.code().as_deref() == Some("1") => {
                tracing::warn!(%error, "a database is not of its format");
                Self::Damaged
            }
            error => error,
        }
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        let code = match &error {
            // A statement that is wrong has a message of its own; without one the file is.
            sqlx::Error::Database(error) if WRONG_FILE.contains(&error.message()) => Some(11),
            sqlx::Error::Database(error) => error.code().and_then(|code| code.parse::<u32>().ok()),
            _ => None,
        };
        // The low byte is the kind, the rest is detail: https://www.sqlite.org/rescode.html
        match code.map(|code| code & 0xff) {
            Some(5 | 6) => Self::Locked,
            Some(8 | 14) => Self::ReadOnly,
            Some(11 | 26) => Self::Damaged,
            Some(13) => Self::DiskFull,
            _ => Self::Other(error),
        }
    }
}
