//! A folder that is renamed before it is deleted, so that a crash in between leaves no half model in any list.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cache::{entries, Lock};
use crate::error::Error;

/// The prefix of a folder's name before it is deleted. The next removal deletes those that a crash left.
pub const TRASH_PREFIX: &str = ".ponder-removed-";

/// A folder that is about to be deleted, and the lock that tells other removals that it may still be restored.
#[derive(Debug)]
pub struct TrashFolder {
    folder: PathBuf,
    lock: Lock,
}

impl TrashFolder {
    /// Renames a folder into `beside`, and so out of every list, in one step.
    ///
    /// # Errors
    /// [`Error::Trap`] if it is no folder, [`Error::Write`] if it cannot be moved; then it is still in its place.
    pub fn move_in(folder: &Path, beside: &Path) -> Result<Self, Error> {
        let failed = |source| Error::write(folder, source);
        if !fs::symlink_metadata(folder).map_err(failed)?.is_dir() {
            return Err(Error::Trap(folder.to_owned()));
        }
        let name = format!("{TRASH_PREFIX}{}", uuid::Uuid::now_v7().simple());
        let lock = Lock::try_take(&beside.join(format!("{name}.lock")))?.ok_or(Error::Broken)?;
        let trash = beside.join(name);
        if let Err(source) = fs::rename(folder, &trash) {
            lock.remove();
            return Err(failed(source));
        }
        Ok(Self { folder: trash, lock })
    }

    /// Moves the folder back to its place.
    pub(super) fn restore(self, was: &Path) -> Result<(), Error> {
        fs::rename(&self.folder, was).map_err(|source| Error::write(was, source))?;
        self.lock.remove();
        Ok(())
    }

    /// Deletes it. Links in it are deleted, not followed.
    ///
    /// # Errors
    /// [`Error::Write`]: if nothing of it could be deleted, it is back at `was`; else the next removal deletes the
    /// rest.
    pub fn free(self, was: &Path) -> Result<(), Error> {
        if let Err(source) = fs::remove_dir_all(&self.folder) {
            if self.folder.join("config.json").exists() || self.folder.join("snapshots").exists() {
                let _ = self.restore(was);
            }
            return Err(Error::write(was, source));
        }
        self.lock.remove();
        Ok(())
    }
}

/// Deletes the folders that earlier removals left in a folder, unless they may still be restored.
pub fn free_left_behind(beside: &Path) {
    for entry in entries(beside) {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with(TRASH_PREFIX) {
            continue;
        }
        let folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let lock = beside.join(format!("{}.lock", name.trim_end_matches(".lock")));
        let Ok(Some(lock)) = Lock::try_take(&lock) else {
            continue;
        };
        if !folder || fs::remove_dir_all(entry.path()).is_ok() {
            lock.remove();
        }
    }
}
