//! Models that were removed and can still be brought back: their files lie aside, out of everybody's list, until they are freed.
//! What a crash leaves there is freed by the next start or the next removal, whichever comes first.

use std::fs;
use std::path::PathBuf;

use super::aside_folder::{free_left_behind, SetAsideFolder};
use super::remove::Target;
use crate::cache::Lock;
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
