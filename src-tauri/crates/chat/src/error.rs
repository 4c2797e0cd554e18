//! What can go wrong with a turn, beside what history, the model folder and the engine report themselves.

use protocol::Code;

/// An error of a turn.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the question is empty; write something first")]
    EmptyQuestion,
    #[error("only a question or an answer to one can be answered again")]
    NothingToAnswer,
    #[error("the answer broke off because of a fault in Ponder; what was written so far is kept, please try again")]
    Broken,
    #[error("the answer is complete but could not be saved: {0}. Copy what you need before you close the window")]
    NotSaved(history::Error),
}

impl From<Error> for protocol::Error {
    fn from(error: Error) -> Self {
        let code = match &error {
            Error::EmptyQuestion | Error::NothingToAnswer => Code::BadRequest,
            Error::Broken => Code::Engine,
            Error::NotSaved(_) => Code::Storage,
        };
        protocol::Error::new(code, error.to_string())
    }
}
