//! One download from its file list to its last link.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::DownloadState;
use futures::stream::{self, StreamExt};
use net::Purpose;
use tokio_util::sync::CancellationToken;

use super::cleanup::remove_leftovers;
use super::file::context::DownloadContext;
use super::file::disk_space::ensure_free;
use super::file::fetch::{fetch, locked_by_another_program};
use super::file::file_source::{classify, RequestFailure};
use super::file::partial::PartialFile;
use super::file::progress::DownloadItem;
use super::file::stop::{sleep, Stop};
use super::file::verified_blobs::VerifiedBlobs;
use super::limits::{Backoff, DownloadLimits};
use super::queue::job::DownloadJob;
use crate::cache::model_files::model_files;
use crate::cache::RepoFiles;
use crate::cache::{Etag, FilePath, Lock, Repository, Revision};
use crate::error::Error;
use crate::huggingface::HubApi;
use crate::local::integrity::oversize;

/// Limit of requests for the file list when the server's files do not match it.
const MOST_LISTS: u32 = 4;

/// The task of one download.
pub struct DownloadTask {
    /// The calls to the hub.
    pub api: HubApi,
    /// The repository in the cache.
    pub repository: Repository,
    /// The limits.
    pub limits: Arc<DownloadLimits>,
    /// Blobs whose hash was checked.
    pub verified: Arc<VerifiedBlobs>,
}

impl DownloadTask {
    /// Fetches all files. Afterwards the model is ready and the revision names its commit.
    ///
    /// # Errors
    /// [`Stop`]; fetched bytes are kept unless they are known to be wrong.
    pub async fn fetch(&self, job: &Arc<DownloadJob>) -> Result<(), Stop> {
        let stop = job.status().stop.clone();
        let _whole = self.lock(job, &stop).await?;
        let mut lists = 0;
        loop {
            job.works(DownloadState::Listing);
            let listing = self.list(job, &stop).await?;
            let items = items(&listing)?;
            {
                let mut status = job.status();
                status.commit = Some(listing.commit.clone());
                status.items.clone_from(&items);
            }
            self.repository.prepare()?;
            self.check_disk_space(&items).await?;
            job.works(DownloadState::Running);
            let context = Arc::new(DownloadContext::new(
                self.repository.clone(),
                listing.commit.clone(),
                Arc::clone(&self.limits),
                stop.child_token(),
                Arc::clone(&self.verified),
            ));
            match self.files(&context, &items).await {
                Ok(()) => {
                    self.publish(&context, &job.revision, &items)?;
                    let repository = self.repository.clone();
                    // Blobs of an earlier commit of the same download have no user.
                    let removed = tokio::task::spawn_blocking(move || remove_leftovers(&repository)).await;
                    return Ok(removed.map_err(|_| Error::Broken)?);
                }
                Err(Stop::Changed(reason)) => {
                    lists += 1;
                    if lists >= MOST_LISTS {
                        return Err(Stop::Failed(Error::Contradicts {
                            host: self.api.host(),
                            reason,
                        }));
                    }
                    tracing::info!("{}: {reason}; the file list is asked for again", job.id);
                    sleep(&stop, self.limits.delay(lists)).await?;
                }
                Err(stop) => return Err(stop),
            }
        }
    }

    /// Takes the lock of the whole model, and waits while another Ponder holds it.
    async fn lock(&self, job: &DownloadJob, stop: &CancellationToken) -> Result<Lock, Stop> {
        loop {
            if let Some(lock) = self.repository.try_lock_whole()? {
                return Ok(lock);
            }
            job.waits(locked_by_another_program(), self.limits.lock);
            sleep(stop, self.limits.lock).await?;
        }
    }

    /// Requests the file list until it arrives or cannot be had.
    async fn list(&self, job: &DownloadJob, stop: &CancellationToken) -> Result<RepoFiles, Stop> {
        let mut backoff = Backoff::default();
        loop {
            let listed = tokio::select! {
                () = stop.cancelled() => return Err(Stop::Canceled),
                listed = self.api.repo_files(&job.id, &job.revision, Purpose::FileList) => listed,
            };
            let error = match listed {
                Ok(listing) => return Ok(listing),
                Err(Error::Net(error)) => error,
                Err(error) => return Err(error.into()),
            };
            let (reason, wait) = match classify(error.clone()) {
                RequestFailure::Stop(stop) => return Err(stop),
                RequestFailure::Retry(reason, asked) => (reason, backoff.failed(&self.limits, 0, asked)),
                RequestFailure::Unreachable(error) => (error.into(), backoff.unreachable(&self.limits)),
            };
            let Some(wait) = wait else {
                return Err(Error::Net(error).into());
            };
            job.waits(reason, wait);
            sleep(stop, wait).await?;
            job.works(DownloadState::Listing);
        }
    }

