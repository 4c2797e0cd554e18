//! Finding chats by what was said in them.

use api::{HistoryHit, HistoryHits, HistoryQuery};
use protocol::Role;

use crate::json::{from_word, lossy};
use crate::search::words::{expression, model_token, snippet, snippet_of_markdown, terms, Term};
use crate::{History, Result};

/// The most titles of a result.
const TITLES: usize = 20;
/// The most messages of a result.
const MESSAGES: usize = 80;
/// The most words with the same beginning that are searched one by one.
const WORDS: usize = 32;
/// The texts that are indexed before a search; more of them mean an old file, which is indexed in the background.
const READ_FIRST: usize = 64;
/// A number of a document is its time in milliseconds times this.
const DOCUMENTS_PER_MILLISECOND: i64 = 1 << 20;
/// The latest time that a number can hold.
const LATEST: i64 = 8_000_000_000_000;

struct TitleRow {
    chat: String,
    title: Vec<u8>,
    at: i64,
}

from_row!(TitleRow: chat, title, at);

struct PlaceRow {
    chat: String,
    title: Vec<u8>,
    message: String,
    role: String,
    model: Option<String>,
    at: i64,
}

from_row!(PlaceRow: chat, title, message, role, model, at);

impl TitleRow {
    fn hit(self, terms: &[Term]) -> HistoryHit {
        let title = lossy(self.title);
        let (snippet, marks) = snippet(&title, terms);
        HistoryHit {
            chat: self.chat,
            title,
            message: None,
            role: None,
            model: None,
            at: self.at,
            snippet,
            marks,
        }
    }
}

impl PlaceRow {
    /// The hit in a message of this text.
    fn hit(self, text: &str, terms: &[Term]) -> HistoryHit {
        let role = from_word::<Role>("role", &self.role).ok();
        // A question is shown as it was written.
        let (snippet, marks) = match role {
            Some(Role::Assistant) => snippet_of_markdown(text, terms),
            _ => snippet(text, terms),
        };
        HistoryHit {
            role,
            chat: self.chat,
            title: lossy(self.title),
            message: Some(self.message),
            model: self.model,
            at: self.at,
            snippet,
            marks,
        }
    }
}

impl History {
    /// Finds these words in titles, questions, answers (not in reasoning) and the names of attachments. Accents and the
    /// case of letters count for nothing, and every word may be a beginning. Chats in the trash are left out; words
    /// without a letter or a digit are found nowhere.
    pub async fn search(&self, query: &HistoryQuery) -> Result<HistoryHits> {
        let terms = terms(&query.text);
        if terms.is_empty() {
            return Ok(HistoryHits::default());
        }
        let indexing = match self.index_texts(READ_FIRST, true).await {
            Ok(more) => more,
            // The index can be searched all the same, such as in a read-only file.
            Err(error) => {
                tracing::warn!(%error, "new texts could not be read into the index");
                true
            }
        };
        let since = query.since.unwrap_or(0).clamp(0, LATEST);
        let until = query.until.map_or(LATEST, |until| until.clamp(0, LATEST));
        let mut found = HistoryHits {
            indexing,
            ..HistoryHits::default()
        };
        // A title is nobody's answer.
        if query.model.is_none() && !query.without_titles {
            let titles = self.search_titles(&terms, since, query.until).await?;
            found.more |= titles.len() > TITLES;
            found
                .hits
                .extend(titles.into_iter().take(TITLES).map(|row| row.hit(&terms)));
        }
        let rows = self
            .search_messages(
                &terms,
                query.model.as_deref(),
                (since * DOCUMENTS_PER_MILLISECOND, until * DOCUMENTS_PER_MILLISECOND - 1),
            )
            .await?;
        found.more |= rows.len() > MESSAGES;
        let rows: Vec<PlaceRow> = rows.into_iter().take(MESSAGES).collect();
        let messages: Vec<&str> = rows.iter().map(|row| row.message.as_str()).collect();
        let texts = self.searched_texts(&messages).await?;
        found.hits.extend(rows.into_iter().map(|row| {
            let text = texts.get(&row.message).map_or("", String::as_str);
            row.hit(text, &terms)
        }));
        Ok(found)
    }

