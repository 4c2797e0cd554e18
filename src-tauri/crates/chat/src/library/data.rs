//! The history as data on the disk: its backups, its size, and the deletion of all of it.

use std::path::PathBuf;
use std::time::Duration;

use api::{DataUse, HistoryBackup, HistoryState};
use history::now;
use protocol::Result;

use crate::library::Library;

impl Library {
    /// Makes a backup now.
    ///
    /// # Errors
    /// `Storage` if it cannot be written, or does not pass SQLite's check.
    pub async fn back_up_now(&self) -> Result<()> {
        self.core.history.back_up(Duration::ZERO).await?;
        Ok(())
    }

    /// The disk space of the chats and their backups; the caller adds that of the models.
    pub async fn data_use(&self) -> Result<DataUse> {
        let path = self.core.history.path();
        let backup = |backup: history::Backup| HistoryBackup {
            made_at: backup.made_at,
            bytes: backup.bytes,
        };
        Ok(DataUse {
            folder: path.parent().unwrap_or(path).display().to_string(),
            chats: self.core.history.count_chats().await?,
            history: self.core.history.bytes(),
            attachments: self.core.history.attachments_size().await?,
            models: 0,
            backups: history::backups(path).into_iter().map(backup).collect(),
            set_aside: history::files_set_aside(path).into_iter().map(backup).collect(),
        })
    }

    /// The folder of the images and files of chats and drafts, which exists once there is one.
    pub fn attachments_folder(&self) -> PathBuf {
        self.core.history.attachments_folder()
    }

    /// Deletes all chats for good, those in the archive and in the trash among them, with their images, and the
    /// backups and the damaged files that were set aside if that is asked for (`backups`). Answers that are being
    /// written are stopped first. Projects and settings stay.
    ///
    /// # Errors
    /// `Busy` if an answer could not be stopped, `Storage` if the file cannot be written.
    pub async fn delete_all_chats(&self, backups: bool) -> Result<()> {
        self.stop_all().await?;
        self.core.history.delete_all_chats().await?;
        // The draft of a new chat keeps the images that it names.
        self.core.history.remove_unlinked_attachments(now()).await?;
        let path = self.core.history.path();
        history::remove_copies(path);
        if backups {
            history::remove_backups(path);
            history::remove_set_aside(path);
        }
        self.core.changed();
        Ok(())
    }

    /// How the history was opened.
    pub fn history_state(&self) -> HistoryState {
        HistoryState {
            read_only: self.core.history.is_read_only(),
        }
    }

    /// Ends all answers, whichever process writes them, and waits a while for those of this one.
    async fn stop_all(&self) -> Result<()> {
        self.core.stop_and_wait(|_| true).await;
        self.core.mark_interrupted().await?;
        self.core.stop_foreign(|_| true).await
    }
}
