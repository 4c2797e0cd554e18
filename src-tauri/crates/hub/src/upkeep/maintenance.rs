//! Verifying, repairing, updating and importing models.

use std::collections::BTreeMap;
use std::path::Path;

use api::{Update, Verification, VerifyProgress};
use net::Purpose;
use protocol::FolderSource;
use tokio_util::sync::CancellationToken;

use crate::cache::model_files::model_files;
use crate::cache::{Commit, Etag, RemoteFile, RepoFiles, Repository, Revision};
use crate::download::Downloads;
use crate::error::Error;
use crate::huggingface::HubApi;
use crate::local::model_folder::ModelFolder;
use crate::upkeep::gguf::GgufImported;
use crate::upkeep::verify::{repository_of, Verified};

/// The upkeep of the models on this computer. Its methods run inside the Tokio runtime; work that blocks runs on
/// threads of its own.
#[derive(Debug)]
pub struct Upkeep {
    api: HubApi,
    local: ModelFolder,
    downloads: Downloads,
}

impl Upkeep {
    pub(crate) fn new(api: HubApi, local: ModelFolder, downloads: Downloads) -> Self {
        Self { api, local, downloads }
    }

    /// Hashes all files of a model and compares them: with the hub's list if the hub can be reached and knows the
    /// commit, else with the names of the cache's blobs. A loaded model is not disturbed.
    ///
    /// # Errors
    /// As [`ModelFolder::verify`]. An unreachable hub is no error.
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
            .local
            .run(move |folder| folder.verify(&reference, listed.as_deref(), &stop, &mut progress))
            .await?;
        if let Some((repository, commit)) = &verified.repository {
            self.record_verified(repository, commit, &verified.verification);
        }
        Ok(verified)
    }

    /// Verifies all files of a model, and fetches wrong and missing ones again, as a download of its commit. A file
    /// keeps its name until the right one is there. The result has what is still wrong: files that no model needs are
    /// not fetched.
    ///
    /// # Errors
    /// [`Error::NoRepair`] for models of unknown repositories; as [`Upkeep::verify`] and as a download.
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
        if repository.cache() != self.local.cache()? {
            return Err(no_repair("it is in a cache that Ponder only reads").into());
        }
        let id = repository.id().as_str();
        self.downloads.start(id, commit.as_str()).await?;
        tokio::select! {
            ended = self.downloads.ended(id) => ended?,
            () = stop.cancelled() => {
                self.downloads.cancel(id).await?;
                return Err(Error::Stopped.into());
            }
        }
        Ok(self.verify(reference, stop, progress).await?)
    }

    /// A newer commit of a model on the hub and the cost of fetching it; `None` if the newest is here, and for models
    /// outside of the cache.
    ///
    /// # Errors
    /// [`Error::NotFound`], and whatever keeps the hub from answering.
    pub async fn update_of(&self, reference: &str) -> Result<Option<Update>, Error> {
        let Some((repository, current)) = self.place_of(reference).await? else {
            return Ok(None);
        };
        let revision = followed(&repository, &current);
        let newest = self.api.commit_of(repository.id(), &revision, Purpose::Update).await?;
        if newest == current {
            return Ok(None);
        }
        let pinned = Revision::new(newest.as_str())?;
        let listing = self.api.repo_files(repository.id(), &pinned, Purpose::Update).await?;
        let reference = reference.to_owned();
        self.local
            .run(move |_| Ok(Some(difference(reference, &repository, &current, &listing))))
            .await
    }

    /// Imports a folder with a model, as [`ModelFolder::import`].
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
        self.local
            .run(move |folder| folder.import(&from, &stop, &mut progress))
            .await
    }

    /// Imports a GGUF file, as [`ModelFolder::import_gguf`].
    ///
    /// # Errors
    /// As [`ModelFolder::import_gguf`].
    pub async fn import_gguf(
        &self,
        file: &Path,
        name: &str,
        stop: CancellationToken,
        mut progress: impl FnMut(VerifyProgress) + Send + 'static,
    ) -> Result<GgufImported, Error> {
        let (from, name) = (file.to_owned(), name.to_owned());
        self.local
            .run(move |folder| folder.import_gguf(&from, &name, &stop, &mut progress))
            .await
    }

    /// The repository and commit of a model in a cache.
    async fn place_of(&self, reference: &str) -> Result<Option<(Repository, Commit)>, Error> {
        let reference = reference.to_owned();
        self.local
            .run(move |folder| Ok(repository_of(&folder.locate(&reference)?)))
            .await
    }

    /// The hub's list of the files that a model needs, if the hub can be reached.
    async fn listed_at(
        &self,
        repository: &Repository,
        commit: &Commit,
        stop: &CancellationToken,
    ) -> Result<Option<Vec<RemoteFile>>, Error> {
        let revision = Revision::new(commit.as_str())?;
        let listing = tokio::select! {
            listing = self.api.repo_files(repository.id(), &revision, Purpose::Verify) => listing,
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

    /// Tells the downloads which blobs have the right hash, so that a repair does not hash them again.
    fn record_verified(&self, repository: &Repository, commit: &Commit, verification: &Verification) {
        let wrong: Vec<&str> = verification.wrong.iter().map(|file| file.path.as_str()).collect();
        let verified = self.downloads.verified();
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
    let files = listing.files.iter().filter(|file| wanted.contains(file.path.as_str()));
    files.cloned().collect()
}

/// The branch of a commit: `main`, unless another ref alone names it.
fn followed(repository: &Repository, commit: &Commit) -> Revision {
    let refs = repository.refs().into_iter().filter(|(_, named)| named == commit);
    let mut names: Vec<Revision> = refs.map(|(name, _)| name).collect();
    match names.contains(&Revision::main()) || names.is_empty() {
        true => Revision::main(),
        false => names.swap_remove(0),
    }
}

fn difference(reference: String, repository: &Repository, current: &Commit, newest: &RepoFiles) -> Update {
    let here = repository.files(current).into_iter();
    let here: BTreeMap<String, Option<Etag>> = here.map(|file| (file.path.to_string(), file.etag)).collect();
    let mut other = only_needed(newest);
    other.retain(|file| here.get(file.path.as_str()) != Some(&Some(file.etag.clone())));
    let mut blobs: BTreeMap<&Etag, u64> = other.iter().map(|file| (&file.etag, file.bytes)).collect();
    // Content of an older commit or under another name is there already.
    blobs.retain(|etag, bytes| std::fs::metadata(repository.blob(etag)).map_or(true, |meta| meta.len() != *bytes));
    Update {
        reference,
        current: current.to_string(),
        newest: newest.commit.to_string(),
        files: other.iter().map(|file| file.path.to_string()).collect(),
        bytes: blobs.values().sum(),
    }
}
