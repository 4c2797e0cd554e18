//! Stores messages that are complete from the start.

use api::Part;
use protocol::{Content, Role};
use sqlx::{Sqlite, Transaction};

use crate::json::to_word;
use crate::messages::parts::insert_parts;
use crate::Result;

/// Stores a complete message.
pub(crate) async fn insert_message(
    transaction: &mut Transaction<'static, Sqlite>,
    (id, chat, parent): (&str, &str, Option<&str>),
    role: Role,
    content: &[Content],
    now: i64,
) -> Result<()> {
    sqlx::query(
        "INSERT INTO messages (id, chat_id, parent_id, role, state, created_at, finished_at) VALUES (?1, ?2, ?3, ?4, 'complete', ?5, ?5)",
    )
    .bind(id)
    .bind(chat)
    .bind(parent)
    .bind(to_word(&role))
    .bind(now)
    .execute(&mut **transaction)
    .await?;
    let part = |content: &Content| Part {
        content: content.clone(),
        started_at: now,
        ended_at: now,
    };
    let parts: Vec<Part> = content.iter().map(part).collect();
    insert_parts(transaction, id, &parts).await
}
