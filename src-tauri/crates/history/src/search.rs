//! Finding chats by what was said in them.

use serde::Serialize;

use crate::{History, Result};

/// One place where a text was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SearchHit {
    /// The chat.
    pub chat: String,
    /// Its title.
    pub title: String,
    /// The message; `None` if the text is in the title.
    pub message: Option<String>,
    /// When it was said, in Unix milliseconds.
    pub at: i64,
    /// The place with some text around it, on one line.
    pub snippet: String,
}

#[derive(sqlx::FromRow)]
struct SearchRow {
    chat: String,
    title: String,
    message: Option<String>,
    at: i64,
    /// Some bytes around the place, perhaps with parts of characters at their ends.
    around: Vec<u8>,
}

impl History {
    /// Where this text stands in titles, questions and answers (not in reasoning), newest first, at most 200 places. Capital
    /// and small letters of ASCII are the same. Chats in the trash are left out; an empty text is found nowhere.
    pub async fn search(&self, text: &str) -> Result<Vec<SearchHit>> {
        if text.is_empty() {
            return Ok(Vec::new());
        }
        // Not LIKE: its patterns are limited in length. Bytes, because texts end at a NUL for most of SQLite's functions.
        let rows: Vec<SearchRow> = sqlx::query_as(
            "SELECT c.id AS chat, c.title, m.id AS message, m.created_at AS at,
                    substr(CAST(p.content AS BLOB), max(1, instr(CAST(lower(p.content) AS BLOB), CAST(lower(?1) AS BLOB)) - 60), 200) AS around
               FROM parts p JOIN messages m ON m.id = p.message_id JOIN chats c ON c.id = m.chat_id
              WHERE c.deleted_at IS NULL AND p.kind = 'text' AND instr(lower(p.content), lower(?1))
             UNION ALL
             SELECT c.id, c.title, NULL, c.updated_at, CAST(c.title AS BLOB) FROM chats c
              WHERE c.deleted_at IS NULL AND instr(lower(c.title), lower(?1))
              ORDER BY at DESC LIMIT 200",
        )
        .bind(text)
        .fetch_all(&self.readers)
        .await?;
        let found = |row: SearchRow| SearchHit {
            chat: row.chat,
            title: row.title,
            message: row.message,
            at: row.at,
            snippet: one_line(&String::from_utf8_lossy(&row.around)),
        };
        Ok(rows.into_iter().map(found).collect())
    }
}

fn one_line(text: &str) -> String {
    let whole = text.trim_matches(char::REPLACEMENT_CHARACTER);
    whole
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}
