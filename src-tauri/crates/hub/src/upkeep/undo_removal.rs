//! Removed models that can still be restored. Their files lie in a trash folder, out of every list, until they are
//! deleted. The next start or the next removal deletes those that a crash left.

use std::fs;
use std::path::PathBuf;

use protocol::Reason;

use super::delete_files::Target;
use super::trash_folder::{free_left_behind, TrashFolder};
use crate::cache::Lock;
use crate::error::Error;
use crate::local::model_folder::ModelFolder;

/// A removed model. If it is dropped, its files are deleted later.
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
    /// Removes a model as [`ModelFolder::remove`] does, but can restore it; `None`, and nothing is done, for one of
    /// several commits of a model.
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
                let beside = was.parent().ok_or_else(|| Error::Trap(was.clone()))?;
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

    /// Restores a model.
    ///
    /// # Errors
    /// [`Error::Kept`] if it was fetched again meanwhile, [`Error::Write`] if it cannot be moved; its files are then
    /// deleted later.
    pub fn restore(&self, reference: &str, removed: RemovedModel) -> Result<(), Error> {
        match removed.0 {
            Files::Entry(folder) => self.add_folder(&folder).map(drop),
            Files::Moved { was, .. } if fs::symlink_metadata(&was).is_ok() => Err(Error::Kept {
                reference: reference.into(),
                reason: "it is here again; what was removed before stays removed",
                why: Reason::NotRemovable,
            }),
            Files::Moved { was, trash } => trash.restore(&was),
        }
    }

    /// Deletes the files that earlier processes removed or began to remove.
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
    /// Deletes its files.
    ///
    /// # Errors
    /// [`Error::Write`]; the next removal deletes the rest.
    pub fn free(self) -> Result<(), Error> {
        match self.0 {
            Files::Moved { was, trash } => trash.free(&was),
            Files::Entry(_) => Ok(()),
        }
    }
}
