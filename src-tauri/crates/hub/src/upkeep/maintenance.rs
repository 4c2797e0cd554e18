//! Maintenance of the models on this computer: verify, repair, update, remove, import.

use std::collections::BTreeMap;
use std::path::Path;

use api::{Removal, Update, Verification, VerifyProgress};
use net::Purpose;
use protocol::{ErrorCode, FolderSource};
use tokio_util::sync::CancellationToken;

use crate::cache::model_files::model_files;
use crate::cache::{Commit, Etag, Repository, Revision};
use crate::cache::{RemoteFile, RepoFiles};
use crate::upkeep::verify::{repository_of, Verified};
use crate::{Error, Hub, ModelFolder};

/// All of these run inside the Tokio runtime; what takes long runs on a thread of its own.
impl Hub {
    /// Reads all files of a model and compares them: with the hub's list if the hub can be reached and knows the commit, else with
    /// the hashes that the cache names its files by. A model that is loaded is not disturbed.
    ///
    /// # Errors
    /// As [`ModelFolder::verify`]. That the hub cannot be reached is no error.
    pub async fn verify(
        &self,
        reference: &str,
        stop: CancellationToken,
        progress: impl FnMut(VerifyProgress) + Send + 'static,
    ) -> Result<Verification, Error> {
        Ok(self.verified(reference, stop, progress).await?.verification)
    }

    async fn verified(
        &self,
        reference: &str,
        stop: CancellationToken,
        mut progress: impl FnMut(VerifyProgress) + Send + 'static,
    ) -> Result<Verified, Error> {
        let listed = match self.place_of(reference).await? {
            Some((repository, commit)) => self.listed_at(&repository, &commit, &stop).await?,
            None => None,
        };
        let reference = reference.to_owned();
        let verified = self
            .in_folder(move |folder| folder.verify(&reference, listed.as_deref(), &stop, &mut progress))
            .await?;
        if let Some((repository, commit)) = &verified.repository {
            self.record_verified(repository, commit, &verified.verification);
        }
        Ok(verified)
    }

    /// Reads all files of a model, and fetches those again that are wrong or missing, as a download of its commit. A file keeps its
    /// name until the right one is there. The result says what is still wrong: files that no model needs are not fetched.
    ///
    /// # Errors
    /// [`Error::NoRepair`] for models whose repository is not known; as [`Hub::verify`] and as a download.
    pub async fn repair(
        &self,
        reference: &str,
        stop: CancellationToken,
        progress: impl FnMut(VerifyProgress) + Send + Clone + 'static,
    ) -> protocol::Result<Verification> {
        let found = self.verified(reference, stop.clone(), progress.clone()).await?;
        if found.verification.wrong.is_empty() {
            return Ok(found.verification);
        }
        let no_repair = |reason: &str| Error::NoRepair {
            reference: reference.into(),
            reason: reason.into(),
        };
        let (repository, commit) = found
            .repository
            .ok_or_else(|| no_repair("its folder does not say where on the hub it came from"))?;
        if repository.cache() != self.folder().cache()? {
            return Err(no_repair("it is in a cache that Ponder only reads").into());
        }
        let id = repository.id().as_str();
        self.download(id, commit.as_str()).await?;
        tokio::select! {
            ended = self.ended(id) => ended?,
            () = stop.cancelled() => {
                self.cancel(id).await?;
                return Err(Error::Stopped.into());
            }
        }
        Ok(self.verify(reference, stop, progress).await?)
    }

    /// A newer commit of a model on the hub, and what fetching it would take; `None` if the newest is here, and for models
    /// outside of the cache.
    ///
    /// # Errors
    /// [`Error::NotFound`], and whatever keeps the hub from answering.
    pub async fn update_of(&self, reference: &str) -> Result<Option<Update>, Error> {
        let Some((repository, current)) = self.place_of(reference).await? else {
            return Ok(None);
        };
        let revision = followed(&repository, &current);
        let newest = self.commit_of(repository.id(), &revision, Purpose::Update).await?;
        if newest == current {
            return Ok(None);
        }
        let pinned = Revision::new(newest.as_str())?;
        let listing = self.repo_files(repository.id(), &pinned, Purpose::Update).await?;
        let reference = reference.to_owned();
        self.in_folder(move |_| Ok(Some(difference(reference, &repository, &current, &listing))))
            .await
    }

