use std::path::PathBuf;

use protocol::Code;

/// What can go wrong with the model folder.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No model of this name.
    #[error("no model called {reference} is on this computer; `ponder models` and the Models window list what is")]
    NotFound {
        /// What was asked for.
        reference: String,
    },
    /// The folder lacks files it needs.
    #[error("the model {reference} is not complete: {missing} is missing in {}; nothing else is affected, fetch it again", path.display())]
    Incomplete {
        /// What was asked for.
        reference: String,
        /// The first missing file.
        missing: String,
        /// The model's folder.
        path: PathBuf,
    },
    /// This computer says nothing about where a user's files go.
    #[error("this computer does not say where the user's files are; set PONDER_HOME to a folder for Ponder's data")]
    NoHome,
    /// A folder could not be read.
    #[error("{} could not be read: {source}", path.display())]
    Read {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl From<Error> for protocol::Error {
    fn from(error: Error) -> Self {
        let code = match &error {
            Error::NotFound { .. } => Code::ModelNotFound,
            Error::Incomplete { .. } => Code::ModelBroken,
            Error::NoHome | Error::Read { .. } => Code::Storage,
        };
        protocol::Error::new(code, error.to_string())
    }
}
