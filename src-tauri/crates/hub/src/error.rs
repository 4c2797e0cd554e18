use std::io;
use std::path::{Path, PathBuf};

use protocol::{ErrorCode, Reason};

/// Errors of models: on disk, on the hub, on the way.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No model of this name is here.
    #[error("no model called {0} is on this computer; `ponder models` and the Models window list what is")]
    NotFound(String),
    /// The model that an adapter belongs to is not here.
    #[error(
        "the adapter {adapter} belongs to {base}, which is not on this computer; download that model, or name another \
         one of its shape as MODEL:{adapter}"
    )]
    NoBase {
        /// The adapter's reference.
        adapter: String,
        /// The model's name in the adapter's config; empty if it has none.
        base: String,
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
    #[error("the hub has no model called {0}; check the name, or give Ponder a token if it is a private one")]
    NotOnHub(String),
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
    #[error("there is no model in {}; choose a folder with a model's config.json, or one that holds such folders", .0.display())]
    NoModelFolder(PathBuf),
    /// A folder that the user added is gone.
    #[error("{} is not there; connect its disk, or take it off the list", .0.display())]
    FolderGone(PathBuf),
    /// A folder could not be read.
    #[error("{} could not be read: {source}", path.display())]
    Read {
        /// The folder.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Something could not be written.
    #[error("{} could not be written: {source}; nothing that was there before is lost", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        source: io::Error,
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
    #[error("this repository has more than {0} files, which no model needs; nothing was fetched")]
    TooManyFiles(usize),
    /// A link or a file in the place of a folder or file of the cache: writing there would write elsewhere.
    #[error("{} is not what a model cache has there, but a link or something else, so nothing is written or removed there; move it away first", .0.display())]
    Trap(PathBuf),
    /// A file is missing.
    #[error("{} is missing; nothing else is affected, fetch the model again", .0.display())]
    Missing(PathBuf),
    /// The system does not report its memory.
    #[error("this computer does not say how much memory it has ({0}), so it is not known what fits; models can still be loaded")]
    MemoryUnknown(String),
    /// The model's files were not read, for this reason.
    #[error("{0}")]
    Unread(Box<protocol::Error>),
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
    #[error("another version of {0} is being fetched; cancel that download first, or wait for it")]
    Fetching(String),
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
        reason: &'static str,
        /// The reason as windows know it.
        why: Reason,
    },
    /// Another program holds a lock on the model.
    #[error("another program is fetching {0} at the moment; nothing was removed, try again when it has ended")]
    InUse(String),
    /// A model that cannot be fetched again.
    #[error("{reference} cannot be repaired: {reason}; nothing was changed, fetch the model from the hub again")]
    NoRepair {
        /// The model.
        reference: String,
        /// The reason.
        reason: String,
    },
    /// No room on the disk for a model that is imported.
    #[error("there is not enough space in {}: {} are needed and {} are free; nothing was written", path.display(), gigabytes(*needed), gigabytes(*free))]
    NoRoom {
        /// The folder.
        path: PathBuf,
        /// Bytes that are needed.
        needed: u64,
        /// Bytes that are free.
        free: u64,
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
    /// The error of a file or folder that could not be written.
    pub(crate) fn write(path: &Path, source: io::Error) -> Self {
        Self::Write {
            path: path.to_owned(),
            source,
        }
    }

    /// The error of a file or folder that could not be read.
    pub(crate) fn read(path: &Path, source: io::Error) -> Self {
        Self::Read {
            path: path.to_owned(),
            source,
        }
    }

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
        let message = error.to_string();
        let because = |reason| Self::because(reason, &message);
        let coded = |code| Self::new(code, &message);
        let shown = |path: PathBuf| path.display().to_string();
        match error {
            Error::Net(error) => error.into(),
            Error::WillNotRun(reason) => (*reason).into(),
            Error::NotFound(reference) => because(Reason::ModelMissing).with("reference", reference),
            Error::NoBase { adapter, base } => because(Reason::AdapterWithoutModel)
                .with("adapter", adapter)
                .with("base", base),
            Error::Incomplete { reference, fault, path } => coded(ErrorCode::ModelBroken)
                .with("reference", reference)
                .with("reason", fault)
                .with("path", shown(path)),
            Error::Missing(path) => coded(ErrorCode::ModelBroken).with("path", shown(path)),
            Error::NotOnHub(id) => because(Reason::NotOnHuggingFace).with("id", id),
            Error::Gated { id, host, .. } => coded(ErrorCode::Gated).with("id", id).with("host", host),
            Error::FileTooLarge { path, bytes, limit } => because(Reason::RepositoryRefused)
                .with("path", path)
                .with("bytes", bytes)
                .with("limit", limit),
            Error::Address { text, reason } => because(Reason::NotAModelAddress)
                .with("text", text)
                .with("reason", reason),
            Error::Name { name, reason, .. } => because(Reason::RepositoryRefused)
                .with("name", name)
                .with("reason", reason),
            Error::TooManyFiles(most) => because(Reason::RepositoryRefused).with("most", most),
            Error::NoModelFolder(path) => because(Reason::NoModelFolder).with("path", shown(path)),
            Error::NoModel { path, reason } => because(Reason::NotImportable)
                .with("path", shown(path))
                .with("reason", reason),
            Error::FolderGone(path) => because(Reason::FolderGone).with("path", shown(path)),
            Error::Kept { reference, reason, why } => because(why).with("reference", reference).with("reason", reason),
            Error::NoRepair { reference, reason } => because(Reason::NotRepairable)
                .with("reference", reference)
                .with("reason", reason),
            Error::MemoryUnknown(reason) => because(Reason::MemoryUnknown).with("reason", reason),
            Error::Unread(error) => *error,
            Error::DiskFull { path, needed } => {
                let error = coded(ErrorCode::DiskFull).with("path", shown(path));
                match needed {
                    Some((needed, free)) => error
                        .narrowed(Reason::DiskSpace)
                        .with("needed", needed)
                        .with("free", free),
                    None => error,
                }
            }
            Error::NoRoom { path, needed, free } => coded(ErrorCode::DiskFull)
                .with("path", shown(path))
                .narrowed(Reason::DiskSpace)
                .with("needed", needed)
                .with("free", free),
            Error::Damaged { path, host } => coded(ErrorCode::Corrupt).with("path", path).with("host", host),
            Error::Contradicts { host, reason } => coded(ErrorCode::Corrupt).with("host", host).with("reason", reason),
            Error::RetriesExhausted { path, reason } => because(Reason::DownloadFailed)
                .with("path", path)
                .with("reason", reason),
            Error::Fetching(id) => because(Reason::DownloadRunning).with("id", id),
            Error::InUse(reference) => because(Reason::ModelInUse).with("reference", reference),
            Error::Read { path, source } => because(Reason::PathUnreadable)
                .with("path", shown(path))
                .with("reason", source.to_string()),
            Error::Write { path, source } => because(Reason::PathUnwritable)
                .with("path", shown(path))
                .with("reason", source.to_string()),
            Error::Trap(path) => because(Reason::PathOccupied).with("path", shown(path)),
            Error::Broken => because(Reason::DownloadFault),
            Error::NoHome => because(Reason::NoHome),
            Error::Stopped => coded(ErrorCode::Stopped),
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
