//! The table `chats`: the sidebar, what a chat remembers, the trash.

use api::{ChatSettings, ChatSummary, ChatView, ScrollPlace};
use protocol::Content;

use crate::chats::cuts::put_back;
use crate::json::{from_json, lossy, readable, to_json};
use crate::stamp::new_id;
use crate::{now, Error, History, Result};

/// The columns of a [`ChatSummary`] of the chats that the rest of the query names `c`.
macro_rules! select_chats {
    ($rest:literal) => {
        concat!(
            "SELECT c.id, c.title, c.created_at, c.updated_at, c.pinned, c.revision, c.unread, c.archived_at IS NOT NULL AS archived,
                    (SELECT f.id FROM projects f WHERE f.id = c.project_id AND f.deleted_at IS NULL) AS project,
                    EXISTS (SELECT 1 FROM messages r WHERE r.chat_id = c.id AND r.state = 'streaming') AS running ",
            $rest
        )
    };
}

struct SummaryRow {
    id: String,
    title: Vec<u8>,
    created_at: i64,
    updated_at: i64,
    pinned: bool,
    revision: i64,
    unread: bool,
    archived: bool,
    project: Option<String>,
    running: bool,
}

from_row!(SummaryRow: id, title, created_at, updated_at, pinned, revision, unread, archived, project, running);

impl From<SummaryRow> for ChatSummary {
    fn from(row: SummaryRow) -> Self {
        let SummaryRow {
            id,
            title,
            created_at,
            updated_at,
            pinned,
            revision,
            unread,
            archived,
            project,
            running,
        } = row;
        ChatSummary {
            id,
            title: lossy(title),
            created_at,
            updated_at,
            pinned,
            revision,
            unread,
            running,
            archived,
            project,
        }
    }
}

struct TrashedRow {
    summary: SummaryRow,
    deleted_at: i64,
}

from_row!(TrashedRow: deleted_at; summary);

struct ChatRow {
    summary: SummaryRow,
    head: Option<String>,
    draft: Vec<u8>,
    settings: Vec<u8>,
    scroll_place: Option<String>,
}

from_row!(ChatRow: head, draft, settings, scroll_place; summary);

impl History {
    /// All chats that are not in the trash, archived ones among them: pinned first, then by when something was last
    /// said, newest first.
    pub async fn chats(&self) -> Result<Vec<ChatSummary>> {
        let rows: Vec<SummaryRow> = sqlx::query_as(select_chats!(
            "FROM chats c WHERE c.deleted_at IS NULL ORDER BY c.pinned DESC, c.updated_at DESC, c.id DESC"
        ))
        .fetch_all(&self.readers)
        .await?;
        Ok(rows.into_iter().map(ChatSummary::from).collect())
    }

    /// The titles of the chats, without those in the trash, that a model was the last to answer, the newest first.
    pub async fn chats_answered_by(&self, model: &str) -> Result<Vec<String>> {
        let titles: Vec<Vec<u8>> = sqlx::query_scalar(
            "SELECT c.title FROM chats c WHERE c.deleted_at IS NULL AND ?1 =
                 (SELECT m.model FROM messages m WHERE m.chat_id = c.id AND m.role = 'assistant'
                  ORDER BY m.created_at DESC, m.id DESC LIMIT 1)
             ORDER BY c.updated_at DESC, c.id DESC",
        )
        .bind(model)
        .fetch_all(&self.readers)
        .await?;
        Ok(titles.into_iter().map(lossy).collect())
    }