    /// The titles with these terms of chats in which something was last said in this span of time, one more than
    /// [`TITLES`] at most.
    async fn search_titles(&self, terms: &[Term], since: i64, until: Option<i64>) -> Result<Vec<TitleRow>> {
        Ok(sqlx::query_as(
            "SELECT c.id AS chat, c.title, c.updated_at AS at
               FROM search_index s CROSS JOIN search_documents d ON d.id = s.rowid CROSS
               JOIN chats c ON c.id = d.chat_id
              WHERE search_index MATCH ?1 AND d.message_id IS NULL AND c.deleted_at IS NULL
              AND c.updated_at >= ?2 AND (?3 IS NULL OR c.updated_at < ?3)
              ORDER BY c.updated_at DESC, c.id DESC LIMIT ?4",
        )
        .bind(expression("title", terms, &[]))
        .bind(since)
        .bind(until)
        .bind(TITLES as i64 + 1)
        .fetch_all(&self.readers)
        .await?)
    }

    /// The messages with these terms, of this model if one is named, whose documents have numbers from the first to the
    /// last of these; one more than [`MESSAGES`] at most, the newest first.
    async fn search_messages(
        &self,
        terms: &[Term],
        model: Option<&str>,
        (first, last): (i64, i64),
    ) -> Result<Vec<PlaceRow>> {
        let mut expression = expression("text", terms, &self.beginnings(terms).await);
        if let Some(model) = model {
            expression += &format!(" AND model : \"{}\"", model_token(model));
        }
        // The numbers are the order of time, so the newest come out of the index first and nothing is sorted.
        Ok(sqlx::query_as(
            "SELECT d.chat_id AS chat, c.title, m.id AS message, m.role, m.model, m.created_at AS at
               FROM search_index s CROSS JOIN search_documents d ON d.id = s.rowid CROSS
               JOIN chats c ON c.id = d.chat_id
                    CROSS JOIN messages m ON m.id = d.message_id
              WHERE search_index MATCH ?1 AND s.rowid BETWEEN ?2 AND ?3 AND c.deleted_at IS NULL
              ORDER BY s.rowid DESC LIMIT ?4",
        )
        .bind(expression)
        .bind(first)
        .bind(last)
        .bind(MESSAGES as i64 + 1)
        .fetch_all(&self.readers)
        .await?)
    }

    /// For each term the words of the index that begin like it, where they are few; none for a term that the index is
    /// to expand. It does so by writing down every place of all these words first, whereas single words are read only
    /// as far as somebody looks.
    async fn beginnings(&self, terms: &[Term]) -> Vec<Vec<String>> {
        let mut all = Vec::with_capacity(terms.len());
        for term in terms {
            let words = match term.beginning() {
                Some(beginning) => self.words_from(beginning).await.unwrap_or_else(|error| {
                    tracing::debug!(%error, "the words of the index cannot be listed");
                    Vec::new()
                }),
                None => Vec::new(),
            };
            all.push(if words.len() > WORDS { Vec::new() } else { words });
        }
        all
    }

    /// The words of the index that begin like this, one more than [`WORDS`] at most. Each is sought from the one before
    /// it.
    async fn words_from(&self, beginning: &str) -> Result<Vec<String>> {
        Ok(sqlx::query_scalar(
            "WITH RECURSIVE words (word) AS (
                 SELECT (SELECT term FROM temp.search_words WHERE term >= ?1 LIMIT 1)
                 UNION ALL
                 SELECT (SELECT term FROM temp.search_words WHERE term >= word || char(1) LIMIT 1)
                   FROM words WHERE substr(word, 1, length(?1)) = ?1
                 LIMIT ?2)
             SELECT word FROM words WHERE substr(word, 1, length(?1)) = ?1",
        )
        .bind(beginning)
        .bind(WORDS as i64 + 1)
        .fetch_all(&self.readers)
        .await?)
    }
}

#[cfg(test)]
mod tests {
    use api::ChatSettings;

    use super::*;

    #[tokio::test]
    async fn words_of_the_index_are_listed_by_connections_that_write_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let history = History::open(&folder.path().join("history.sqlite")).await.unwrap();
        let chat = history.create_chat(&ChatSettings::default()).await.unwrap().summary.id;
        history
            .rename_chat(&chat, "Harbour, harbourside, h\u{e1}rbours; harp")
            .await
            .unwrap();
        while history.index_texts(10, true).await.unwrap() {}
        assert_eq!(
            history.words_from("harbour").await.unwrap(),
            ["harbour", "harbours", "harbourside"]
        );
        assert_eq!(history.words_from("harbourx").await.unwrap(), Vec::<String>::new());
        let words = history.beginnings(&terms("harbo \"harbour\" har h\u{e1}rbo")).await;
        assert_eq!(words.iter().map(Vec::len).collect::<Vec<_>>(), [3, 0, 0, 0]);
        let written = sqlx::query("DELETE FROM chats").execute(&history.readers).await;
        assert!(written.is_err(), "{written:?}");
    }
}
