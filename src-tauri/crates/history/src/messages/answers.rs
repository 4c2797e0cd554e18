//! The answers that are being written, and how they end.

use api::{AnswerState, StoredMessage};

use crate::json::{to_json, to_word};
use crate::messages::parts::{delete_parts, insert_parts, token_bytes};
use crate::{now, History, Result};

/// An answer that some process is writing, as the file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamingAnswer {
    /// The message.
    pub id: String,
    /// Its chat.
    pub chat: String,
    /// The process.
    pub owner: String,
    /// When it last said that it lives.
    pub heartbeat: i64,
}

from_row!(StreamingAnswer: id, chat, owner, heartbeat);

impl History {
    /// Stores the end of an answer: the whole of it replaces what its deltas left, also if another process took its
    /// owner for dead and marked it interrupted. Returns it as it is read from now on. Fails with [`Error::NotFound`]
    /// if the answer has ended otherwise, or another process continues it.
    pub async fn finish(&self, answer: &StoredMessage, owner: &str, tokens: &[u32]) -> Result<StoredMessage> {
        let mut transaction = self.write().await?;
        change!(
            &mut transaction,
            "running answer",
            "UPDATE messages SET state = ?2, finished_at = ?3, model_revision = ?4, template_hash = ?5, tokens = ?6,
                    finish_reason = ?7, error = ?8, notices = ?9, usage = ?10, timing = ?11, ended_by = ?12,
                    thinking_tokens = ?13, thinking_ended = ?14, owner = NULL, heartbeat = NULL
              WHERE id = ?1 AND (owner = ?15 AND state = 'streaming' OR owner IS NULL AND state = 'interrupted')";
            &answer.id, to_word(&answer.state), answer.finished_at, &answer.model_revision, &answer.template_hash,
            token_bytes(tokens), answer.finish_reason.as_ref().map(to_word), answer.error.as_ref().map(to_json),
            to_json(&answer.notices), answer.usage.as_ref().map(to_json), answer.timing.as_ref().map(to_json),
            answer.ended_by.as_ref().map(to_json), answer.thinking_tokens, answer.thinking_ended, owner
        )
        .await?;
        delete_parts(&mut transaction, &answer.id).await?;
        insert_parts(&mut transaction, &answer.id, &answer.parts).await?;
        let sql = "UPDATE chats SET updated_at = ?2, unread = 1 WHERE id = ?1";
        run!(&mut transaction, sql; &answer.chat, answer.finished_at.unwrap_or_else(now)).await?;
        transaction.commit().await?;
        self.message(&answer.id).await
    }

    /// All answers that are being written, as the file says.
    pub async fn running(&self) -> Result<Vec<StreamingAnswer>> {
        let sql = "SELECT id, chat_id AS chat, coalesce(owner, '') AS owner, coalesce(heartbeat, 0) AS heartbeat
                     FROM messages WHERE state = 'streaming'";
        rows!(&self.readers, sql).await
    }

    /// Marks an answer interrupted, unless its owner said that it lives since it was read. Returns whether it was
    /// marked.
    pub async fn interrupt(&self, answer: &StreamingAnswer) -> Result<bool> {
        let mut transaction = self.write().await?;
        let marked = run!(
            &mut transaction,
            "UPDATE messages SET state = ?4, finished_at = heartbeat, owner = NULL, heartbeat = NULL
              WHERE id = ?1 AND state = 'streaming' AND coalesce(owner, '') = ?2 AND coalesce(heartbeat, 0) = ?3";
            &answer.id, &answer.owner, answer.heartbeat, to_word(&AnswerState::Interrupted)
        )
        .await?;
        transaction.commit().await?;
        Ok(marked > 0)
    }

    /// Asks the process that writes an answer to stop it; changes nothing if it has ended.
    pub async fn request_stop(&self, message: &str) -> Result<()> {
        update!(self, "message", "UPDATE messages SET stop_requested = 1 WHERE id = ?"; message).await
    }

    /// Asks the process that writes an answer to end its thought; changes nothing if the answer has ended.
    pub async fn request_answer_now(&self, message: &str) -> Result<()> {
        update!(self, "message", "UPDATE messages SET end_thinking_requested = 1 WHERE id = ?"; message).await
    }
}
