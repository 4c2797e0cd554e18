//! The table `chats`: the sidebar, what a chat remembers, the trash.

use api::{ChatSettings, ChatSummary, ChatView, ScrollPlace};
use protocol::Content;
use sqlx::sqlite::SqliteRow;
use sqlx::Row;

use crate::chats::cuts::put_back;
use crate::json::{from_json, lossy, readable, to_json};
use crate::stamp::new_id;
use crate::{now, Error, History, Result};

/// The columns of a [`ChatSummary`] of the chats that the rest of the query names `c`.
macro_rules! select_chats {
    ($rest:literal) => {
        concat!(
            "SELECT c.id, c.title, c.created_at, c.updated_at, c.pinned, c.revision, c.unread,
                    c.archived_at IS NOT NULL AS archived, c.draft <> '[]' AS has_draft,
                    (SELECT f.id FROM projects f WHERE f.id = c.project_id AND f.deleted_at IS NULL) AS project,
                    EXISTS (SELECT 1 FROM messages r WHERE r.chat_id = c.id AND r.state = 'streaming') AS running ",
            $rest
        )
    };
}

/// The chat of a row of [`select_chats`].
fn summary(row: &SqliteRow) -> sqlx::Result<ChatSummary> {
    Ok(ChatSummary {
        id: row.try_get("id")?,
        title: lossy(row.try_get("title")?),
        created_at: row.try_get("created_at")?,
        updated_at: row.try_get("updated_at")?,
        pinned: row.try_get("pinned")?,
        revision: row.try_get("revision")?,
        unread: row.try_get("unread")?,
        has_draft: row.try_get("has_draft")?,
        running: row.try_get("running")?,
        archived: row.try_get("archived")?,
        project: row.try_get("project")?,
    })
}

impl History {
    /// All chats that are not in the trash, archived ones among them: pinned first, then by when something was last
    /// said, newest first.
    pub async fn chats(&self) -> Result<Vec<ChatSummary>> {
        let sql = select_chats!(
            "FROM chats c WHERE c.deleted_at IS NULL ORDER BY c.pinned DESC, c.updated_at DESC, c.id DESC"
        );
        let rows = raw_rows!(&self.readers, sql).await?;
        Ok(rows.iter().map(summary).collect::<sqlx::Result<_>>()?)
    }

    /// The titles of the chats, without those in the trash, that a model was the last to answer, the newest first.
    pub async fn chats_answered_by(&self, model: &str) -> Result<Vec<String>> {
        let titles: Vec<Vec<u8>> = values!(
            &self.readers,
            "SELECT c.title FROM chats c WHERE c.deleted_at IS NULL AND ?1 =
                 (SELECT m.model FROM messages m WHERE m.chat_id = c.id AND m.role = 'assistant'
                  ORDER BY m.created_at DESC, m.id DESC LIMIT 1)
             ORDER BY c.updated_at DESC, c.id DESC";
            model
        )
        .await?;
        Ok(titles.into_iter().map(lossy).collect())
    }

    /// The model of the chat in which something was said last. A model that failed is not used on.
    pub async fn last_model(&self) -> Result<Option<String>> {
        let sql = "SELECT c.id FROM chats c JOIN messages m ON m.id = c.head
                    WHERE c.deleted_at IS NULL AND m.state <> 'failed'
                    ORDER BY c.updated_at DESC, c.id DESC LIMIT 1";
        let last: Option<String> = value!(&self.readers, sql).await?;
        match last {
            Some(chat) => Ok(self.chat_head(&chat).await?.0.settings.model),
            None => Ok(None),
        }
    }

    /// A chat without its messages: they are left empty. One whose settings name no model keeps the model of its first
    /// answer, whatever the default model becomes; answers of other programs were not asked with settings.
    pub async fn chat_head(&self, chat: &str) -> Result<(ChatView, Option<String>)> {
        let sql = select_chats!(
            ", c.head, c.draft, c.settings, c.scroll_place,
               (SELECT m.model FROM messages m WHERE m.chat_id = c.id AND m.settings IS NOT NULL
                 ORDER BY m.created_at, m.id LIMIT 1) AS first_model
             FROM chats c WHERE c.id = ? AND c.deleted_at IS NULL"
        );
        let row = raw_rows!(&self.readers, sql; chat).await?.pop();
        let row = row.ok_or(Error::NotFound("chat"))?;
        let scroll_place: Option<String> = row.try_get("scroll_place")?;
        let settings: ChatSettings = readable("setting", row.try_get("settings")?).unwrap_or_default();
        let first_model: Option<String> = row.try_get("first_model")?;
        let view = ChatView {
            summary: summary(&row)?,
            settings: ChatSettings {
                model: settings.model.or(first_model),
                ..settings
            },
            draft: readable("draft", row.try_get("draft")?).unwrap_or_default(),
            // A broken scroll position must not keep the chat from being opened.
            scroll_place: scroll_place.and_then(|json| from_json("place", &json).ok()),
            messages: Vec::new(),
            beside: Vec::new(),
        };
        Ok((view, row.try_get("head")?))
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
        let sql = "INSERT INTO chats (id, created_at, updated_at, settings) VALUES (?1, ?2, ?2, ?3)";
        run!(&mut transaction, sql; &id, now, to_json(settings)).await?;
        transaction.commit().await?;
        self.chat(&id).await
    }

    /// Gives a chat another title.
    pub async fn rename_chat(&self, chat: &str, title: &str) -> Result<()> {
        let sql = "UPDATE chats SET title = ?2 WHERE id = ?1 AND deleted_at IS NULL";
        update!(self, "chat", sql; chat, title).await
    }

