//! Messages, branches and trees as they are read.

use api::StoredMessage;
use protocol::{Timing, Usage};
use sqlx::SqliteExecutor;

use crate::json::readable;
use crate::messages::rows::{messages, select_messages};
use crate::{Error, History, Result};

impl History {
    /// A message.
    pub async fn message(&self, message: &str) -> Result<StoredMessage> {
        read_message(&self.readers, message).await
    }

    /// Token counts and times of the newest answers of a model, the newest first.
    pub async fn newest_timings(&self, model: &str) -> Result<Vec<(Usage, Timing)>> {
        let sql = "SELECT usage, timing FROM messages
                    WHERE model = ? AND usage IS NOT NULL AND timing IS NOT NULL ORDER BY rowid DESC LIMIT 20";
        let rows: Vec<(Vec<u8>, Vec<u8>)> = rows!(&self.readers, sql; model).await?;
        let both = |(usage, timing)| Some((readable("token count", usage)?, readable("timing", timing)?));
        Ok(rows.into_iter().filter_map(both).collect())
    }

    /// The messages from the first of the chat to this one.
    pub async fn branch(&self, head: &str) -> Result<Vec<StoredMessage>> {
        self.end_of_branch(head, None).await
    }

    /// The messages right before this one on its branch, at most `most`, oldest first; none before the first of the
    /// chat.
    pub async fn messages_before(&self, message: &str, most: u32) -> Result<Vec<StoredMessage>> {
        let sql = "SELECT parent_id FROM messages WHERE id = ?";
        let parent: Option<Option<String>> = value!(&self.readers, sql; message).await?;
        match parent.ok_or(Error::NotFound("message"))? {
            Some(parent) => self.end_of_branch(&parent, Some(most)).await,
            None => Ok(Vec::new()),
        }
    }

    /// The last `most` messages of the branch that ends with this one; `None`: all of them.
    pub(crate) async fn end_of_branch(&self, head: &str, most: Option<u32>) -> Result<Vec<StoredMessage>> {
        read_branch(&self.readers, head, most).await
    }

    /// How many messages a branch has after this one; `None` if it is not on the branch.
    pub(crate) async fn distance(&self, head: &str, message: &str) -> Result<Option<u32>> {
        value!(
            &self.readers,
            "WITH RECURSIVE branch (id, parent_id, distance) AS (
                 SELECT id, parent_id, 0 FROM messages WHERE id = ?1
                 UNION ALL
                 SELECT above.id, above.parent_id, branch.distance + 1
                 FROM branch JOIN messages above ON above.id = branch.parent_id)
             SELECT distance FROM branch WHERE id = ?2 LIMIT 1";
            head, message
        )
        .await
    }

    /// All messages of a chat, every branch, parents before children.
    pub async fn tree(&self, chat: &str) -> Result<Vec<StoredMessage>> {
        let sql = select_messages!(
            "",
            "FROM messages m LEFT JOIN parts p ON p.message_id = m.id WHERE m.chat_id = ? ORDER BY m.rowid, p.position"
        );
        messages(raw_rows!(&self.readers, sql; chat).await?)
    }

    /// The answers that are being written beside this one, to the same question.
    pub(crate) async fn streaming_beside(&self, answer: &str) -> Result<Vec<StoredMessage>> {
        let ids: Vec<String> = values!(
            &self.readers,
            "SELECT other.id FROM messages m JOIN messages other ON other.parent_id = m.parent_id
              WHERE m.id = ?1 AND other.id <> ?1 AND other.state = 'streaming' ORDER BY other.beside";
            answer
        )
        .await?;
        let mut beside = Vec::with_capacity(ids.len());
        for id in &ids {
            beside.push(self.message(id).await?);
        }
        Ok(beside)
    }

    /// The ids of the tokens that an answer was made of, in order.
    pub async fn tokens(&self, message: &str) -> Result<Vec<u32>> {
        let sql = "SELECT tokens FROM messages WHERE id = ?";
        let bytes: Option<Vec<u8>> = value!(&self.readers, sql; message).await?;
        let bytes = bytes.ok_or(Error::NotFound("message"))?;
        let (ids, _) = bytes.as_chunks::<4>();
        Ok(ids.iter().copied().map(u32::from_le_bytes).collect())
    }
}

/// A message as this connection sees it.
pub(crate) async fn read_message(db: impl SqliteExecutor<'_>, message: &str) -> Result<StoredMessage> {
    let sql = select_messages!(
        "",
        "FROM messages m LEFT JOIN parts p ON p.message_id = m.id WHERE m.id = ? ORDER BY p.position"
    );
    messages(raw_rows!(db, sql; message).await?)?
        .pop()
        .ok_or(Error::NotFound("message"))
}

/// The last messages of the branch that ends with this one, as this connection sees them; `None`: all of them.
pub(crate) async fn read_branch(
    db: impl SqliteExecutor<'_>,
    head: &str,
    most: Option<u32>,
) -> Result<Vec<StoredMessage>> {
    let sql = select_messages!(
        "WITH RECURSIVE branch (id, parent_id, distance) AS (
             SELECT id, parent_id, 0 FROM messages WHERE id = ?1
             UNION ALL
             SELECT above.id, above.parent_id, branch.distance + 1
             FROM branch JOIN messages above ON above.id = branch.parent_id
             LIMIT ?2)",
        "FROM branch JOIN messages m ON m.id = branch.id LEFT JOIN parts p ON p.message_id = m.id
         ORDER BY branch.distance DESC, p.position"
    );
    // A negative number is no limit.
    let rows = raw_rows!(db, sql; head, most.map_or(-1, i64::from)).await?;
    if rows.is_empty() {
        return Err(Error::NotFound("message"));
    }
    messages(rows)
}
