//! The rules that writes of messages obey: an answer at a time, and which one can be continued.

use api::{AnswerState, StoredMessage};
use protocol::{EndedBy, ErrorCode, FinishReason, Role};
use sqlx::SqliteConnection;

use crate::json::to_word;
use crate::{Error, Result};

/// True if this answer ended early, holds something to continue, and could become longer: the same request again does
/// not help against a full context or a model that changed; one that repeats itself is continued with a penalty. It is
/// the only place that decides this; what comes on top is that the answer must be the last of what its chat looks at.
pub(crate) fn ended_early(message: &StoredMessage) -> bool {
    if message.role != Role::Assistant || message.parts.is_empty() {
        return false;
    }
    match message.state {
        AnswerState::Stopped | AnswerState::Interrupted => true,
        AnswerState::Failed => !matches!(
            message.error.as_ref().map(|error| error.code),
            Some(ErrorCode::ContextFull | ErrorCode::BadRequest)
        ),
        AnswerState::Complete => {
            message.finish_reason == Some(FinishReason::Length) && message.ended_by != Some(EndedBy::Context)
        }
        AnswerState::Streaming => false,
    }
}

/// Fails with [`Error::Busy`] while the chat has a running answer.
pub(crate) async fn check_idle(db: &mut SqliteConnection, chat: &str) -> Result<()> {
    let running = "SELECT EXISTS (SELECT 1 FROM messages WHERE chat_id = ?1 AND state = ?2)";
    match the_value!(db, running; chat, to_word(&AnswerState::Streaming)).await? {
        true => Err(Error::Busy),
        false => Ok(()),
    }
}

/// The outcome of a statement that makes an answer streaming: an index allows one of them per chat, and one beside it.
pub(crate) fn one_at_a_time<T>(outcome: Result<T>) -> Result<T> {
    match outcome {
        Err(Error::Database(sqlx::Error::Database(error))) if error.is_unique_violation() => Err(Error::Busy),
        outcome => outcome,
    }
}
