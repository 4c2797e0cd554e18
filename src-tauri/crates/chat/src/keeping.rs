//! The archive, the trash and folders; backups, and what is done about a history that is damaged.

use std::path::{Path, PathBuf};
use std::sync::Weak;
use std::time::Duration;

use history::{now, History, Repaired};
use protocol::{ChatSettings, Content, DataUse, Folder, HistoryBackup, HistoryState, RepairedHistory, Result, TrashedChat};
use tokio::time::sleep;

use crate::{Chat, Inner, TRASH_LASTS};

/// How old the newest backup may become.
const BACKUP_EVERY: Duration = Duration::from_secs(24 * 3600);
/// How often it is looked whether one is due; the first time well after the start, which it must not slow down.
const LOOK_EVERY: Duration = Duration::from_secs(3600);
/// How long after the start it is looked for the first time.
const FIRST_LOOK: Duration = Duration::from_secs(60);

impl Chat {
    /// Puts a chat away, where it is found and no longer in the way, or takes it back.
    pub async fn archive(&self, chat: &str, archived: bool) -> Result<()> {
        self.0.history.archive_chat(chat, archived).await?;
        self.0.changed();
        Ok(())
    }

    /// The chats in the trash, the latest first.
    pub async fn trash(&self) -> Result<Vec<TrashedChat>> {
        let trashed = self.0.history.trashed_chats().await?;
        let until = |(chat, at)| TrashedChat {
            chat,
            deleted_for_good_at: at + TRASH_LASTS,
        };
        Ok(trashed.into_iter().map(until).collect())
    }

    /// Deletes a chat of the trash for good.
    pub async fn purge(&self, chat: &str) -> Result<()> {
        self.0.history.purge_chat(chat).await?;
        self.0.changed();
        Ok(())
    }

    /// All folders, by their names.
    pub async fn folders(&self) -> Result<Vec<Folder>> {
        Ok(self.0.history.folders().await?)
    }

    /// A new folder without chats.
    pub async fn create_folder(&self, name: &str) -> Result<Folder> {
        let folder = self.0.history.create_folder(name).await?;
        self.0.changed();
        Ok(folder)
    }

    /// Gives a folder another name and other instructions, which hold from the next answer on.
    pub async fn change_folder(&self, folder: &str, name: &str, system_prompt: &str) -> Result<()> {
        self.0.history.change_folder(folder, name, system_prompt).await?;
        self.0.changed();
        Ok(())
    }

    /// Puts a file that was added ([`Chat::add_file`]) into a folder; from the next answer on every chat in it takes its text along. One whose
    /// text is in the folder already gets this name and this part.
    ///
    /// # Errors
    /// `BadRequest` for what is no file, and for more files or more text than a folder may hold, with a sentence; `NotFound` for the folder or the text.
    pub async fn put_folder_file(&self, folder: &str, file: &Content) -> Result<()> {
        self.0.history.put_folder_file(folder, file).await?;
        self.0.changed();
        Ok(())
    }

    /// Takes a file out of a folder; [`Chat::put_folder_file`] brings it back to its place.
    ///
    /// # Errors
    /// `NotFound` if it is not in the folder.
    pub async fn remove_folder_file(&self, folder: &str, attachment: &str) -> Result<()> {
        self.0.history.remove_folder_file(folder, attachment).await?;
        self.0.changed();
        Ok(())
    }

    /// Deletes a folder; its chats stay, outside of it.
    pub async fn delete_folder(&self, folder: &str) -> Result<()> {
        self.0.history.delete_folder(folder).await?;
        self.0.changed();
        Ok(())
    }

    /// Takes back that a folder was deleted.
    pub async fn restore_folder(&self, folder: &str) -> Result<()> {
        self.0.history.restore_folder(folder).await?;
        self.0.changed();
        Ok(())
    }

    /// Puts a chat into a folder, or into none.
    pub async fn move_to_folder(&self, chat: &str, folder: Option<&str>) -> Result<()> {
        self.0.history.move_chat(chat, folder).await?;
        self.0.changed();
        // The folder's instructions and files stand before all the rest.
        self.open_chat(chat).await.map(drop)
    }

    /// Makes a backup now.
    ///
    /// # Errors
    /// `Storage` if it cannot be written, or does not pass SQLite's check.
    pub async fn back_up_now(&self) -> Result<()> {
        self.0.history.back_up(Duration::ZERO).await?;
        Ok(())
    }

