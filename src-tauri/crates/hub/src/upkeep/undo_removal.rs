//! Models that were removed and can still be brought back: their files lie aside, out of everybody's list, until they are freed.
//! What a crash leaves there is freed by the next start or the next removal, whichever comes first.

use std::fs;
use std::path::PathBuf;

use super::delete_files::Target;
use super::trash_folder::{free_left_behind, TrashFolder};
use crate::cache::Lock;
use crate::error::Error;
use crate::local::model_folder::ModelFolder;

/// A model that lies aside. Dropped, it is freed later.
#[derive(Debug)]
pub struct RemovedModel(Files);

#[derive(Debug)]
enum Files {
    Moved {
        was: PathBuf,
        trash: TrashFolder,
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
    pub fn trash(&self, reference: &str) -> Result<Option<RemovedModel>, Error> {
        let target = self.target(reference, false)?;
        let locks = target.locks()?;
        let files = match target {
            Target::All(repository) => {
                let was = repository.folder();
                let trash = TrashFolder::move_in(&was, &repository.trash()?)?;
                locks.into_iter().for_each(Lock::remove);
                let _ = fs::remove_dir(repository.locks());
                Files::Moved { was, trash }
            }
            Target::Folder(was) => {
                let beside = was.parent().ok_or_else(|| Error::Trap { path: was.clone() })?;
                let trash = TrashFolder::move_in(&was, beside)?;
                Files::Moved { was, trash }
            }
            Target::Entry(folder) => {
                self.remove_folder(&folder);
                Files::Entry(folder)
            }
            Target::One(..) | Target::OwnFiles(_) => return Ok(None),
        };
        Ok(Some(RemovedModel(files)))
    }

    /// Brings a model back.
    ///
    /// # Errors
    /// [`Error::Kept`] if it was fetched again meanwhile, [`Error::Write`] if it cannot be moved; it is freed later then.
    pub fn restore(&self, reference: &str, removed: RemovedModel) -> Result<(), Error> {
        match removed.0 {
            Files::Entry(folder) => self.add_folder(&folder).map(drop),
            Files::Moved { was, .. } if fs::symlink_metadata(&was).is_ok() => Err(Error::Kept {
                reference: reference.into(),
                reason: "it is here again; what was removed before stays removed".into(),
            }),
            Files::Moved { was, trash } => trash.restore(&was),
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

impl RemovedModel {
    /// Frees it for good.
    ///
    /// # Errors
    /// [`Error::Write`]; what is left goes with the next removal.
    pub fn free(self) -> Result<(), Error> {
        match self.0 {
            Files::Moved { was, trash } => trash.free(&was),
            Files::Entry(_) => Ok(()),
        }
    }
}
