//! Temporary chats: in memory with everything they hold, gone unless they are kept.

use protocol::Result;

use crate::Chat;

impl Chat {
    /// An empty list of chats in memory, with the same engine, models and settings. Nothing of a chat in it is written:
    /// no row, no draft, no image, no title. It is gone when the last clone is dropped.
    ///
    /// # Errors
    /// `Storage` if SQLite has no memory.
    pub async fn temporary(&self) -> Result<Self> {
        Ok(Self::of(self.core.in_memory().await?))
    }

    /// True if this is the id of a chat or a message here.
    pub async fn holds(&self, id: &str) -> Result<bool> {
        Ok(self.core.history.holds(id).await?)
    }

    /// True if a message or a draft here may show this image, or quote this file.
    pub async fn has_attachment(&self, attachment: &str) -> bool {
        self.core.history.attachment(attachment).await.is_ok()
    }

    /// Keeps the chats of a temporary one among these, with their ids.
    ///
    /// # Errors
    /// `Busy` while an answer is being written there, `Storage` if the file cannot be written; nothing is kept then.
    pub async fn keep(&self, temporary: &Self) -> Result<()> {
        if !temporary.core.live().is_empty() {
            return Err(history::Error::Busy.into());
        }
        self.core
            .change(temporary.core.history.copy_into(&self.core.history))
            .await
    }

    /// Ends a temporary chat: its answer stops, its rows are gone, and so is what the engine remembers of it.
    pub async fn discard(self) {
        self.core.stop_and_wait(|_| true).await;
        self.core.history.close().await;
        let freed = match self.core.engine.local() {
            Some(engine) => engine.free_caches().await,
            None => Ok(()),
        };
        if let Err(error) = freed {
            tracing::warn!(%error, "the prefix cache could not be freed");
        }
    }
}
