//! All chats together: archive, trash, search, export and import, backups.

mod chat_texts;
mod damage;
mod data;
pub(crate) mod import_export;
mod imported_images;
pub(crate) mod open;

use std::sync::Arc;

use api::{ChatSummary, HistoryHits, HistoryQuery, TrashedChat};
use protocol::Result;

use crate::core::Core;
use crate::files::Files;

/// How long a chat stays in the trash, in milliseconds.
pub(crate) const TRASH_LASTS: i64 = 30 * 24 * 3600 * 1000;

/// All chats together: archive, trash, search, export and import, backups.
#[derive(Clone)]
pub struct Library {
    core: Arc<Core>,
    files: Files,
}

impl Library {
    pub(crate) fn new(core: Arc<Core>, files: Files) -> Self {
        Self { core, files }
    }

    /// Puts a chat away, where it is found and no longer in the way, or takes it back.
    pub async fn archive(&self, chat: &str, archived: bool) -> Result<()> {
        self.core.change(self.core.history.archive_chat(chat, archived)).await
    }

    /// The chats in the trash, and the messages that were deleted out of chats, the latest first.
    pub async fn trash(&self) -> Result<Vec<TrashedChat>> {
        let trashed = self.core.history.trashed_chats().await?;
        let mut messages = self.core.history.deleted_messages().await?;
        let until = |(chat, at): (ChatSummary, i64)| TrashedChat {
            messages: messages.remove(&chat.id),
            chat,
            deleted_for_good_at: at + TRASH_LASTS,
        };
        Ok(trashed.into_iter().map(until).collect())
    }

    /// Deletes a chat of the trash for good.
    pub async fn purge(&self, chat: &str) -> Result<()> {
        self.core.change(self.core.history.purge_chat(chat)).await
    }

    /// Stops what runs in a chat and puts it into the trash, where it can be restored for 30 days.
    pub async fn delete(&self, chat: &str) -> Result<()> {
        self.core.stop_and_wait(|answer| answer.chat == chat).await;
        self.core.stop_foreign(|of| of == chat).await?;
        self.core.change(self.core.history.trash_chat(chat)).await
    }

    /// Takes a chat out of the trash.
    pub async fn restore(&self, chat: &str) -> Result<ChatSummary> {
        self.core.change(self.core.history.restore_chat(chat)).await
    }

    /// Searches titles, questions, answers and the names of attachments.
    pub async fn search(&self, query: &HistoryQuery) -> Result<HistoryHits> {
        Ok(self.core.history.search(query).await?)
    }
}
