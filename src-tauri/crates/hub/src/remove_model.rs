//! Removing a model with everything that uses it: the use case of the Models window and of `ponder remove`.

use protocol::{ModelUsers, Removal};

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
            chats: usage.chats,
            ..removal
        })
    }

    /// Removes a model: a download of it ends, it leaves the engine's memory, its files go, and new chats begin with the built-in
    /// model if they began with this one. Chats keep their messages.
    ///
    /// # Errors
    /// As [`crate::ModelFolder::remove`], and errors of `users`; the message says what is left.
    pub async fn remove_model(&self, reference: &str, own_files_too: bool, users: &dyn ModelUsers) -> protocol::Result<Removal> {
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
}
