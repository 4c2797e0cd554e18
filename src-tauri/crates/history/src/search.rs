//! Finding chats by what was said in them.

use serde::Serialize;

use crate::{History, Result};

/// One place where a text was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, sqlx::FromRow)]
pub struct Found {
    /// The chat.
    pub chat: String,
    /// Its title.
    pub title: String,
    /// The message; `None` where the text stands in the title.
    pub message: Option<String>,
    /// When it was said, in Unix milliseconds.
    pub at: i64,
    /// The place with some text around it.
    pub snippet: String,
}

impl History {
    /// Where this text stands in titles, questions and answers (not in reasoning), newest first, at most 200 places. Capital
    /// and small letters of ASCII are the same. Chats in the trash are left out; an empty text is found nowhere.
    pub async fn search(&self, text: &str) -> Result<Vec<Found>> {
        if text.is_empty() {
            return Ok(Vec::new());
        }
        // Not LIKE: its patterns are limited in length, and end at a NUL.
        Ok(sqlx::query_as(
            "SELECT c.id AS chat, c.title, m.id AS message, m.created_at AS at,
                    substr(p.content, max(1, instr(lower(p.content), lower(?1)) - 40), 120) AS snippet
               FROM parts p JOIN messages m ON m.id = p.message_id JOIN chats c ON c.id = m.chat_id
              WHERE c.deleted_at IS NULL AND p.kind = 'text' AND instr(lower(p.content), lower(?1))
             UNION ALL
             SELECT c.id, c.title, NULL, c.updated_at, c.title FROM chats c
              WHERE c.deleted_at IS NULL AND instr(lower(c.title), lower(?1))
              ORDER BY at DESC LIMIT 200",
        )
        .bind(text)
        .fetch_all(&self.readers)
        .await?)
    }
}
