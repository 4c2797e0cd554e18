//! The rules that writes of messages obey: an answer at a time, and which one can be continued.

use api::{AnswerState, StoredMessage};
use protocol::{EndedBy, ErrorCode, FinishReason, Role};
use sqlx::{Sqlite, Transaction};

use crate::json::to_word;
use crate::{Error, Result};

/// True if this answer ended early, holds something to continue, and could become longer: the same request again does
/// not help against a full context, a loop or a model that changed. It is the only place that decides this; what comes
/// on top is that the answer must be the last of what its chat looks at.
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
            message.finish_reason == Some(FinishReason::Length)
                && !matches!(message.ended_by, Some(EndedBy::Context | EndedBy::Repetition))
        }
        AnswerState::Streaming => false,
    }
}

/// Fails with [`Error::Busy`] while the chat has a running answer.
pub(crate) async fn check_idle(transaction: &mut Transaction<'static, Sqlite>, chat: &str) -> Result<()> {
    let running: bool = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM messages WHERE chat_id = ?1 AND state = ?2)")
        .bind(chat)
        .bind(to_word(&AnswerState::Streaming))
        .fetch_one(&mut **transaction)
        .await?;
    match running {
        true => Err(Error::Busy),
        false => Ok(()),
    }
}

/// The outcome of a statement that makes an answer streaming: an index allows one of them per chat, and one beside it.
pub(crate) fn one_at_a_time<T>(outcome: sqlx::Result<T>) -> Result<T> {
    match outcome {
        Err(sqlx::Error::Database(error)) if error.is_unique_violation() => Err(Error::Busy),
        outcome => Ok(outcome?),
    }
}
