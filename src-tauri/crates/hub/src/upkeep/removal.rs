//! Removing a model and everything that uses it: the use case of the Models window and of `ponder remove`.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use api::{ModelUsage, ModelUsers, Removal};

use crate::download::Downloads;
use crate::error::Error;
use crate::local::home::BUILT_IN;
use crate::local::model_folder::ModelFolder;
use crate::upkeep::undo_removal::RemovedModel;

/// The removal of models, and the models that were removed and can still be restored.
#[derive(Debug)]
pub struct Removals {
    local: ModelFolder,
    downloads: Downloads,
    /// By reference, with the usage before the removal.
    removed: Mutex<HashMap<String, (RemovedModel, ModelUsage)>>,
}

impl Removals {
    pub(crate) fn new(local: ModelFolder, downloads: Downloads) -> Self {
        Self {
            local,
            downloads,
            removed: Mutex::default(),
        }
    }

    /// The effect of removing a model: bytes, chats, a download, and whether it is loaded.
    ///
    /// # Errors
    /// [`Error::NotFound`], and errors of `users`.
    pub async fn plan(&self, reference: &str, users: &dyn ModelUsers) -> protocol::Result<Removal> {
        let removal = self.files(reference).await?;
        let usage = users.usage(reference).await?;
        Ok(Removal {
            loaded: usage.loaded,
            chats: u32::try_from(usage.chats.len()).unwrap_or(u32::MAX),
            chat_titles: usage.chats.into_iter().take(Removal::TITLES).collect(),
            ..removal
        })
    }

    /// Removes a model: its download ends, it is unloaded, its files are deleted, and new chats begin with the built-in
    /// model if they began with this one. Chats keep their messages.
    ///
    /// # Errors
    /// As [`ModelFolder::remove`], and errors of `users`; the message says what is left.
    pub async fn remove(
        &self,
        reference: &str,
        own_files_too: bool,
        users: &dyn ModelUsers,
    ) -> protocol::Result<Removal> {
        let plan = self.plan(reference, users).await?;
        if plan.downloading {
            self.downloads.cancel(reference).await?;
        }
        if plan.loaded {
            users.unload(reference).await?;
        }
        let removed = match self.remove_files(reference, own_files_too).await {
            // If there was nothing but the download, canceling it removed everything.
            Err(Error::NotFound(_)) if plan.downloading => plan,
            removed => removed?,
        };
        users.removed(reference, BUILT_IN).await?;
        Ok(removed)
    }

    /// Removes a model as [`Removals::remove`] does, but keeps its files until [`Removals::free`], so that
    /// [`Removals::restore`] brings it back. Returns false if it is deleted at once, as one of several commits is, and
    /// one whose download is not finished.
    ///
    /// # Errors
    /// As [`Removals::remove`].
    pub async fn trash(&self, reference: &str, users: &dyn ModelUsers) -> protocol::Result<bool> {
        let usage = users.usage(reference).await?;
        if usage.loaded {
            users.unload(reference).await?;
        }
        let asked = reference.to_owned();
        let removed = if self.downloads.is_unfinished(reference) {
            None
        } else {
            // A finished one leaves the list of downloads.
            let _ = self.downloads.cancel(reference).await;
            self.local.run(move |folder| folder.trash(&asked)).await?
        };
        let Some(removed) = removed else {
            self.remove(reference, false, users).await?;
            return Ok(false);
        };
        let before = self.removed().insert(reference.to_owned(), (removed, usage));
        if let Some((before, _)) = before {
            self.local.run(move |_| before.free()).await?;
        }
        users.removed(reference, BUILT_IN).await?;
        Ok(true)
    }

    /// Restores a removed model and its usage.
    ///
    /// # Errors
    /// [`Error::NotFound`] if it was freed meanwhile, [`Error::Kept`] if it was fetched again, and errors of `users`.
    pub async fn restore(&self, reference: &str, users: &dyn ModelUsers) -> protocol::Result<()> {
        let removed = self.removed().remove(reference);
        let (removed, usage) = removed.ok_or_else(|| Error::NotFound(reference.into()))?;
        let asked = reference.to_owned();
        self.local.run(move |folder| folder.restore(&asked, removed)).await?;
        users.put_back(reference, &usage).await
    }

    /// Deletes the files of a removed model; does nothing if it was restored.
    ///
    /// # Errors
    /// [`Error::Write`]; the next removal deletes the rest.
    pub async fn free(&self, reference: &str) -> protocol::Result<()> {
        let removed = self.removed().remove(reference);
        match removed {
            Some((removed, _)) => Ok(self.local.run(move |_| removed.free()).await?),
            None => Ok(()),
        }
    }

    /// Deletes the files of all removed models: at the start those of earlier processes, at the end those of this one.
    pub async fn free_all(&self) {
        let removed: Vec<_> = self.removed().drain().collect();
        let freed = self.local.run(move |folder| {
            for (reference, (removed, _)) in removed {
                if let Err(error) = removed.free() {
                    tracing::warn!("{reference} is not freed before the next removal: {error}");
                }
            }
            folder.free_left_behind();
            Ok(())
        });
        if let Err(error) = freed.await {
            tracing::warn!("removed models are not freed before the next removal: {error}");
        }
    }

    /// The effect of deleting the files of a model. Chats and the engine's memory are for [`Removals::plan`] to add.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn files(&self, reference: &str) -> Result<Removal, Error> {
        let (asked, downloading) = (reference.to_owned(), self.downloads.is_pending(reference));
        let removal = self.local.run(move |folder| folder.removal(&asked)).await?;
        Ok(Removal { downloading, ..removal })
    }

    /// Deletes the files of a model, as [`ModelFolder::remove`]. A paused download of it leaves the list.
    ///
    /// # Errors
    /// As [`ModelFolder::remove`]; [`Error::InUse`] while this process fetches it.
    pub async fn remove_files(&self, reference: &str, own_files_too: bool) -> Result<Removal, Error> {
        if self.downloads.is_pending(reference) {
            return Err(Error::InUse(reference.into()));
        }
        let removal = self.files(reference).await?;
        // Canceling the download deletes what it fetched; if that was all there is, nothing is left to remove.
        let canceled = !reference.contains('@') && self.downloads.cancel(reference).await.is_ok();
        let asked = reference.to_owned();
        let removed = self.local.run(move |folder| folder.remove(&asked, own_files_too)).await;
        match removed {
            Err(Error::NotFound(_)) if canceled => Ok(removal),
            removed => removed,
        }
    }

    fn removed(&self) -> MutexGuard<'_, HashMap<String, (RemovedModel, ModelUsage)>> {
        self.removed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
