//! An ended answer that is continued: it becomes a streaming one again, in its own row.

use protocol::StoredMessage;

use crate::messages::one_at_a_time;
use crate::{now, Error, History, Result};

impl History {
    /// Makes an answer that ended early a streaming one of this process. What it says, its tokens and its figures stay as they
    /// are; how it ended, and what was asked of its last writer, is forgotten. Fails with [`Error::CannotContinue`] unless it was
    /// stopped, interrupted, failed or cut by its limit and is the last of what its chat looks at, and with [`Error::Busy`]
    /// while the chat has a running answer.
    pub async fn continue_answer(&self, message: &str, owner: &str) -> Result<StoredMessage> {
        let now = now();
        let mut transaction = self.write().await?;
        let updated = sqlx::query(
            "UPDATE messages SET state = 'streaming', owner = ?2, heartbeat = ?3, finished_at = NULL, finish_reason = NULL, ended_by = NULL,
                    error_code = NULL, error_message = NULL, stop_requested = 0, end_thinking_requested = 0
              WHERE id = ?1 AND role = 'assistant'
                AND (state IN ('stopped', 'interrupted', 'failed') OR (state = 'complete' AND finish_reason = 'length'))
                AND EXISTS (SELECT 1 FROM chats c WHERE c.id = messages.chat_id AND c.head = messages.id AND c.deleted_at IS NULL)",
        )
        .bind(message)
        .bind(owner)
        .bind(now)
        .execute(&mut *transaction)
        .await;
        if one_at_a_time(updated)?.rows_affected() == 0 {
            return Err(Error::CannotContinue);
        }
        sqlx::query("UPDATE chats SET updated_at = ?2 WHERE head = ?1")
            .bind(message)
            .bind(now)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        self.message(message).await
    }
}
