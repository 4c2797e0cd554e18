//! Errors of a turn, in addition to those of the history, the model folder and the engine.

use protocol::{ErrorCode, Reason};

/// An error of a turn.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the question is empty; write something first")]
    EmptyQuestion,
    #[error("a question holds words, images and files; thoughts, calls and data are of answers")]
    NoQuestion,
    #[error("a tool that the answer called has given no result yet; the next answer waits for it")]
    ResultMissing,
    #[error("only a question or an answer to one can be answered again")]
    NothingToAnswer,
    #[error(
        "none of the new tools can be used, because their servers do not run; the chat goes on with those that it has"
    )]
    NoToolRuns,
    #[error("an answer needs some words; delete it if it should go")]
    EmptyAnswer,
    #[error(
        "there is nothing before this question that the model could forget; shorten the question, or choose a model with a longer context"
    )]
    NothingToDrop,
    #[error("the model wrote no summary; try again, write one yourself, or go on without the oldest turns")]
    NoSummary,
    #[error("only an answer can be continued; look for the one below this message")]
    NoAnswer,
    #[error("this answer is complete; ask for more, or have the question answered again")]
    Complete,
    #[error(
        "only the last answer can be continued, and this one is not the last of what is shown; nothing was changed"
    )]
    NotLast,
    #[error("nothing more can be added to this answer; ask for more, or have the question answered again")]
    NothingMore,
    #[error("{0} cannot continue an answer that ended; have the question answered again instead")]
    CannotContinue(String),
    #[error("the answer broke off because of a fault in Ponder; what was written so far is kept, please try again")]
    Broken,
    #[error("the answer is complete but could not be saved: {0}. Copy what you need before you close the window")]
    NotSaved(history::Error),
}

impl From<Error> for protocol::Error {
    fn from(error: Error) -> Self {
        let code = match &error {
            Error::CannotContinue(_)
            | Error::EmptyQuestion
            | Error::NoQuestion
            | Error::NoToolRuns
            | Error::ResultMissing
            | Error::EmptyAnswer
            | Error::NothingToAnswer
            | Error::NothingToDrop
            | Error::NoAnswer
            | Error::Complete
            | Error::NotLast
            | Error::NothingMore => ErrorCode::BadRequest,
            Error::Broken | Error::NoSummary => ErrorCode::Engine,
            Error::NotSaved(error) if error.is_damage() => ErrorCode::HistoryDamaged,
            Error::NotSaved(_) => ErrorCode::Storage,
        };
        let message = protocol::Error::new(code, error.to_string());
        let reason = match error {
            Error::EmptyQuestion => Reason::EmptyMessage,
            Error::ResultMissing => Reason::ToolResultMissing,
            Error::EmptyAnswer => Reason::EmptyResponse,
            Error::NothingToDrop => Reason::NothingToDrop,
            Error::NoAnswer | Error::Complete | Error::NotLast | Error::NothingMore => Reason::CannotContinue,
            Error::CannotContinue(model) => {
                return message.narrowed(Reason::ModelCannotContinue).with("model", model);
            }
            Error::Broken => Reason::PonderFault,
            Error::NoToolRuns => Reason::NoToolRuns,
            Error::NoSummary => Reason::NoSummary,
            Error::NotSaved(error) if !error.is_damage() => Reason::ResponseNotSaved,
            Error::NoQuestion | Error::NothingToAnswer | Error::NotSaved(_) => return message,
        };
        message.narrowed(reason)
    }
}
