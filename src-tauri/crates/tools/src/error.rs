//! Errors of tools, in sentences that say what is safe and what to do.

use protocol::{ErrorCode, Reason};

use crate::consent;

/// An error of tools. It becomes a [`protocol::Error`] when it leaves this room.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No such server.
    #[error("there is no server of tools called {0}; `ponder tools list` shows them")]
    NoServer(String),
    /// No such tool.
    #[error("the server {server} has no tool called {tool}")]
    NoTool {
        /// The server's name.
        server: String,
        /// The tool.
        tool: String,
    },
    /// A server that is not switched on.
    #[error("the server {0} is not switched on")]
    Off(String),
    /// A tool of Ponder that is not switched on.
    #[error("Ponder's tool {0} is not switched on; the person does that under Settings › Tools")]
    ToolOff(&'static str),
    /// A switch that there is not.
    #[error("Ponder's tool {0} is always on; a rule can deny it")]
    NoSwitch(String),
    /// A search engine that cannot be used, or none.
    #[error("this is no search engine: {0}")]
    SearchEngine(String),
    /// Arguments that a person wrote and that lead to another host than was shown.
    #[error("the address leads to {written} now and not to {shown}, which was shown; allow this call once")]
    OtherHost {
        /// The host that was shown.
        shown: String,
        /// The host of what the person wrote.
        written: String,
    },
    /// Ponder's own tools cannot be changed.
    #[error("Ponder's own tools can be neither added nor removed")]
    BuiltIn,
    /// A name that another server has.
    #[error("there is a server called {0} already")]
    NameTaken(String),
    /// A name or a command that cannot be used.
    #[error("this is no server: {0}")]
    BadSetup(&'static str),
    /// Too many servers.
    #[error("there are {0} servers already, which is all that fit")]
    TooMany(usize),
    /// A configuration that cannot be read.
    #[error(transparent)]
    Import(#[from] crate::import::Error),
    /// A server that did not start, or ended.
    #[error("the server {server} does not run: {reason}")]
    NotRunning {
        /// The server's name.
        server: String,
        /// Why.
        reason: String,
    },
    /// A program of this computer, to which nobody signs in.
    #[error("the server {0} is a program of this computer, to which nobody signs in")]
    NoSignIn(String),
    /// Nobody is signed in to a server that wants it.
    #[error(transparent)]
    SignIn(#[from] crate::oauth::Error),
    /// A resource that cannot be read.
    #[error("{server} did not give this resource: {reason}; nothing was attached")]
    NoResource {
        /// The server's name.
        server: String,
        /// Why.
        reason: String,
    },
    /// A prompt that cannot be fetched.
    #[error("{server} did not give this prompt: {reason}; nothing was written")]
    NoPrompt {
        /// The server's name.
        server: String,
        /// Why.
        reason: String,
    },
    /// A bundle that cannot be used.
    #[error(transparent)]
    Bundle(#[from] crate::bundle::Error),
    /// A file of a bundle that cannot be read or written.
    #[error("the bundle cannot be read or unfolded: {0}; nothing was added")]
    BundleFile(std::io::Error),
    /// An approval that does not count.
    #[error(transparent)]
    Consent(#[from] consent::Error),
    /// Arguments that a person wrote and the tool does not take.
    #[error("the tool does not take these arguments: {0}")]
    Arguments(String),
    /// A request of a server that waits no more.
    #[error("the server does not ask for this any more; nothing was sent")]
    NotAsked,
    /// Values of a form that are no JSON object.
    #[error("the values of a form are a JSON object; nothing was sent")]
    BadForm,
    /// A folder that a server cannot be told of.
    #[error("a server cannot be told of this folder: {0}")]
    BadFolder(&'static str),
    /// The file of servers cannot be read or written.
    #[error("the file of tool servers {path} cannot be used: {reason}; nothing was changed")]
    File {
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
    /// The keychain does not answer.
    #[error("this computer's keychain cannot be used: {0}; nothing was changed")]
    Keychain(String),
}

/// A result of this room.
pub type Result<T> = std::result::Result<T, Error>;

impl From<Error> for protocol::Error {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        let code = match &error {
            Error::NoServer(_) | Error::NoTool { .. } | Error::NotAsked => ErrorCode::NotFound,
            Error::BadForm => ErrorCode::BadRequest,
            Error::File { .. } => ErrorCode::Storage,
            Error::Keychain(_) => ErrorCode::Keychain,
            Error::SignIn(crate::oauth::Error::NoRegistration(_)) => {
                return Self::because(Reason::ToolsNotRegistered, message.clone()).with("why", message);
            }
            Error::Consent(_) => return Self::because(Reason::CallChanged, message),
            _ => return Self::because(Reason::ToolsRefused, message.clone()).with("why", message),
        };
        Self::new(code, message)
    }
}
