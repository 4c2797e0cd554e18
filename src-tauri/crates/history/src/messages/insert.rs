//! Stores messages that are complete from the start.

use api::Part;
use protocol::{Content, Role};
use sqlx::SqliteConnection;

use crate::json::to_word;
use crate::messages::parts::insert_parts;
use crate::Result;

/// Stores a complete message.
pub(crate) async fn insert_message(
    db: &mut SqliteConnection,
    (id, chat, parent): (&str, &str, Option<&str>),
    role: Role,
    content: &[Content],
    now: i64,
) -> Result<()> {
    run!(
        db,
        "INSERT INTO messages (id, chat_id, parent_id, role, state, created_at, finished_at)
         VALUES (?1, ?2, ?3, ?4, 'complete', ?5, ?5)";
        id, chat, parent, to_word(&role), now
    )
    .await?;
    let parts: Vec<Part> = content.iter().map(|content| Part::at(content.clone(), now)).collect();
    insert_parts(db, id, &parts).await
}