    /// Gives a chat this title if it still has that one. Returns whether it had.
    pub async fn replace_title(&self, chat: &str, before: &str, title: &str) -> Result<bool> {
        let sql = "UPDATE chats SET title = ?3 WHERE id = ?1 AND title = ?2 AND deleted_at IS NULL";
        was_there(update!(self, "chat", sql; chat, before, title).await)
    }

    /// Notes that a window shows the chat, with all that was answered. Returns whether something was unread.
    pub async fn mark_read(&self, chat: &str) -> Result<bool> {
        was_there(update!(self, "chat", "UPDATE chats SET unread = 0 WHERE id = ?1 AND unread"; chat).await)
    }

    /// Remembers where the chat was scrolled to; `None`: its end.
    pub async fn set_scroll_place(&self, chat: &str, place: Option<&ScrollPlace>) -> Result<()> {
        let sql = "UPDATE chats SET scroll_place = ?2 WHERE id = ?1 AND deleted_at IS NULL";
        update!(self, "chat", sql; chat, place.map(to_json)).await
    }

    /// Keeps a chat at the top, or not.
    pub async fn pin_chat(&self, chat: &str, pinned: bool) -> Result<()> {
        let sql = "UPDATE chats SET pinned = ?2 WHERE id = ?1 AND deleted_at IS NULL";
        update!(self, "chat", sql; chat, pinned).await
    }

    /// Puts a chat away or takes it back; doing it twice changes nothing.
    pub async fn archive_chat(&self, chat: &str, archived: bool) -> Result<()> {
        let sql = "UPDATE chats SET archived_at = CASE WHEN ?2 THEN coalesce(archived_at, ?3) END
                    WHERE id = ?1 AND deleted_at IS NULL";
        update!(self, "chat", sql; chat, archived, now()).await
    }

    /// The chats in the trash with the times at which they were put there, the latest first.
    pub async fn trashed_chats(&self) -> Result<Vec<(ChatSummary, i64)>> {
        let sql = select_chats!(
            ", c.deleted_at FROM chats c WHERE c.deleted_at IS NOT NULL ORDER BY c.deleted_at DESC, c.id DESC"
        );
        let rows = raw_rows!(&self.readers, sql).await?;
        let trashed = |row: &SqliteRow| Ok((summary(row)?, row.try_get("deleted_at")?));
        Ok(rows.iter().map(trashed).collect::<sqlx::Result<_>>()?)
    }

    /// Deletes a chat for good that lies in the trash.
    pub async fn purge_chat(&self, chat: &str) -> Result<()> {
        update!(self, "chat", "DELETE FROM chats WHERE id = ? AND deleted_at IS NOT NULL"; chat).await
    }

    /// Stores the settings of a chat, which hold from its next turn on.
    pub async fn set_chat_settings(&self, chat: &str, settings: &ChatSettings) -> Result<()> {
        let sql = "UPDATE chats SET settings = ?2 WHERE id = ?1 AND deleted_at IS NULL";
        update!(self, "chat", sql; chat, to_json(settings)).await
    }

    /// Stores the unsent question.
    pub async fn set_draft(&self, chat: &str, draft: &[Content]) -> Result<()> {
        let sql = "UPDATE chats SET draft = ?2 WHERE id = ?1 AND deleted_at IS NULL";
        update!(self, "chat", sql; chat, to_json(&draft)).await
    }

    /// Puts a chat into the trash; doing it twice changes nothing.
    pub async fn trash_chat(&self, chat: &str) -> Result<()> {
        let sql = "UPDATE chats SET deleted_at = coalesce(deleted_at, ?2) WHERE id = ?1";
        update!(self, "chat", sql; chat, now()).await
    }

    /// Takes a chat out of the trash; doing it twice changes nothing. Messages that were deleted out of a chat go back
    /// to their place in it, or become a chat of their own if that place is gone. Returns the chat that they are in.
    pub async fn restore_chat(&self, chat: &str) -> Result<ChatSummary> {
        let mut transaction = self.write().await?;
        let restored = match put_back(&mut transaction, chat).await? {
            Some(origin) => origin,
            None => {
                let sql = "UPDATE chats SET deleted_at = NULL, cut_from = NULL WHERE id = ?1";
                change!(&mut transaction, "chat", sql; chat).await?;
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
        run!(&mut transaction, "DELETE FROM projects WHERE deleted_at < ?"; before).await?;
        run!(&mut transaction, "DELETE FROM project_files WHERE removed_at < ?"; before).await?;
        let purged = run!(&mut transaction, "DELETE FROM chats WHERE deleted_at < ?"; before).await?;
        transaction.commit().await?;
        Ok(purged)
    }

    /// How many chats there are, those in the archive and in the trash among them.
    pub async fn count_chats(&self) -> Result<u32> {
        the_value!(&self.readers, "SELECT COUNT(*) FROM chats").await
    }

    /// Deletes every chat for good, those in the archive and in the trash among them, and writes the file anew, so that
    /// nothing of them is left in it. Projects and settings stay. Returns how many chats there were. Fails with
    /// [`Error::Busy`] while an answer is being written.
    pub async fn delete_all_chats(&self) -> Result<u64> {
        let mut transaction = self.write().await?;
        let running = "SELECT EXISTS (SELECT 1 FROM messages WHERE state = 'streaming')";
        if the_value!(&mut *transaction, running).await? {
            return Err(Error::Busy);
        }
        let deleted = run!(&mut transaction, "DELETE FROM chats").await?;
        transaction.commit().await?;
        self.rewrite().await?;
        Ok(deleted)
    }
}

/// True if a change found its row.
fn was_there(changed: Result<()>) -> Result<bool> {
    match changed {
        Err(Error::NotFound(_)) => Ok(false),
        changed => changed.map(|()| true),
    }
}