    /// Checks the free space for the bytes that are missing.
    async fn check_disk_space(&self, items: &[Arc<DownloadItem>]) -> Result<(), Stop> {
        let (repository, items, margin) = (self.repository.clone(), items.to_vec(), self.limits.margin);
        let asked = tokio::task::spawn_blocking(move || {
            let mut needed = 0;
            for item in &items {
                let there = if repository.blob(&item.etag).is_file() {
                    item.size
                } else {
                    PartialFile::bytes_at(&repository.partial(&item.etag), item.size)
                };
                item.set_done(there);
                needed += item.size - there;
            }
            ensure_free(&repository.folder(), needed, if needed > 0 { margin } else { 0 })
        });
        Ok(asked.await.map_err(|_| Error::Broken)??)
    }

    /// Fetches all files, some at the same time; the first failure ends the others.
    async fn files(&self, context: &Arc<DownloadContext>, items: &[Arc<DownloadItem>]) -> Result<(), Stop> {
        let fetched = stream::iter(items.to_vec()).map(|item| {
            let (context, api) = (Arc::clone(context), self.api.clone());
            async move {
                if context.stop.is_cancelled() {
                    return Err(Stop::Canceled);
                }
                let outcome = fetch(&context, &api, &item).await;
                if outcome.is_err() {
                    // Each file ends by itself, so that none is still written when the next attempt begins.
                    context.stop.cancel();
                    item.set_state(DownloadState::Queued);
                }
                outcome
            }
        });
        let outcomes: Vec<Result<(), Stop>> = fetched.buffer_unordered(self.limits.files.max(1)).collect().await;
        let (canceled, others): (Vec<_>, Vec<_>) = outcomes
            .into_iter()
            .filter_map(Result::err)
            .partition(|stop| matches!(stop, Stop::Canceled));
        others.into_iter().chain(canceled).next().map_or(Ok(()), Err)
    }

    /// Gives all files their names, then the revision its commit, so the model is there as a whole or not at all.
    fn publish(&self, context: &DownloadContext, revision: &Revision, items: &[Arc<DownloadItem>]) -> Result<(), Stop> {
        for item in items {
            for path in &item.paths {
                self.repository.publish(&context.commit, path, &item.etag)?;
            }
        }
        Ok(self.repository.set_ref(revision, &context.commit)?)
    }
}

/// The blobs of the files that a model needs, each once, weights last.
fn items(listing: &RepoFiles) -> Result<Vec<Arc<DownloadItem>>, Stop> {
    let wanted = model_files(listing.files.iter().map(|file| file.path.as_str()));
    let mut blobs: BTreeMap<&Etag, (u64, Vec<FilePath>)> = BTreeMap::new();
    for file in listing.files.iter().filter(|file| wanted.contains(file.path.as_str())) {
        if let Some(reason) = oversize(file.path.as_str(), file.bytes) {
            return Err(crate::cache::refused_name("file", file.path.as_str(), &format!("it {reason}")).into());
        }
        let (size, paths) = blobs.entry(&file.etag).or_insert((file.bytes, Vec::new()));
        if *size != file.bytes {
            let path = &file.path;
            let reason = format!("the list gives {path} another size than a file of the same hash");
            return Err(Stop::Changed(reason));
        }
        paths.push(file.path.clone());
    }
    let mut items: Vec<Arc<DownloadItem>> = blobs
        .into_iter()
        .map(|(etag, (size, paths))| Arc::new(DownloadItem::new(etag.clone(), size, paths)))
        .collect();
    // Small files first: they show a model that cannot run before much was fetched.
    items.sort_by_cached_key(|item| {
        let is_large = item.paths.iter().any(|path| path.as_str().ends_with(".safetensors"));
        (is_large, item.paths.clone())
    });
    Ok(items)
}