    /// What the chats take on the disk, and their backups; the caller adds what it knows of the models.
    pub async fn data_use(&self) -> Result<DataUse> {
        let path = self.0.history.path();
        let backup = |backup: history::Backup| HistoryBackup {
            made_at: backup.made_at,
            bytes: backup.bytes,
        };
        Ok(DataUse {
            folder: path.parent().unwrap_or(path).display().to_string(),
            chats: self.0.history.count_chats().await?,
            history: self.0.history.bytes(),
            attachments: self.attachments_size().await?,
            models: 0,
            backups: history::backups(path).into_iter().map(backup).collect(),
        })
    }

    /// Deletes all chats for good, those in the archive and in the trash among them, with their pictures, and the backups if that is asked
    /// for (`backups`). Answers that are being written are stopped first. Folders and settings stay.
    ///
    /// # Errors
    /// `Busy` if an answer could not be stopped, `Storage` if the file cannot be written.
    pub async fn delete_all_chats(&self, backups: bool) -> Result<()> {
        self.stop_all().await?;
        self.0.history.delete_all_chats().await?;
        // What waits in the draft of a new chat names its pictures and keeps them.
        self.0.history.remove_unlinked_attachments(now()).await?;
        if backups {
            history::remove_backups(self.0.history.path());
        }
        self.0.changed();
        Ok(())
    }

    /// How the history was opened.
    pub fn history_state(&self) -> HistoryState {
        HistoryState {
            read_only: self.0.history.is_read_only(),
            repaired: self.0.repaired.clone(),
        }
    }
}

/// Puts the instructions of a folder before those that a chat in it has itself; returns the folder's files.
pub(crate) fn take_from_folder(folder: Option<Folder>, settings: &mut ChatSettings) -> Vec<Content> {
    let (instructions, files) = folder.map(|folder| (folder.system_prompt, folder.files)).unwrap_or_default();
    let both = [instructions, std::mem::take(&mut settings.system_prompt)];
    let said: Vec<&str> = both.iter().map(String::as_str).filter(|text| !text.trim().is_empty()).collect();
    settings.system_prompt = said.join("\n\n");
    files
}

/// Opens a history file; one that is damaged is repaired first, if anything of it can be read.
pub(crate) async fn open_history(database: &Path) -> Result<(History, Option<RepairedHistory>)> {
    let mut repaired = history::repair_if_suspect(database).await?;
    let opened = match History::open(database).await {
        Err(error) if repaired.is_none() && error.is_damage() => {
            tracing::warn!(%error, "the history is repaired");
            match history::repair(database).await {
                Ok(done) => repaired = Some(done),
                Err(reason) => {
                    tracing::warn!(%reason, "the history could not be repaired");
                    return Err(error.into());
                }
            }
            History::open(database).await
        }
        opened => opened,
    };
    let told = |done: Repaired| RepairedHistory {
        set_aside: done.set_aside.display().to_string(),
        chats: done.chats,
        from_backup: done.from_backup,
    };
    Ok((opened?, repaired.map(told)))
}

/// Moves a history file that nobody has open out of the way, where it is kept; returns where that is.
///
/// # Errors
/// `Storage` if it cannot be moved.
pub fn set_history_aside(database: &Path) -> Result<PathBuf> {
    Ok(history::set_aside(database)?)
}

/// Writes all that can be read of a history to a copy beside it, for [`Chat::open_read_only`]; returns the copy.
///
/// # Errors
/// `Storage` if nothing can be read, or the copy cannot be written.
pub async fn readable_history(database: &Path) -> Result<PathBuf> {
    Ok(history::readable_copy(database).await?)
}

/// Makes a backup a day, as long as somebody uses the chats. A file that turns out to be damaged is repaired at the next start.
pub(crate) async fn back_up_daily(inner: Weak<Inner>) {
    sleep(FIRST_LOOK).await;
    loop {
        let Some(inner) = inner.upgrade() else { return };
        if let Err(error) = inner.history.back_up(BACKUP_EVERY).await {
            tracing::warn!(%error, "no backup of the history was made");
            if error.is_damage() {
                history::suspect(inner.history.path());
            }
        }
        drop(inner);
        sleep(LOOK_EVERY).await;
    }
}
