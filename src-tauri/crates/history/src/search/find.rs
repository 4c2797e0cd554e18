//! Finding chats by what was said in them.

use api::{HistoryHit, HistoryHits, HistoryQuery};
use protocol::Role;
use sqlx::sqlite::SqliteRow;
use sqlx::Row;

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

/// The hit of a row, without the text around it.
fn hit(row: &SqliteRow) -> sqlx::Result<HistoryHit> {
    let role: Option<String> = row.try_get("role")?;
    Ok(HistoryHit {
        chat: row.try_get("chat")?,
        title: lossy(row.try_get("title")?),
        message: row.try_get("message")?,
        role: role.and_then(|role| from_word("role", &role).ok()),
        model: row.try_get("model")?,
        at: row.try_get("at")?,
        snippet: String::new(),
        marks: Vec::new(),
    })
}

/// The hit with the place of the terms in this text.
fn with_snippet(hit: HistoryHit, text: &str, terms: &[Term]) -> HistoryHit {
    // A question is shown as it was written.
    let (snippet, marks) = match hit.role {
        Some(Role::Assistant) => snippet_of_markdown(text, terms),
        _ => snippet(text, terms),
    };
    HistoryHit { snippet, marks, ..hit }
}

impl History {
    /// Finds these words in titles, questions, answers (not in reasoning) and the names of attachments. Accents and the
    /// case of letters count for nothing, and every word may be a beginning. Chats in the trash are left out; words
    /// without a letter or a digit are found nowhere.
    pub async fn search(&self, query: &HistoryQuery) -> Result<HistoryHits> {
        match self.find(query).await {
            Err(error) if error.is_damage() && self.is_readable_again().await => self.find(query).await,
            found => found,
        }
    }

    async fn find(&self, query: &HistoryQuery) -> Result<HistoryHits> {
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
            found.hits.extend(titles.into_iter().take(TITLES).map(|hit| {
                let title = hit.title.clone();
                with_snippet(hit, &title, &terms)
            }));
        }
        let numbers = (since * DOCUMENTS_PER_MILLISECOND, until * DOCUMENTS_PER_MILLISECOND - 1);
        let mut hits = self.search_messages(&terms, query.model.as_deref(), numbers).await?;
        found.more |= hits.len() > MESSAGES;
        hits.truncate(MESSAGES);
        let messages: Vec<&str> = hits.iter().filter_map(|hit| hit.message.as_deref()).collect();
        let texts = self.searched_texts(&messages).await?;
        found.hits.extend(hits.into_iter().map(|hit| {
            let text = hit.message.as_ref().and_then(|message| texts.get(message));
            with_snippet(hit, text.map_or("", String::as_str), &terms)
        }));
        Ok(found)
    }

    /// The titles with these terms of chats in which something was last said in this span of time, one more than
    /// [`TITLES`] at most.
    async fn search_titles(&self, terms: &[Term], since: i64, until: Option<i64>) -> Result<Vec<HistoryHit>> {
        let rows = raw_rows!(
            &self.readers,
            "SELECT c.id AS chat, c.title, NULL AS message, NULL AS role, NULL AS model, c.updated_at AS at
               FROM search_index s CROSS JOIN search_documents d ON d.id = s.rowid
                    CROSS JOIN chats c ON c.id = d.chat_id
              WHERE search_index MATCH ?1 AND d.message_id IS NULL AND c.deleted_at IS NULL
                AND c.updated_at >= ?2 AND (?3 IS NULL OR c.updated_at < ?3)
              ORDER BY c.updated_at DESC, c.id DESC LIMIT ?4";
            expression("title", terms, &[]), since, until, TITLES as i64 + 1
        )
        .await?;
        Ok(rows.iter().map(hit).collect::<sqlx::Result<_>>()?)
    }

    /// The messages with these terms, of this model if one is named, whose documents have numbers from the first to the
    /// last of these; one more than [`MESSAGES`] at most, the newest first.
    async fn search_messages(
        &self,
        terms: &[Term],
        model: Option<&str>,
        (first, last): (i64, i64),
    ) -> Result<Vec<HistoryHit>> {
        let mut expression = expression("text", terms, &self.beginnings(terms).await);
        if let Some(model) = model {
            expression += &format!(" AND model : \"{}\"", model_token(model));
        }
        // The numbers are the order of time, so the newest come out of the index first and nothing is sorted.
        let rows = raw_rows!(
            &self.readers,
            "SELECT d.chat_id AS chat, c.title, m.id AS message, m.role, m.model, m.created_at AS at
               FROM search_index s CROSS JOIN search_documents d ON d.id = s.rowid
                    CROSS JOIN chats c ON c.id = d.chat_id
                    CROSS JOIN messages m ON m.id = d.message_id
              WHERE search_index MATCH ?1 AND s.rowid BETWEEN ?2 AND ?3 AND c.deleted_at IS NULL
              ORDER BY s.rowid DESC LIMIT ?4";
            expression, first, last, MESSAGES as i64 + 1
        )
        .await?;
        Ok(rows.iter().map(hit).collect::<sqlx::Result<_>>()?)
    }

    /// For each term the words of the index that begin like it, where they are few; none for a term that the index is
    /// to expand. It does so by writing down every place of all these words first, whereas single words are read only
    /// as far as somebody looks.
    async fn beginnings(&self, terms: &[Term]) -> Vec<Vec<String>> {
        let mut all = Vec::with_capacity(terms.len());
        for term in terms {
            let words = match term.beginning() {
                Some(beginning) => self.words_from(beginning).await,
                None => Ok(Vec::new()),
            };
            let words = words.inspect_err(|error| tracing::debug!(%error, "the words of the index cannot be listed"));
            all.push(words.ok().filter(|words| words.len() <= WORDS).unwrap_or_default());
        }
        all
    }

    /// The words of the index that begin like this, one more than [`WORDS`] at most. Each is sought from the one before
    /// it.
    async fn words_from(&self, beginning: &str) -> Result<Vec<String>> {
        values!(
            &self.readers,
            "WITH RECURSIVE words (word) AS (
                 SELECT (SELECT term FROM temp.search_words WHERE term >= ?1 LIMIT 1)
                 UNION ALL
                 SELECT (SELECT term FROM temp.search_words WHERE term >= word || char(1) LIMIT 1)
                   FROM words WHERE substr(word, 1, length(?1)) = ?1
                 LIMIT ?2)
             SELECT word FROM words WHERE substr(word, 1, length(?1)) = ?1";
            beginning, WORDS as i64 + 1
        )
        .await
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
