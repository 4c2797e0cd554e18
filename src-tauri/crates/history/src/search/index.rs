//! Reading texts into the full-text index. Triggers mark the documents whose text changed (migration 7); here they are
//! read, a few at a time, so that neither an old file with many chats nor an answer that grows holds up anything.

use std::collections::BTreeMap;

use protocol::Content;
use sqlx::{Sqlite, Transaction};

use crate::messages::rows::part_content;
use crate::search::words::{model_token, segmented};
use crate::{History, Result};

/// So much text is read in one step, in bytes; a longer one is read alone.
const STEP_BYTES: usize = 4 << 20;

struct StaleRow {
    id: i64,
    chat_id: String,
    message_id: Option<String>,
}

from_row!(StaleRow: id, chat_id, message_id);

struct PartRow {
    message_id: String,
    kind: String,
    content: Vec<u8>,
}

from_row!(PartRow: message_id, kind, content);

impl History {
    /// Indexes at most `most` changed texts, the newest first; true if there are more. Answers that are
    /// being written are read only if `streaming` says so: they will change again.
    pub async fn index_texts(&self, most: usize, streaming: bool) -> Result<bool> {
        // Asked without the write lock first: mostly there is nothing to do.
        if self.stale(1, streaming).await?.is_empty() {
            return Ok(false);
        }
        let mut transaction = self.write().await?;
        let mut rows: Vec<StaleRow> = sqlx::query_as(STALE)
            .bind(streaming)
            .bind(most as i64)
            .fetch_all(&mut *transaction)
            .await?;
        let mut bytes = 0;
        let mut read = 0;
        // The index takes ascending numbers best; the texts of one step are few.
        let mut documents = Vec::new();
        for row in rows.drain(..) {
            let document = document(&mut transaction, &row).await?;
            bytes += document.0.len() + document.1.len();
            documents.push((row.id, document));
            read += 1;
            if bytes > STEP_BYTES {
                break;
            }
        }
        documents.sort_unstable_by_key(|(id, _)| *id);
        for (id, (title, text, models)) in documents {
            sqlx::query("INSERT OR REPLACE INTO search_index (rowid, title, text, model) VALUES (?, ?, ?, ?)")
                .bind(id)
                .bind(segmented(&title).into_owned())
                .bind(segmented(&text).into_owned())
                .bind(models)
                .execute(&mut *transaction)
                .await?;
            sqlx::query("UPDATE search_documents SET stale = 0 WHERE id = ?")
                .bind(id)
                .execute(&mut *transaction)
                .await?;
        }
        transaction.commit().await?;
        tracing::debug!(read, "texts were read into the index");
        Ok(!self.stale(1, streaming).await?.is_empty())
    }

    async fn stale(&self, most: i64, streaming: bool) -> Result<Vec<StaleRow>> {
        Ok(sqlx::query_as(STALE)
            .bind(streaming)
            .bind(most)
            .fetch_all(&self.readers)
            .await?)
    }

    /// The texts of these messages as they are searched, by message.
    pub(crate) async fn searched_texts(&self, messages: &[&str]) -> Result<BTreeMap<String, String>> {
        let rows: Vec<PartRow> = sqlx::query_as(
            "SELECT message_id, kind, content FROM parts
              WHERE message_id IN (SELECT value FROM json_each(?)) AND kind <> 'thinking' ORDER BY message_id, position",
        )
        .bind(serde_json::json!(messages).to_string())
        .fetch_all(&self.readers)
        .await?;
        let mut texts: BTreeMap<String, String> = BTreeMap::new();
        for row in rows {
            let text = texts.entry(row.message_id).or_default();
            push_line(text, &searched(&row.kind, &row.content));
        }
        Ok(texts)
    }
}

const STALE: &str = "SELECT id, chat_id, message_id FROM search_documents d
      WHERE stale = 1 AND (?1 OR NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = d.message_id AND m.state = 'streaming'))
      ORDER BY id DESC LIMIT ?2";

/// Title, text and models of a document.
async fn document(transaction: &mut Transaction<'static, Sqlite>, row: &StaleRow) -> Result<(String, String, String)> {
    let Some(message) = &row.message_id else {
        let title: Option<Vec<u8>> = sqlx::query_scalar("SELECT CAST(title AS BLOB) FROM chats WHERE id = ?")
            .bind(&row.chat_id)
            .fetch_optional(&mut **transaction)
            .await?;
        let title = String::from_utf8_lossy(&title.unwrap_or_default()).into_owned();
        return Ok((title, String::new(), String::new()));
    };
    let parts: Vec<PartRow> = sqlx::query_as(
        "SELECT message_id, kind, content FROM parts WHERE message_id = ? AND kind <> 'thinking' ORDER BY position",
    )
    .bind(message)
    .fetch_all(&mut **transaction)
    .await?;
    let mut text = String::new();
    for part in parts {
        push_line(&mut text, &searched(&part.kind, &part.content));
    }
    let models: Vec<String> = sqlx::query_scalar(
        "SELECT DISTINCT model FROM messages
          WHERE (id = ?1 OR parent_id = ?1 AND role = 'assistant' AND 'user' = (SELECT role FROM messages WHERE id = ?1)) AND model IS NOT NULL",
    )
    .bind(message)
    .fetch_all(&mut **transaction)
    .await?;
    let models: Vec<String> = models.iter().map(|model| model_token(model)).collect();
    Ok((String::new(), text, models.join(" ")))
}

/// The searched text of a part: its text, or the name of an attachment.
fn searched(kind: &str, content: &[u8]) -> String {
    let content = String::from_utf8_lossy(content);
    if kind == "text" {
        return content.into_owned();
    }
    match part_content(kind, content.into_owned()) {
        Ok(Content::Image { alt, .. }) => alt,
        Ok(Content::File { name, .. }) => name,
        // Of a part that cannot be read nothing can be found.
        _ => String::new(),
    }
}

fn push_line(text: &mut String, line: &str) {
    if !text.is_empty() && !line.is_empty() {
        text.push('\n');
    }
    text.push_str(line);
}
