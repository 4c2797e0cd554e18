//! Why a document cannot be read.

use std::borrow::Cow;

use protocol::{ErrorCode, Reason};
use serde::{Deserialize, Serialize};

use crate::kind::DocumentKind;
use crate::limits::MAX_TEXT;

/// An error of this room. Messages say what is wrong with the file and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Error {
    /// A kind of file that is not known, or known and not read.
    #[error("{what} cannot be read; {advice}")]
    UnknownKind {
        /// A description of the file, such as `an RTF document`.
        what: Cow<'static, str>,
        /// Advice to the user.
        advice: Cow<'static, str>,
    },
    /// The file is damaged, cut short, or built to do harm.
    #[error("this {kind} file cannot be read: {reason}; save it anew")]
    Broken {
        /// Its kind, such as `PDF`.
        kind: Cow<'static, str>,
        /// The reason.
        reason: String,
    },
    /// A password is needed, or rights are kept back.
    #[error("this {0} file is protected; save it without protection")]
    Protected(Cow<'static, str>),
    /// There are no letters in it.
    #[error("there is no text in this {kind} file; {advice}")]
    NoText {
        /// Its kind.
        kind: Cow<'static, str>,
        /// Advice to the user.
        advice: Cow<'static, str>,
    },
    /// It is larger than is sensible.
    #[error("this document is too large: {0}; add a part of it")]
    TooLarge(String),
    /// A page that the file does not have.
    #[error("this document has {pages} pages and no page {page}; it was changed, so have its collection updated")]
    NoPage {
        /// The page that was asked for.
        page: u32,
        /// The pages that there are.
        pages: usize,
    },
    /// A kind of file whose pages are not drawn.
    #[error("pages of this {0} file are not drawn; read its text")]
    NotDrawn(Cow<'static, str>),
    /// Files before it are still being read, although they were given up.
    #[error(
        "this file was not read: two before it do not end; add it in some minutes, or after a new start of Ponder"
    )]
    Waiting,
}

impl Error {
    pub(crate) fn broken(kind: DocumentKind, reason: impl Into<String>) -> Self {
        Self::Broken {
            kind: kind.name().into(),
            reason: reason.into(),
        }
    }

    pub(crate) fn no_text(kind: DocumentKind) -> Self {
        let (kind, advice) = match kind {
            DocumentKind::Pdf => (kind.name(), "if its pages are scanned, add them as images"),
            kind => (kind.name(), "add another one"),
        };
        Self::NoText {
            kind: kind.into(),
            advice: advice.into(),
        }
    }

    pub(crate) fn too_much_text() -> Self {
        Self::TooLarge(format!("it has more than {} MB of text", MAX_TEXT / 1_000_000))
    }
}

/// A result of this room.
pub type Result<T> = std::result::Result<T, Error>;

impl From<Error> for protocol::Error {
    fn from(error: Error) -> Self {
        let message = Self::new(ErrorCode::FileBroken, error.to_string());
        match error {
            Error::UnknownKind { what, .. } => message.narrowed(Reason::FileKind).with("kind", what.into_owned()),
            Error::Broken { kind, reason } => message.with("kind", kind.into_owned()).with("reason", reason),
            Error::Protected(kind) => message.narrowed(Reason::FileProtected).with("kind", kind.into_owned()),
            Error::NoText { kind, .. } => message
                .narrowed(Reason::FileWithoutText)
                .with("kind", kind.into_owned()),
            Error::Waiting => message.narrowed(Reason::FilesUnfinished),
            Error::NoPage { .. } | Error::NotDrawn(_) => message,
            Error::TooLarge(reason) => message.narrowed(Reason::FileTooLarge).with("reason", reason),
        }
    }
}
