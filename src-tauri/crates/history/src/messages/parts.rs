//! The table `parts`, and how a streaming answer grows.

use api::Part;
use protocol::{Content, Notice};
use sqlx::SqliteConnection;

use crate::json::to_json;
use crate::messages::rows::part_columns;
use crate::{now, Error, History, Result};

/// The requests of other processes to the one that writes an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ControlRequests {
    /// To end the answer.
    pub stop: bool,
    /// To end its thought.
    pub answer_now: bool,
}

from_row!(ControlRequests: stop, answer_now);

/// The growth of a streaming answer since the last write. An empty one still renews the heartbeat of its owner.
#[derive(Debug, Clone, Default)]
pub struct AnswerDelta {
    /// True if parts and tokens are the full answer and replace the stored ones.
    pub replaces: bool,
    /// New parts, and text at the end of the last one.
    pub parts: Vec<PartDelta>,
    /// The ids of the new tokens.
    pub tokens: Vec<u32>,
    /// All notices so far.
    pub notices: Vec<Notice>,
    /// The commit or content hash of the model, once it is known.
    pub model_revision: Option<String>,
    /// SHA-256 of the chat template, once it is known.
    pub template_hash: Option<String>,
    /// How many tokens of the answer are reasoning, once that was counted.
    pub thinking_tokens: Option<u32>,
    /// True if its thought was ended for the model.
    pub thinking_ended: bool,
}

/// A new part, or text at the end of one.
#[derive(Debug, Clone)]
pub struct PartDelta {
    /// Which part of its message, from 0.
    pub position: usize,
    /// Of a text only what is new, of every other kind the whole.
    pub content: Content,
    /// When its first piece came.
    pub started_at: i64,
    /// When its last piece came.
    pub ended_at: i64,
}

impl History {
    /// Stores what is new in a streaming answer and that its owner lives. Returns what other processes want of it.
    /// Fails with [`Error::NotFound`] if the answer is no longer streaming, or another process writes it by now.
    pub async fn append(&self, message: &str, owner: &str, delta: &AnswerDelta) -> Result<ControlRequests> {
        let mut transaction = self.write().await?;
        // `||` makes text even of blobs.
        let requests = row!(
            &mut *transaction,
            "UPDATE messages SET heartbeat = ?2, tokens = CASE WHEN ?8 THEN ?3 ELSE CAST(tokens || ?3 AS BLOB) END,
                    notices = ?4, model_revision = coalesce(?5, model_revision),
                    template_hash = coalesce(?6, template_hash), thinking_tokens = coalesce(?7, thinking_tokens),
                    thinking_ended = max(?9, thinking_ended)
              WHERE id = ?1 AND state = 'streaming' AND owner = ?10 RETURNING stop_requested AS stop,
                        end_thinking_requested AS answer_now";
            message, now(), token_bytes(&delta.tokens), to_json(&delta.notices), &delta.model_revision,
            &delta.template_hash, delta.thinking_tokens, delta.replaces, delta.thinking_ended, owner
        );
        let requests = requests.await?.ok_or(Error::NotFound("running answer"))?;
        if delta.replaces {
            delete_parts(&mut transaction, message).await?;
        }
        for part in &delta.parts {
            let times = (part.started_at, part.ended_at);
            insert_part(&mut transaction, message, part.position, &part.content, times).await?;
        }
        transaction.commit().await?;
        Ok(requests)
    }
}

/// Deletes all parts of a message.
pub(crate) async fn delete_parts(db: &mut SqliteConnection, message: &str) -> Result<()> {
    run!(db, "DELETE FROM parts WHERE message_id = ?"; message).await?;
    Ok(())
}

/// Stores all parts of a message that has none.
pub(crate) async fn insert_parts(db: &mut SqliteConnection, message: &str, parts: &[Part]) -> Result<()> {
    for (position, part) in parts.iter().enumerate() {
        insert_part(db, message, position, &part.content, (part.started_at, part.ended_at)).await?;
    }
    Ok(())
}

async fn insert_part(
    db: &mut SqliteConnection,
    message: &str,
    position: usize,
    content: &Content,
    (started_at, ended_at): (i64, i64),
) -> Result<()> {
    let (kind, content) = part_columns(content);
    run!(
        db,
        "INSERT INTO parts (message_id, position, kind, content, started_at, ended_at) VALUES (?, ?, ?, ?, ?, ?)
         ON CONFLICT (message_id, position)
         DO UPDATE SET content = content || excluded.content, ended_at = excluded.ended_at";
        message, position as i64, kind, content, started_at, ended_at
    )
    .await?;
    Ok(())
}

/// Token ids as they are stored: four bytes each, little-endian.
pub(crate) fn token_bytes(tokens: &[u32]) -> Vec<u8> {
    tokens.iter().flat_map(|id| id.to_le_bytes()).collect()
}
