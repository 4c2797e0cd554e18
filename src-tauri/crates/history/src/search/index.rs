//! Reading texts into the full-text index. Triggers mark the documents whose text changed (migration 7); here they are
//! read, a few at a time, so that neither an old file with many chats nor an answer that grows holds up anything.

use std::collections::BTreeMap;

use protocol::Content;
use sqlite::words::segmented;
use sqlx::SqliteConnection;

use crate::json::{lossy, to_json};
use crate::messages::rows::part_content;
use crate::search::words::model_token;
use crate::{History, Result};

/// So much text is read in one step, in bytes; a longer one is read alone.
const STEP_BYTES: usize = 4 << 20;

/// A document whose text changed: its number, its chat, and its message if it is no title.
type Stale = (i64, String, Option<String>);

impl History {
    /// Indexes at most `most` changed texts, the newest first; true if there are more. Answers that are
    /// being written are read only if `streaming` says so: they will change again.
    pub async fn index_texts(&self, most: usize, streaming: bool) -> Result<bool> {
        match self.index_some(most, streaming).await {
            Err(error) if error.is_damage() && self.is_readable_again().await => self.index_some(most, streaming).await,
            read => read,
        }
    }

    async fn index_some(&self, most: usize, streaming: bool) -> Result<bool> {
        // Asked without the write lock first: mostly there is nothing to do.
        if !self.is_stale(streaming).await? {
            return Ok(false);
        }
        let mut transaction = self.write().await?;
        let stale: Vec<Stale> = rows!(&mut *transaction, STALE; streaming, most as i64).await?;
        let mut bytes = 0;
        // The index takes ascending numbers best; the texts of one step are few.
        let mut documents = Vec::new();
        for (id, chat, message) in stale {
            let document = document(&mut transaction, &chat, message).await?;
            bytes += document.0.len() + document.1.len();
            documents.push((id, document));
            if bytes > STEP_BYTES {
                break;
            }
        }
        documents.sort_unstable_by_key(|(id, _)| *id);
        for (id, (title, text, models)) in &documents {
            let (title, text) = (segmented(title).into_owned(), segmented(text).into_owned());
            let sql = "INSERT OR REPLACE INTO search_index (rowid, title, text, model) VALUES (?, ?, ?, ?)";
            run!(&mut transaction, sql; id, title, text, models).await?;
            run!(&mut transaction, "UPDATE search_documents SET stale = 0 WHERE id = ?"; id).await?;
        }
        transaction.commit().await?;
        tracing::debug!(read = documents.len(), "texts were read into the index");
        self.is_stale(streaming).await
    }

    async fn is_stale(&self, streaming: bool) -> Result<bool> {
        let stale: Option<Stale> = row!(&self.readers, STALE; streaming, 1).await?;
        Ok(stale.is_some())
    }

    /// The texts of these messages as they are searched, by message.
    pub(crate) async fn searched_texts(&self, messages: &[&str]) -> Result<BTreeMap<String, String>> {
        let rows: Vec<(String, String, Vec<u8>)> = rows!(
            &self.readers,
            "SELECT message_id, kind, content FROM parts
              WHERE message_id IN (SELECT value FROM json_each(?)) AND kind <> 'thinking'
              ORDER BY message_id, position";
            to_json(&messages)
        )
        .await?;
        let mut texts: BTreeMap<String, String> = BTreeMap::new();
        for (message, kind, content) in rows {
            push_line(texts.entry(message).or_default(), &searched(&kind, &content));
        }
        Ok(texts)
    }
}

const STALE: &str = "SELECT id, chat_id, message_id FROM search_documents d
      WHERE stale = 1 AND (?1 OR NOT EXISTS (SELECT 1 FROM messages m
                                              WHERE m.id = d.message_id AND m.state = 'streaming'))
      ORDER BY id DESC LIMIT ?2";

/// Title, text and models of a document.
async fn document(db: &mut SqliteConnection, chat: &str, message: Option<String>) -> Result<(String, String, String)> {
    let Some(message) = message else {
        let title = value!(db, "SELECT CAST(title AS BLOB) FROM chats WHERE id = ?"; chat).await?;
        return Ok((lossy(title.unwrap_or_default()), String::new(), String::new()));
    };
    let sql = "SELECT kind, content FROM parts WHERE message_id = ? AND kind <> 'thinking' ORDER BY position";
    let parts: Vec<(String, Vec<u8>)> = rows!(&mut *db, sql; &message).await?;
    let mut text = String::new();
    for (kind, content) in parts {
        push_line(&mut text, &searched(&kind, &content));
    }
    let models: Vec<String> = values!(
        db,
        "SELECT DISTINCT model FROM messages WHERE model IS NOT NULL
            AND (id = ?1 OR parent_id = ?1 AND role = 'assistant'
                             AND 'user' = (SELECT role FROM messages WHERE id = ?1))";
        &message
    )
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
