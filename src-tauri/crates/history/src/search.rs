//! Finding chats by what was said in them.

use protocol::ChatSummary;
use serde::Serialize;

use crate::chats::{select_chats, SummaryRow};
use crate::{History, Result};

/// One place where a text was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Found {
    /// The chat.
    pub chat: ChatSummary,
    /// The message; `None` where it is the chat's title.
    pub message: Option<String>,
    /// The place with some text around it, on one line.
    pub excerpt: String,
}

#[derive(sqlx::FromRow)]
struct FoundRow {
    #[sqlx(flatten)]
    chat: SummaryRow,
    message: Option<String>,
    excerpt: String,
}

impl History {
    /// Where this text stands in titles, questions and answers (not in reasoning), newest first, at most 200 places. Capital
    /// and small letters of ASCII are the same. Chats in the trash are left out; an empty text is found nowhere.
    pub async fn search(&self, text: &str) -> Result<Vec<Found>> {
        if text.is_empty() {
            return Ok(Vec::new());
        }
        let rows: Vec<FoundRow> = sqlx::query_as(concat!(
            select_chats!(
                ", m.id AS message, m.created_at AS said_at,
                    substr(p.content, max(1, instr(lower(p.content), lower(?1)) - 40), 120) AS excerpt
               FROM parts p JOIN messages m ON m.id = p.message_id JOIN chats c ON c.id = m.chat_id
              WHERE c.deleted_at IS NULL AND p.kind = 'text' AND instr(lower(p.content), lower(?1)) "
            ),
            "UNION ALL ",
            select_chats!(
                ", NULL, c.updated_at, c.title FROM chats c WHERE c.deleted_at IS NULL AND instr(lower(c.title), lower(?1))
              ORDER BY said_at DESC LIMIT 200"
            )
        ))
        .bind(text)
        .fetch_all(&self.readers)
        .await?;
        let found = |row: FoundRow| Found {
            chat: row.chat.into(),
            message: row.message,
            excerpt: row.excerpt.split_whitespace().collect::<Vec<_>>().join(" "),
        };
        Ok(rows.into_iter().map(found).collect())
    }
}
