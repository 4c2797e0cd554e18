use std::path::{Path, PathBuf};

use protocol::ErrorCode;

/// Errors of models: on disk, on the hub, on the way.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No model of this name is here.
    #[error("no model called {reference} is on this computer; `ponder models` and the Models window list what is")]
    NotFound {
        /// The reference.
        reference: String,
    },
    /// The folder lacks files that it needs.
    #[error("the model {reference} cannot be loaded: {fault} (in {}); nothing else is affected, repair it or fetch it again", path.display())]
    Incomplete {
        /// The reference.
        reference: String,
        /// The first faulty file and its fault.
        fault: String,
        /// The model's folder.
        path: PathBuf,
    },
    /// This computer names no place for the user's files.
    #[error("this computer does not say where the user's files are; set PONDER_HOME to a folder for Ponder's data")]
    NoHome,
    /// The hub could not be asked, or refused.
    #[error(transparent)]
    Net(#[from] net::Error),
    /// The hub has no such model, or hides it.
    #[error("the hub has no model called {id}; check the name, or give Ponder a token if it is a private one")]
    NotOnHub {
        /// The id.
        id: String,
    },
    /// The author gives access only to users who accept the terms.
    #[error("{}", gated(id, host, *with_token))]
    Gated {
        /// The id.
        id: String,
        /// The hub's host.
        host: String,
        /// True if a token was sent.
        with_token: bool,
    },
    /// A file that is too large to be read.
    #[error("{path} has {bytes} bytes; a model's has at most {limit}, so it is not read")]
    FileTooLarge {
        /// The file.
        path: String,
        /// Its size.
        bytes: u64,
        /// The limit, in bytes.
        limit: u64,
    },
    /// A text that is neither the id nor the address of a model.
    #[error("{text:?} is no model on the hub: {reason}")]
    Address {
        /// The text, cut.
        text: String,
        /// The reason.
        reason: &'static str,
    },
    /// A folder that contains no model, or is not given by its full path.
    #[error("there is no model in {}; choose a folder with a model's config.json, or one that holds such folders", path.display())]
    NoModelFolder {
        /// The folder.
        path: PathBuf,
    },
    /// A folder could not be read.
    #[error("{} could not be read: {source}", path.display())]
    Read {
        /// The folder.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// Something could not be written.
    #[error("{} could not be written: {source}; nothing that was there before is lost", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// A name from the hub or a folder is refused.
    #[error("the {what} name \"{name}\" is refused: {reason}; nothing was written")]
    Name {
        /// The kind of name, such as `file`.
        what: &'static str,
        /// The name, cut and without control characters.
        name: String,
        /// The reason.
        reason: String,
    },
    /// A repository with more files than a model has.
    #[error("this repository has more than {most} files, which no model needs; nothing was fetched")]
    TooManyFiles {
        /// The limit.
        most: usize,
    },
    /// A link or a file in the place of a folder or file of the cache: writing there would write elsewhere.
    #[error("{} is not what a model cache has there, but a link or something else, so nothing is written or removed there; move it away first", path.display())]
    Trap {
        /// The obstacle.
        path: PathBuf,
    },
    /// A file is missing.
    #[error("{} is missing; nothing else is affected, fetch the model again", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The system does not report its memory.
    #[error("this computer does not say how much memory it has ({0}), so it is not known what fits; models can still be loaded")]
    MemoryUnknown(String),
    /// The model's files could not be read, for this reason.
    #[error("{0}")]
    Unread(String),
    /// The model cannot be run here.
    #[error(transparent)]
    WillNotRun(Box<checkpoint::Error>),
    /// No room on the disk.
    #[error("{}", disk_full(path, *needed))]
    DiskFull {
        /// The folder.
        path: PathBuf,
        /// Bytes that are needed and bytes that are free, if known.
        needed: Option<(u64, u64)>,
    },
    /// A file arrived twice with another hash than the hub lists.
    #[error(
        "{path} came from {host} damaged twice in a row, so it was not kept; all other files are safe, try again later"
    )]
    Damaged {
        /// Its path in the repository.
        path: String,
        /// The hub.
        host: String,
    },
    /// A file did not arrive after all retries.
    #[error(
        "{path} could not be fetched: {reason}; what has arrived is kept, and the download continues from there when you start it again"
    )]
    RetriesExhausted {
        /// Its path in the repository.
        path: String,
        /// The last reason.
        reason: String,
    },
    /// The hub sends other files than it lists.
    #[error("{host} sends other files than it lists ({reason}); nothing wrong was kept, try again later")]
    Contradicts {
        /// The hub.
        host: String,
        /// The difference.
        reason: String,
    },
    /// Another revision of the same model is being fetched.
    #[error("another version of {id} is being fetched; cancel that download first, or wait for it")]
    Fetching {
        /// The model.
        id: String,
    },
    /// A thread of a download panicked.
    #[error("the download broke off because of a fault in Ponder; what has arrived is kept, start it again")]
    Broken,
    /// The user or the program stopped it.
    #[error("stopped; nothing was changed")]
    Stopped,
    /// A model that cannot be removed.
    #[error("{reference} stays: {reason}")]
    Kept {
        /// The model.
        reference: String,
        /// The reason.
        reason: String,
    },
    /// Another program holds a lock on the model.
    #[error("another program is fetching {reference} at the moment; nothing was removed, try again when it has ended")]
    InUse {
        /// The model.
        reference: String,
    },
    /// A model that cannot be fetched again.
    #[error("{reference} cannot be repaired: {reason}; nothing was changed, fetch the model from the hub again")]
    NoRepair {
        /// The model.
        reference: String,
        /// The reason.
        reason: String,
    },
    /// A folder that cannot be imported.
    #[error("{} cannot be imported: {reason}; nothing was copied", path.display())]
    NoModel {
        /// The folder.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
}

