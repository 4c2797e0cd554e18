//! A folder that is moved out of every list in one step before it is deleted, so that a crash in between leaves no half model.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cache::Lock;
use crate::Error;

/// The beginning of a folder's name while it is being removed; what a crash leaves behind is removed with the next one.
pub const GOING: &str = ".ponder-removed-";

/// A folder that is about to be removed, and the lock by which other removals see that somebody may want it back.
#[derive(Debug)]
pub struct SetAsideFolder {
    folder: PathBuf,
    lock: Lock,
}

impl SetAsideFolder {
    /// Moves a folder `beside`, and so out of everybody's list, in one step.
    ///
    /// # Errors
    /// [`Error::Trap`] if it is no folder, [`Error::Write`] if it cannot be moved; it is where it was then.
    pub fn take(folder: &Path, beside: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Write {
            path: folder.to_owned(),
            source,
        };
        if !fs::symlink_metadata(folder).map_err(failed)?.is_dir() {
            return Err(Error::Trap {
                path: folder.to_owned(),
            });
        }
        let name = format!("{GOING}{}", uuid::Uuid::now_v7().simple());
        let lock = Lock::try_take(&beside.join(format!("{name}.lock")))?.ok_or(Error::Broken)?;
        let aside = beside.join(name);
        if let Err(source) = fs::rename(folder, &aside) {
            lock.remove();
            return Err(failed(source));
        }
        Ok(Self { folder: aside, lock })
    }

    /// Puts the folder back to where it was.
    pub(super) fn put_back(self, was: &Path) -> Result<(), Error> {
        fs::rename(&self.folder, was).map_err(|source| Error::Write {
            path: was.to_owned(),
            source,
        })?;
        self.lock.remove();
        Ok(())
    }

    /// Removes its content. Links in it are removed, not followed.
    ///
    /// # Errors
    /// [`Error::Write`]: if nothing of it could be removed, it is back at `was`; else what is left goes with the next removal.
    pub fn free(self, was: &Path) -> Result<(), Error> {
        if let Err(source) = fs::remove_dir_all(&self.folder) {
            if self.folder.join("config.json").exists() || self.folder.join("snapshots").exists() {
                let _ = self.put_back(was);
            }
            return Err(Error::Write {
                path: was.to_owned(),
                source,
            });
        }
        self.lock.remove();
        Ok(())
    }
}

/// Frees what earlier removals left in a folder, if nobody may want it back.
pub fn free_left_behind(beside: &Path) {
    for entry in fs::read_dir(beside).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with(GOING) {
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
