//! How an answer that ended early becomes a streaming answer again in its own row.

use api::StoredMessage;

use crate::messages::read::read_message;
use crate::messages::rules::{check_idle, one_at_a_time};
use crate::{now, Error, History, Result};

impl History {
    /// Makes an answer that ended early a streaming one of this process. Its content, tokens and figures stay; its end,
    /// and requests to its last writer, are removed. Fails with
    /// [`Error::CannotContinue`] unless the answer is [`StoredMessage::continuable`], and with [`Error::Busy`] while
    /// the chat has a running answer.
    pub async fn continue_answer(&self, message: &str, owner: &str) -> Result<StoredMessage> {
        let now = now();
        // Read and changed under one lock, so that of two processes only one continues it.
        let mut transaction = self.write().await?;
        let before = match read_message(&mut *transaction, message).await {
            Ok(before) if before.continuable => before,
            Ok(_) | Err(Error::NotFound(_)) => return Err(Error::CannotContinue),
            Err(error) => return Err(error),
        };
        check_idle(&mut transaction, &before.chat).await?;
        let updated = run!(
            &mut transaction,
            "UPDATE messages SET state = 'streaming', owner = ?2, heartbeat = ?3, finished_at = NULL,
                    finish_reason = NULL, ended_by = NULL, error = NULL, stop_requested = 0, end_thinking_requested = 0
              WHERE id = ?1";
            message, owner, now
        );
        one_at_a_time(updated.await)?;
        run!(&mut transaction, "UPDATE chats SET updated_at = ?2 WHERE head = ?1"; message, now).await?;
        transaction.commit().await?;
        self.message(message).await
    }
}
