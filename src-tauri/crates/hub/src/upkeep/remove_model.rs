//! Removing a model with everything that uses it: the use case of the Models window and of `ponder remove`.

use api::{ModelUsers, Removal};

use crate::{Error, Hub, BUILT_IN};

impl Hub {
    /// What removing a model would do, and who uses it.
    ///
    /// # Errors
    /// [`Error::NotFound`], and errors of `users`.
    pub async fn plan_removal(&self, reference: &str, users: &dyn ModelUsers) -> protocol::Result<Removal> {
        let removal = self.removal(reference).await?;
        let usage = users.usage(reference).await?;
        Ok(Removal {
            loaded: usage.loaded,
            chats: u32::try_from(usage.chats.len()).unwrap_or(u32::MAX),
            chat_titles: usage.chats.into_iter().take(Removal::TITLES).collect(),
            ..removal
        })
    }

    /// Removes a model: a download of it ends, it leaves the engine's memory, its files go, and new chats begin with the built-in
    /// model if they began with this one. Chats keep their messages.
    ///
    /// # Errors
    /// As [`crate::ModelFolder::remove`], and errors of `users`; the message says what is left.
    pub async fn remove_model(
        &self,
        reference: &str,
        own_files_too: bool,
        users: &dyn ModelUsers,
    ) -> protocol::Result<Removal> {
        let plan = self.plan_removal(reference, users).await?;
        if plan.downloading {
            self.cancel(reference).await?;
        }
        if plan.loaded {
            users.unload(reference).await?;
        }
        let removed = match self.remove(reference, own_files_too).await {
            // If there was nothing but the download, it took everything along.
            Err(Error::NotFound { .. }) if plan.downloading => plan,
            removed => removed?,
        };
        users.removed(reference, BUILT_IN).await?;
        Ok(removed)
    }
    /// Removes a model as [`Hub::remove_model`] does, but keeps its files aside until [`Hub::free_model`], so that
    /// [`Hub::put_back_model`] brings it back; false if it is gone at once, as one of several commits is, and one that is being fetched.
    ///
    /// # Errors
    /// As [`Hub::remove_model`].
    pub async fn set_model_aside(&self, reference: &str, users: &dyn ModelUsers) -> protocol::Result<bool> {
        let usage = users.usage(reference).await?;
        if usage.loaded {
            users.unload(reference).await?;
        }
        let asked = reference.to_owned();
        let kept = if self.unfinished(reference) {
            None
        } else {
            // One that is done leaves the list of downloads.
            let _ = self.cancel(reference).await;
            self.in_folder(move |folder| folder.set_aside(&asked)).await?
        };
        let Some(kept) = kept else {
            self.remove_model(reference, false, users).await?;
            return Ok(false);
        };
        let before = self.aside().insert(reference.to_owned(), (kept, usage));
        if let Some((before, _)) = before {
            self.in_folder(move |_| before.free()).await?;
        }
        users.removed(reference, BUILT_IN).await?;
        Ok(true)
    }

    /// Brings back a model that was set aside, and what it was used for.
    ///
    /// # Errors
    /// [`Error::NotFound`] if it was freed meanwhile, [`Error::Kept`] if it was fetched again, and errors of `users`.
    pub async fn put_back_model(&self, reference: &str, users: &dyn ModelUsers) -> protocol::Result<()> {
        let kept = self.aside().remove(reference);
        let (kept, usage) = kept.ok_or_else(|| Error::NotFound {
            reference: reference.into(),
        })?;
        let asked = reference.to_owned();
        self.in_folder(move |folder| folder.put_back(&asked, kept)).await?;
        users.put_back(reference, &usage).await
    }

    /// Frees a model that was set aside; does nothing if it was brought back.
    ///
    /// # Errors
    /// [`Error::Write`]; what is left goes with the next removal.
    pub async fn free_model(&self, reference: &str) -> protocol::Result<()> {
        let kept = self.aside().remove(reference);
        match kept {
            Some((kept, _)) => Ok(self.in_folder(move |_| kept.free()).await?),
            None => Ok(()),
        }
    }

    /// Frees what earlier processes left aside, and, at the end of this one, what it set aside itself.
    pub async fn free_left_behind(&self) {
        let kept: Vec<_> = self.aside().drain().collect();
        let freed = self.in_folder(move |folder| {
            for (reference, (kept, _)) in kept {
                if let Err(error) = kept.free() {
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
}