impl Error {
    /// True if the hub could not be reached, so that a cached response may replace its answer.
    pub(crate) fn is_unreachable(&self) -> bool {
        match self {
            Self::Net(error) => matches!(
                protocol::Error::from(error.clone()).code,
                ErrorCode::Offline | ErrorCode::Network
            ),
            _ => false,
        }
    }
}

impl From<checkpoint::Error> for Error {
    fn from(reason: checkpoint::Error) -> Self {
        Self::WillNotRun(Box::new(reason))
    }
}

impl From<Error> for protocol::Error {
    fn from(error: Error) -> Self {
        let error = match error {
            Error::WillNotRun(reason) => return (*reason).into(),
            error => error,
        };
        let code = match &error {
            Error::Net(inner) => return inner.clone().into(),
            Error::NotOnHub { .. } => ErrorCode::NotFound,
            Error::Gated { .. } => ErrorCode::Gated,
            Error::Address { .. } | Error::FileTooLarge { .. } => ErrorCode::BadRequest,
            Error::NotFound { .. } => ErrorCode::ModelNotFound,
            Error::WillNotRun(_) | Error::Unread(_) => ErrorCode::ModelUnsupported,
            Error::MemoryUnknown(_) => ErrorCode::Engine,
            Error::Incomplete { .. } => ErrorCode::ModelBroken,
            Error::Missing { .. } => ErrorCode::ModelBroken,
            Error::Name { .. }
            | Error::TooManyFiles { .. }
            | Error::Kept { .. }
            | Error::NoModel { .. }
            | Error::NoModelFolder { .. }
            | Error::NoRepair { .. } => ErrorCode::BadRequest,
            Error::DiskFull { .. } => ErrorCode::DiskFull,
            Error::Damaged { .. } | Error::Contradicts { .. } => ErrorCode::Corrupt,
            Error::RetriesExhausted { .. } => ErrorCode::Network,
            Error::Stopped => ErrorCode::Stopped,
            Error::Fetching { .. } | Error::InUse { .. } => ErrorCode::Busy,
            Error::Broken | Error::NoHome | Error::Read { .. } | Error::Write { .. } | Error::Trap { .. } => {
                ErrorCode::Storage
            }
        };
        let message = protocol::Error::new(code, error.to_string());
        let shown = |path: PathBuf| path.display().to_string();
        match error {
            Error::NotFound { reference } | Error::InUse { reference } => message.with("reference", reference),
            Error::Incomplete { reference, fault, path } => message
                .with("reference", reference)
                .with("reason", fault)
                .with("path", shown(path)),
            Error::NotOnHub { id } | Error::Fetching { id } => message.with("id", id),
            Error::Gated { id, host, .. } => message.with("id", id).with("host", host),
            Error::FileTooLarge { path, bytes, limit } => {
                message.with("path", path).with("bytes", bytes).with("limit", limit)
            }
            Error::Address { text, reason } => message.with("text", text).with("reason", reason),
            Error::Read { path, source } | Error::Write { path, source } => {
                message.with("path", shown(path)).with("reason", source.to_string())
            }
            Error::Name { name, reason, .. } => message.with("name", name).with("reason", reason),
            Error::TooManyFiles { most } => message.with("most", most),
            Error::Trap { path } | Error::Missing { path } | Error::NoModelFolder { path } => {
                message.with("path", shown(path))
            }
            Error::MemoryUnknown(reason) | Error::Unread(reason) => message.with("reason", reason),
            Error::DiskFull { path, needed } => {
                let message = message.with("path", shown(path));
                match needed {
                    Some((needed, free)) => message.with("needed", needed).with("free", free),
                    None => message,
                }
            }
            Error::Damaged { path, host } => message.with("path", path).with("host", host),
            Error::RetriesExhausted { path, reason } => message.with("path", path).with("reason", reason),
            Error::Contradicts { host, reason } => message.with("host", host).with("reason", reason),
            Error::Kept { reference, reason } | Error::NoRepair { reference, reason } => {
                message.with("reference", reference).with("reason", reason)
            }
            Error::NoModel { path, reason } => message.with("path", shown(path)).with("reason", reason),
            Error::NoHome | Error::Net(_) | Error::WillNotRun(_) | Error::Broken | Error::Stopped => message,
        }
    }
}

fn gated(id: &str, host: &str, with_token: bool) -> String {
    let page = format!("https://{host}/{id}");
    if with_token {
        format!(
            "{id} is given only to people who accept its terms: open {page} with the account of your token, accept them there \
             (some authors answer by hand), and try again"
        )
    } else {
        format!(
            "{id} is given only to people who accept its terms: open {page} and accept them, make a token on the page Settings, \
             Access Tokens of your account, give it to Ponder, and try again"
        )
    }
}

fn disk_full(path: &Path, needed: Option<(u64, u64)>) -> String {
    let place = path.display();
    match needed {
        Some((needed, free)) => format!(
            "there is not enough space in {place}: {} are still needed and {} are free; what has arrived is kept, free some space and resume it",
            gigabytes(needed),
            gigabytes(free)
        ),
        None => format!("the disk of {place} is full; what has arrived is kept, free some space and resume it"),
    }
}

fn gigabytes(bytes: u64) -> String {
    if bytes < 100_000_000 {
        format!("{:.1} MB", bytes as f64 / 1e6)
    } else {
        format!("{:.1} GB", bytes as f64 / 1e9)
    }
}