    /// A chat without its messages: they are left empty.
    pub async fn chat_head(&self, chat: &str) -> Result<(ChatView, Option<String>)> {
        let row: Option<ChatRow> = sqlx::query_as(select_chats!(
            ", c.head, c.draft, c.settings, c.scroll_place FROM chats c WHERE c.id = ? AND c.deleted_at IS NULL"
        ))
        .bind(chat)
        .fetch_optional(&self.readers)
        .await?;
        let row = row.ok_or(Error::NotFound("chat"))?;
        Ok((
            ChatView {
                summary: row.summary.into(),
                settings: readable("setting", row.settings).unwrap_or_default(),
                draft: readable("draft", row.draft).unwrap_or_default(),
                // A broken scroll position must not keep the chat from being opened.
                scroll_place: row
                    .scroll_place
                    .as_deref()
                    .and_then(|json| from_json("place", json).ok()),
                messages: Vec::new(),
                beside: Vec::new(),
            },
            row.head,
        ))
    }

    /// A chat with the branch that is looked at.
    pub async fn chat(&self, chat: &str) -> Result<ChatView> {
        let (mut view, head) = self.chat_head(chat).await?;
        if let Some(head) = head {
            view.messages = self.branch(&head).await?;
            view.beside = self.streaming_beside(&head).await?;
        }
        Ok(view)
    }

    /// [`History::chat`] with only the newest `most` messages of its branch, counted from its scroll position.
    /// [`History::messages_before`] reads the messages before them.
    pub async fn newest_of_chat(&self, chat: &str, most: u32) -> Result<ChatView> {
        let (mut view, head) = self.chat_head(chat).await?;
        if let Some(head) = head {
            let after = match &view.scroll_place {
                Some(place) => self.distance(&head, &place.message).await?.unwrap_or_default(),
                None => 0,
            };
            view.messages = self.end_of_branch(&head, Some(after.saturating_add(most))).await?;
            view.beside = self.streaming_beside(&head).await?;
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

    /// Gives a chat this title if it still has that one. Returns whether it had.
    pub async fn replace_title(&self, chat: &str, before: &str, title: &str) -> Result<bool> {
        let update = sqlx::query("UPDATE chats SET title = ?3 WHERE id = ?1 AND title = ?2 AND deleted_at IS NULL")
            .bind(chat)
            .bind(before)
            .bind(title);
        match self.change_chat(update).await {
            Err(Error::NotFound(_)) => Ok(false),
            changed => changed.map(|()| true),
        }
    }

    /// Notes that a window shows the chat, with all that was answered. Returns whether something was unread.
    pub async fn mark_read(&self, chat: &str) -> Result<bool> {
        let update = sqlx::query("UPDATE chats SET unread = 0 WHERE id = ?1 AND unread").bind(chat);
        match self.change_chat(update).await {
            Err(Error::NotFound(_)) => Ok(false),
            changed => changed.map(|()| true),
        }
    }

    /// Remembers where the chat was scrolled to; `None`: its end.
    pub async fn set_scroll_place(&self, chat: &str, place: Option<&ScrollPlace>) -> Result<()> {
        let update = sqlx::query("UPDATE chats SET scroll_place = ?2 WHERE id = ?1 AND deleted_at IS NULL")
            .bind(chat)
            .bind(place.map(to_json));
        self.change_chat(update).await
    }

    /// Keeps a chat at the top, or not.
    pub async fn pin_chat(&self, chat: &str, pinned: bool) -> Result<()> {
        let update = sqlx::query("UPDATE chats SET pinned = ?2 WHERE id = ?1 AND deleted_at IS NULL")
            .bind(chat)
            .bind(pinned);
        self.change_chat(update).await
    }

    /// Puts a chat away or takes it back; doing it twice changes nothing.
    pub async fn archive_chat(&self, chat: &str, archived: bool) -> Result<()> {
        let update = sqlx::query(
            "UPDATE chats SET archived_at = CASE WHEN ?2 THEN coalesce(archived_at, ?3) END WHERE id = ?1 AND deleted_at IS NULL",
        )
        .bind(chat)
        .bind(archived)
        .bind(now());
        self.change_chat(update).await
    }

    /// The chats in the trash with the times at which they were put there, the latest first.
    pub async fn trashed_chats(&self) -> Result<Vec<(ChatSummary, i64)>> {
        let rows: Vec<TrashedRow> = sqlx::query_as(select_chats!(
            ", c.deleted_at FROM chats c WHERE c.deleted_at IS NOT NULL ORDER BY c.deleted_at DESC, c.id DESC"
        ))
        .fetch_all(&self.readers)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| (row.summary.into(), row.deleted_at))
            .collect())
    }

