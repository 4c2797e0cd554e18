//! Copies of the history file beside it, made by SQLite itself while the app goes on, checked before they count, a few
//! of them.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlite::{options_of, privacy};
use sqlx::{ConnectOptions, Connection};
use tokio::task::spawn_blocking;

use crate::{now, Error, History, Result};

/// The folder of the copies, beside the file.
const FOLDER: &str = "backups";
/// The most copies that are kept.
const MOST: usize = 5;
/// The most bytes of all copies together; the newest is kept whatever its size.
const MOST_BYTES: u64 = 2 << 30;
/// The name of a copy while it is written.
const DRAFT: &str = "draft.sqlite";
/// Whoever writes a copy holds the lock of this file, so that two processes never write one draft.
const LOCK: &str = "lock";

impl History {
    /// Makes a copy if the newest one is older than this, and removes the oldest ones beyond the limits. Returns the
    /// new copy.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the copy does not pass SQLite's check, which means that the file would not either; no copy
    /// is removed then.
    pub async fn back_up(&self, older_than: Duration) -> Result<Option<PathBuf>> {
        let folder = self.path.with_file_name(FOLDER);
        privacy::make_folder(&folder).map_err(Error::Folder)?;
        let _turn = turn(folder.join(LOCK)).await?;
        let newest = backups(&self.path).first().map_or(i64::MIN, |backup| backup.made_at);
        let due = now().saturating_sub(older_than.as_millis() as i64);
        if newest > due {
            return Ok(None);
        }
        let draft = folder.join(DRAFT);
        remove(&draft);
        privacy::make_file(&draft);
        self.copy_to(&draft).await.inspect_err(|_| remove(&draft))?;
        let copy = folder.join(format!("history-{}.sqlite", now()));
        std::fs::rename(&draft, &copy).map_err(Error::from_file)?;
        remove_oldest(&self.path);
        Ok(Some(copy))
    }

    async fn copy_to(&self, draft: &Path) -> Result<()> {
        let mut file = options_of(&self.path).connect().await?;
        let copied = run!(&mut file, "VACUUM INTO ?"; draft.to_string_lossy()).await;
        file.close().await?;
        copied?;
        check(draft).await
    }
}

/// Waits until nobody else writes a copy; others wait as long as what is returned is there.
async fn turn(lock: PathBuf) -> Result<File> {
    let taken = spawn_blocking(move || {
        let file = files::append_private(&lock)?;
        match file.lock() {
            // A file system without locks, such as some network ones.
            Err(error) if error.kind() == ErrorKind::Unsupported => Ok(file),
            locked => locked.map(|()| file),
        }
    });
    taken
        .await
        .unwrap_or_else(|panicked| Err(std::io::Error::other(panicked)))
        .map_err(Error::from_file)
}

/// The outcome of a check of a file that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checked {
    /// Nothing is damaged.
    Sound,
    /// The search index was, and was made anew.
    Mended,
    /// More than the search index is.
    Damaged,
}

/// Fails unless SQLite finds the whole file sound.
pub(crate) async fn check(path: &Path) -> Result<()> {
    let mut file = options_of(path).connect().await?;
    let found = the_value!(&mut file, "PRAGMA integrity_check(1)").await;
    file.close().await?;
    let found: String = found?;
    match found.as_str() {
        "ok" => Ok(()),
        problem => {
            tracing::warn!(problem, "a history file is damaged");
            Err(Error::Damaged)
        }
    }
}

/// A copy of a history file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    /// Its path.
    pub path: PathBuf,
    /// When it was made, in Unix milliseconds.
    pub made_at: i64,
    /// How long it is.
    pub bytes: u64,
}

/// The copies of a history file, the newest first.
pub fn backups(history: &Path) -> Vec<Backup> {
    dated_files(&history.with_file_name(FOLDER), ("history-", ".sqlite"))
}

/// The files of a folder that have a time between these in their names, the newest first.
pub(crate) fn dated_files(folder: &Path, (before, after): (&str, &str)) -> Vec<Backup> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let dated = |entry: std::fs::DirEntry| {
        let name = entry.file_name();
        let made_at = name.to_str()?.strip_prefix(before)?.strip_suffix(after)?;
        Some(Backup {
            path: entry.path(),
            made_at: made_at.parse().ok()?,
            bytes: entry.metadata().ok()?.len(),
        })
    };
    let mut dated: Vec<Backup> = entries.flatten().filter_map(dated).collect();
    dated.sort_by_key(|file| std::cmp::Reverse(file.made_at));
    dated
}

/// Removes all copies of a history file.
pub fn remove_backups(history: &Path) {
    for backup in backups(history) {
        remove(&backup.path);
    }
}

fn remove_oldest(history: &Path) {
    let mut bytes = 0;
    for (place, backup) in backups(history).into_iter().enumerate() {
        bytes += backup.bytes;
        if place > 0 && (place >= MOST || bytes > MOST_BYTES) {
            remove(&backup.path);
        }
    }
}

/// Removes a database that nobody has open, with what SQLite puts beside it.
pub(crate) fn remove(path: &Path) {
    for file in privacy::with_companions(path) {
        if let Err(error) = files::found(std::fs::remove_file(&file)) {
            tracing::warn!(%error, "{} could not be removed", file.display());
        }
    }
}
