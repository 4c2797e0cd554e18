//! All chats together: archive, trash, search, export and import, backups.

mod data;
pub(crate) mod import_export;
pub(crate) mod open;

use std::sync::Arc;

use api::{ChatSummary, HistoryHits, HistoryQuery, RepairedHistory, TrashedChat};
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
    /// The repair of the history, if it was found damaged.
    repaired: Option<RepairedHistory>,
}

impl Library {
    pub(crate) fn new(core: Arc<Core>, files: Files, repaired: Option<RepairedHistory>) -> Self {
        Self { core, files, repaired }
    }

    /// Puts a chat away, where it is found and no longer in the way, or takes it back.
    pub async fn archive(&self, chat: &str, archived: bool) -> Result<()> {
        self.core.history.archive_chat(chat, archived).await?;
        self.core.changed();
        Ok(())
    }

    /// The chats in the trash, the latest first.
    pub async fn trash(&self) -> Result<Vec<TrashedChat>> {
        let trashed = self.core.history.trashed_chats().await?;
        let until = |(chat, at)| TrashedChat {
            chat,
            deleted_for_good_at: at + TRASH_LASTS,
        };
        Ok(trashed.into_iter().map(until).collect())
    }

    /// Deletes a chat of the trash for good.
    pub async fn purge(&self, chat: &str) -> Result<()> {
        self.core.history.purge_chat(chat).await?;
        self.core.changed();
        Ok(())
    }

    /// Stops what runs in a chat and puts it into the trash, where it can be restored for 30 days.
    pub async fn delete(&self, chat: &str) -> Result<()> {
        self.core.stop_and_wait(|answer| answer.chat == chat).await;
        for foreign in self.core.history.running().await? {
            if foreign.chat == chat {
                self.core.history.request_stop(&foreign.id).await?;
            }
        }
        self.core.history.trash_chat(chat).await?;
        self.core.changed();
        Ok(())
    }

    /// Takes a chat out of the trash.
    pub async fn restore(&self, chat: &str) -> Result<ChatSummary> {
        let summary = self.core.history.restore_chat(chat).await?;
        self.core.changed();
        Ok(summary)
    }

    /// Searches titles, questions, answers and the names of attachments.
    pub async fn search(&self, query: &HistoryQuery) -> Result<HistoryHits> {
        Ok(self.core.history.search(query).await?)
    }
}