    /// Deletes a chat for good that lies in the trash.
    pub async fn purge_chat(&self, chat: &str) -> Result<()> {
        self.change_chat(sqlx::query("DELETE FROM chats WHERE id = ? AND deleted_at IS NOT NULL").bind(chat))
            .await
    }

    /// Stores the settings of a chat, which hold from its next turn on.
    pub async fn set_chat_settings(&self, chat: &str, settings: &ChatSettings) -> Result<()> {
        let update = sqlx::query("UPDATE chats SET settings = ?2 WHERE id = ?1 AND deleted_at IS NULL")
            .bind(chat)
            .bind(to_json(settings));
        self.change_chat(update).await
    }

    /// Stores the unsent question.
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

    /// Takes a chat out of the trash; doing it twice changes nothing. Messages that were deleted out of a chat go back
    /// to their place in it, or become a chat of their own if that place is gone. Returns the chat that they are in.
    pub async fn restore_chat(&self, chat: &str) -> Result<ChatSummary> {
        let mut transaction = self.write().await?;
        let restored = match put_back(&mut transaction, chat).await? {
            Some(origin) => origin,
            None => {
                let restored = sqlx::query("UPDATE chats SET deleted_at = NULL, cut_from = NULL WHERE id = ?1")
                    .bind(chat)
                    .execute(&mut *transaction)
                    .await?;
                if restored.rows_affected() == 0 {
                    return Err(Error::NotFound("chat"));
                }
                chat.to_owned()
            }
        };
        transaction.commit().await?;
        Ok(self.chat_head(&restored).await?.0.summary)
    }

    /// Deletes for good what was put into the trash before this time, projects and their files among it; returns how
    /// many chats.
    pub async fn purge_trash(&self, before: i64) -> Result<u64> {
        let mut transaction = self.write().await?;
        for delete in [
            "DELETE FROM projects WHERE deleted_at < ?",
            "DELETE FROM project_files WHERE removed_at < ?",
        ] {
            sqlx::query(delete).bind(before).execute(&mut *transaction).await?;
        }
        let purged = sqlx::query("DELETE FROM chats WHERE deleted_at < ?")
            .bind(before)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(purged.rows_affected())
    }

    /// How many chats there are, those in the archive and in the trash among them.
    pub async fn count_chats(&self) -> Result<u32> {
        Ok(sqlx::query_scalar("SELECT COUNT(*) FROM chats")
            .fetch_one(&self.readers)
            .await?)
    }

    /// Deletes every chat for good, those in the archive and in the trash among them, and writes the file anew, so that
    /// nothing of them is left in it. Projects and settings stay. Returns how many chats there were. Fails with
    /// [`Error::Busy`] while an answer is being written.
    pub async fn delete_all_chats(&self) -> Result<u64> {
        let mut transaction = self.write().await?;
        let running: bool = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM messages WHERE state = 'streaming')")
            .fetch_one(&mut *transaction)
            .await?;
        if running {
            return Err(Error::Busy);
        }
        let deleted = sqlx::query("DELETE FROM chats").execute(&mut *transaction).await?;
        transaction.commit().await?;
        self.rewrite().await?;
        Ok(deleted.rows_affected())
    }

    pub(crate) async fn change_chat(
        &self,
        update: sqlx::query::Query<'_, sqlx::Sqlite, sqlx::sqlite::SqliteArguments>,
    ) -> Result<()> {
        let mut transaction = self.write().await?;
        if update.execute(&mut *transaction).await?.rows_affected() == 0 {
            return Err(Error::NotFound("chat"));
        }
        Ok(transaction.commit().await?)
    }
}
