//! The table `chats`: the sidebar, what a chat remembers, the trash.

use protocol::{ChatSettings, ChatSummary, ChatView, Content};

use crate::rows::{from_json, to_json};
use crate::{new_id, now, Error, History, Result};

/// The columns of a [`ChatSummary`] of the chats that the rest of the query names `c`.
macro_rules! select_chats {
    ($rest:literal) => {
        concat!(
            "SELECT c.id, c.title, c.created_at, c.updated_at, c.pinned,
                    EXISTS (SELECT 1 FROM messages r WHERE r.chat_id = c.id AND r.state = 'streaming') AS running ",
            $rest
        )
    };
}

#[derive(sqlx::FromRow)]
struct SummaryRow {
    id: String,
    title: String,
    created_at: i64,
    updated_at: i64,
    pinned: bool,
    running: bool,
}

impl From<SummaryRow> for ChatSummary {
    fn from(row: SummaryRow) -> Self {
        let SummaryRow {
            id,
            title,
            created_at,
            updated_at,
            pinned,
            running,
        } = row;
        ChatSummary {
            id,
            title,
            created_at,
            updated_at,
            pinned,
            running,
        }
    }
}

#[derive(sqlx::FromRow)]
struct ChatRow {
    #[sqlx(flatten)]
    summary: SummaryRow,
    head: Option<String>,
    draft: String,
    settings: String,
}

impl History {
    /// All chats that are not in the trash: pinned first, then by when something was last said, newest first.
    pub async fn chats(&self) -> Result<Vec<ChatSummary>> {
        let rows: Vec<SummaryRow> = sqlx::query_as(select_chats!(
            "FROM chats c WHERE c.deleted_at IS NULL ORDER BY c.pinned DESC, c.updated_at DESC, c.id DESC"
        ))
        .fetch_all(&self.readers)
        .await?;
        Ok(rows.into_iter().map(ChatSummary::from).collect())
    }

    /// How many chats, without those in the trash, a model was the last to answer.
    pub async fn chats_answered_by(&self, model: &str) -> Result<u32> {
        Ok(sqlx::query_scalar(
            "SELECT COUNT(*) FROM chats c WHERE c.deleted_at IS NULL AND ?1 =
                 (SELECT m.model FROM messages m WHERE m.chat_id = c.id AND m.role = 'assistant'
                  ORDER BY m.created_at DESC, m.id DESC LIMIT 1)",
        )
        .bind(model)
        .fetch_one(&self.readers)
        .await?)
    }

    /// A chat without its messages: they are left empty.
    pub async fn chat_head(&self, chat: &str) -> Result<(ChatView, Option<String>)> {
        let row: Option<ChatRow> = sqlx::query_as(select_chats!(
            ", c.head, c.draft, c.settings FROM chats c WHERE c.id = ? AND c.deleted_at IS NULL"
        ))
        .bind(chat)
        .fetch_optional(&self.readers)
        .await?;
        let row = row.ok_or(Error::NotFound("chat"))?;
        Ok((
            ChatView {
                summary: row.summary.into(),
                settings: from_json("setting", &row.settings)?,
                draft: from_json("draft", &row.draft)?,
                messages: Vec::new(),
            },
            row.head,
        ))
    }

    /// A chat with the branch that is looked at.
    pub async fn chat(&self, chat: &str) -> Result<ChatView> {
        let (mut view, head) = self.chat_head(chat).await?;
        if let Some(head) = head {
            view.messages = self.branch(&head).await?;
        }
        Ok(view)
    }

    /// A new, empty chat.
    pub async fn create_chat(&self, settings: &ChatSettings) -> Result<ChatView> {
        let (id, now) = (new_id(), now());
        let mut transaction = self.write().await?;
        sqlx::query("INSERT INTO chats (id, created_at, updated_at, settings) VALUES (?1, ?2, ?2, ?3)")
            .bind(&id)
            .bind(now)
            .bind(to_json(settings))
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        self.chat(&id).await
    }

    /// Gives a chat another title.
    pub async fn rename_chat(&self, chat: &str, title: &str) -> Result<()> {
        let update = sqlx::query("UPDATE chats SET title = ?2 WHERE id = ?1 AND deleted_at IS NULL")
            .bind(chat)
            .bind(title);
        self.change_chat(update).await
    }

    /// Keeps a chat at the top, or not.
    pub async fn pin_chat(&self, chat: &str, pinned: bool) -> Result<()> {
        let update = sqlx::query("UPDATE chats SET pinned = ?2 WHERE id = ?1 AND deleted_at IS NULL")
            .bind(chat)
            .bind(pinned);
        self.change_chat(update).await
    }

    /// What the chat remembers for its next turn.
    pub async fn set_chat_settings(&self, chat: &str, settings: &ChatSettings) -> Result<()> {
        let update = sqlx::query("UPDATE chats SET settings = ?2 WHERE id = ?1 AND deleted_at IS NULL")
            .bind(chat)
            .bind(to_json(settings));
        self.change_chat(update).await
    }

    /// What was written and not sent.
    pub async fn set_draft(&self, chat: &str, draft: &[Content]) -> Result<()> {
        let update = sqlx::query("UPDATE chats SET draft = ?2 WHERE id = ?1 AND deleted_at IS NULL")
            .bind(chat)
            .bind(to_json(&draft));
        self.change_chat(update).await
    }

    /// Puts a chat into the trash; doing it twice changes nothing.
    pub async fn trash_chat(&self, chat: &str) -> Result<()> {
        let update = sqlx::query("UPDATE chats SET deleted_at = coalesce(deleted_at, ?2) WHERE id = ?1")
            .bind(chat)
            .bind(now());
        self.change_chat(update).await
    }

    /// Takes a chat out of the trash; doing it twice changes nothing.
    pub async fn restore_chat(&self, chat: &str) -> Result<ChatSummary> {
        self.change_chat(sqlx::query("UPDATE chats SET deleted_at = NULL WHERE id = ?1").bind(chat))
            .await?;
        Ok(self.chat_head(chat).await?.0.summary)
    }

    /// Deletes for good what was put into the trash before this time; returns how many chats.
    pub async fn purge_trash(&self, before: i64) -> Result<u64> {
        let mut transaction = self.write().await?;
        let purged = sqlx::query("DELETE FROM chats WHERE deleted_at < ?")
            .bind(before)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(purged.rows_affected())
    }

    async fn change_chat(&self, update: sqlx::query::Query<'_, sqlx::Sqlite, sqlx::sqlite::SqliteArguments>) -> Result<()> {
        let mut transaction = self.write().await?;
        if update.execute(&mut *transaction).await?.rows_affected() == 0 {
            return Err(Error::NotFound("chat"));
        }
        Ok(transaction.commit().await?)
    }
}
