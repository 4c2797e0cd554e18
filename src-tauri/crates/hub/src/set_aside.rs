//! Models that were removed and can still be brought back: their files lie aside, out of everybody's list, until they are freed.
//! What a crash leaves there is freed by the next start or the next removal, whichever comes first.

use std::fs;
use std::path::{Path, PathBuf};

use crate::layout::Lock;
use crate::remove::{Target, GOING};
use crate::{Error, ModelFolder};

/// A model that lies aside. Dropped, it is freed later.
#[derive(Debug)]
pub struct SetAside(Kept);

#[derive(Debug)]
enum Kept {
    Files {
        was: PathBuf,
        aside: SetAsideFolder,
    },
    /// A folder of the user's, which only left the list.
    Entry(PathBuf),
}

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
            return Err(Error::Trap { path: folder.to_owned() });
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
    fn put_back(self, was: &Path) -> Result<(), Error> {
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
        let Ok(Some(lock)) = Lock::try_take(&lock) else { continue };
        if !folder || fs::remove_dir_all(entry.path()).is_ok() {
            lock.remove();
        }
    }
}

impl ModelFolder {
    /// Removes a model as [`ModelFolder::remove`] does, but can bring it back; `None`, and nothing is done, for a commit of a model
    /// that has more of them.
    ///
    /// # Errors
    /// As [`ModelFolder::remove`].
    pub fn set_aside(&self, reference: &str) -> Result<Option<SetAside>, Error> {
        let target = self.target(reference, false)?;
        let locks = target.locks()?;
        let kept = match target {
            Target::All(repository) => {
                let was = repository.folder();
                let aside = SetAsideFolder::take(&was, &repository.aside()?)?;
                locks.into_iter().for_each(Lock::remove);
                let _ = fs::remove_dir(repository.locks());
                Kept::Files { was, aside }
            }
            Target::Folder(was) => {
                let beside = was.parent().ok_or_else(|| Error::Trap { path: was.clone() })?;
                let aside = SetAsideFolder::take(&was, beside)?;
                Kept::Files { was, aside }
            }
            Target::Entry(folder) => {
                self.remove_folder(&folder);
                Kept::Entry(folder)
            }
            Target::One(..) | Target::OwnFiles(_) => return Ok(None),
        };
        Ok(Some(SetAside(kept)))
    }

    /// Brings a model back.
    ///
    /// # Errors
    /// [`Error::Kept`] if it was fetched again meanwhile, [`Error::Write`] if it cannot be moved; it is freed later then.
    pub fn put_back(&self, reference: &str, kept: SetAside) -> Result<(), Error> {
        match kept.0 {
            Kept::Entry(folder) => self.add_folder(&folder).map(drop),
            Kept::Files { was, .. } if fs::symlink_metadata(&was).is_ok() => Err(Error::Kept {
                reference: reference.into(),
                reason: "it is here again; what was removed before stays removed".into(),
            }),
            Kept::Files { was, aside } => aside.put_back(&was),
        }
    }

    /// Frees what earlier processes set aside or began to remove.
    pub fn free_left_behind(&self) {
        if let Ok(cache) = self.cache() {
            free_left_behind(&cache.root().join(".locks"));
        }
        if let Some(imports) = self.imports() {
            free_left_behind(&imports);
        }
    }
}

impl SetAside {
    /// Frees it for good.
    ///
    /// # Errors
    /// [`Error::Write`]; what is left goes with the next removal.
    pub fn free(self) -> Result<(), Error> {
        match self.0 {
            Kept::Files { was, aside } => aside.free(&was),
            Kept::Entry(_) => Ok(()),
        }
    }
}