    /// What removing the model would free. Whether it is loaded and how many chats use it is for the host to add.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn removal(&self, reference: &str) -> Result<Removal, Error> {
        let (asked, downloading) = (reference.to_owned(), self.fetches(reference));
        let removal = self.in_folder(move |folder| folder.removal(&asked)).await?;
        Ok(Removal { downloading, ..removal })
    }

    /// Removes the model; as [`ModelFolder::remove`]. A paused download of it is taken off the list.
    ///
    /// # Errors
    /// As [`ModelFolder::remove`]; [`Error::InUse`] while it is being fetched here.
    pub async fn remove(&self, reference: &str, own_files_too: bool) -> Result<Removal, Error> {
        if self.fetches(reference) {
            return Err(Error::InUse {
                reference: reference.into(),
            });
        }
        let removal = self.removal(reference).await?;
        // With the download goes what it brought, and if that was all there is, nothing is left to remove.
        let cancelled = !reference.contains('@') && self.cancel(reference).await.is_ok();
        let asked = reference.to_owned();
        let removed = self.in_folder(move |folder| folder.remove(&asked, own_files_too)).await;
        match removed {
            Err(Error::NotFound { .. }) if cancelled => Ok(removal),
            removed => removed,
        }
    }

    /// Takes a folder with a model into Ponder's own folder; as [`ModelFolder::import`].
    ///
    /// # Errors
    /// As [`ModelFolder::import`].
    pub async fn import(
        &self,
        folder: &Path,
        stop: CancellationToken,
        mut progress: impl FnMut(VerifyProgress) + Send + 'static,
    ) -> Result<FolderSource, Error> {
        let from = folder.to_owned();
        self.in_folder(move |folder| folder.import(&from, &stop, &mut progress))
            .await
    }

    pub(crate) async fn in_folder<T: Send + 'static>(
        &self,
        work: impl FnOnce(&ModelFolder) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let folder = self.folder().clone();
        tokio::task::spawn_blocking(move || work(&folder))
            .await
            .map_err(|_| Error::Broken)?
    }

    /// A model's place in a cache.
    async fn place_of(&self, reference: &str) -> Result<Option<(Repository, Commit)>, Error> {
        let reference = reference.to_owned();
        self.in_folder(move |folder| Ok(repository_of(&folder.locate(&reference)?)))
            .await
    }

    /// The files that a model needs as the hub lists them, if it can be asked.
    async fn listed_at(
        &self,
        repository: &Repository,
        commit: &Commit,
        stop: &CancellationToken,
    ) -> Result<Option<Vec<RemoteFile>>, Error> {
        let revision = Revision::new(commit.as_str())?;
        let listing = tokio::select! {
            listing = self.repo_files(repository.id(), &revision, Purpose::Verify) => listing,
            () = stop.cancelled() => return Err(Error::Stopped),
        };
        Ok(match listing {
            Ok(listing) => Some(only_needed(&listing)),
            Err(error) => {
                tracing::info!("{} is verified without the hub: {error}", repository.id());
                None
            }
        })
    }

    /// Tells the downloads which blobs were read and found right, so that a repair does not read them again, and which were not.
    fn record_verified(&self, repository: &Repository, commit: &Commit, verification: &Verification) {
        let wrong: Vec<&str> = verification.wrong.iter().map(|file| file.path.as_str()).collect();
        let verified = &self.0.transfers.verified;
        for file in repository.files(commit) {
            let Some(etag) = &file.etag else { continue };
            let blob = repository.blob(etag);
            if wrong.contains(&file.path.as_str()) {
                verified.remove(&blob);
            } else {
                verified.insert(&blob);
            }
        }
    }
}

fn only_needed(listing: &RepoFiles) -> Vec<RemoteFile> {
    let wanted = model_files(listing.files.iter().map(|file| file.path.as_str()));
    let files = listing.files.iter();
    files
        .filter(|file| wanted.contains(file.path.as_str()))
        .cloned()
        .collect()
}

/// The branch that a commit was fetched from: `main`, unless another ref alone names it.
fn followed(repository: &Repository, commit: &Commit) -> Revision {
    let names: Vec<Revision> = repository
        .refs()
        .into_iter()
        .filter(|(_, named)| named == commit)
        .map(|(name, _)| name)
        .collect();
    if names.contains(&Revision::main()) {
        return Revision::main();
    }
    names.into_iter().next().unwrap_or_else(Revision::main)
}

fn difference(reference: String, repository: &Repository, current: &Commit, newest: &RepoFiles) -> Update {
    let here: BTreeMap<String, Option<Etag>> = repository
        .files(current)
        .into_iter()
        .map(|file| (file.path.to_string(), file.etag))
        .collect();
    let other: Vec<RemoteFile> = only_needed(newest)
        .into_iter()
        .filter(|file| here.get(file.path.as_str()) != Some(&Some(file.etag.clone())))
        .collect();
    let mut blobs: BTreeMap<&Etag, u64> = other.iter().map(|file| (&file.etag, file.bytes)).collect();
    // Content that an older commit or another name brought is there already.
    blobs.retain(|etag, bytes| std::fs::metadata(repository.blob(etag)).map_or(true, |meta| meta.len() != *bytes));
    Update {
        reference,
        current: current.to_string(),
        newest: newest.commit.to_string(),
        files: other.iter().map(|file| file.path.to_string()).collect(),
        bytes: blobs.values().sum(),
    }
}

impl Hub {
    /// Waits until the download of this model ends, and takes it off the list if it is done.
    async fn ended(&self, id: &str) -> protocol::Result<()> {
        let mut downloads = self.downloads();
        loop {
            if let Some(error) = self.outcome(id) {
                let done = error.is_ok();
                if done {
                    self.cancel(id).await?;
                }
                return error;
            }
            if downloads.changed().await.is_err() {
                return Err(protocol::Error::new(
                    ErrorCode::Stopped,
                    "Ponder is closing; what has arrived is kept",
                ));
            }
        }
    }
}
