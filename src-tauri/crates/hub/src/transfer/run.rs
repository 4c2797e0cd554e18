//! One download from its file list to its last link.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use futures::stream::{self, StreamExt};
use net::Purpose;
use protocol::DownloadState;
use tokio_util::sync::CancellationToken;

use super::address::{trouble, Trouble};
use super::clear::clear;
use super::course::{Course, Halt};
use super::fetch::{another_program, fetch};
use super::job::Job;
use super::pace::{Pace, Patience};
use super::partial::Partial;
use super::progress::Item;
use super::room::room;
use super::seen::Seen;
use crate::api::Listing;
use crate::layout::{Etag, FilePath, Lock, Repository, Revision};
use crate::needed::needed;
use crate::structure::oversize;
use crate::{Error, Hub};

/// How often the file list is asked for again because the server's files do not match it.
const MOST_LISTS: u32 = 4;

/// What a download needs besides itself.
pub struct Run {
    /// Whom the files come from.
    pub hub: Hub,
    /// Where the files go.
    pub repository: Repository,
    /// The limits.
    pub pace: Arc<Pace>,
    /// Blobs that were read and found right.
    pub seen: Arc<Seen>,
}

impl Run {
    /// Fetches everything. Afterwards the model is ready and the revision names its commit.
    ///
    /// # Errors
    /// [`Halt`]; what was fetched and is not known to be wrong is kept.
    pub async fn fetch(&self, job: &Arc<Job>) -> Result<(), Halt> {
        let stop = job.now().stop.clone();
        let _whole = self.lock(job, &stop).await?;
        let mut lists = 0;
        loop {
            job.works(DownloadState::Listing);
            let listing = self.list(job, &stop).await?;
            let items = items(&listing)?;
            {
                let mut now = job.now();
                now.commit = Some(listing.commit.clone());
                now.items.clone_from(&items);
            }
            self.repository.prepare()?;
            self.has_room(&items).await?;
            job.works(DownloadState::Running);
            let course = Arc::new(Course::new(
                self.repository.clone(),
                listing.commit.clone(),
                Arc::clone(&self.pace),
                stop.child_token(),
                Arc::clone(&self.seen),
            ));
            match self.files(&course, &items).await {
                Ok(()) => {
                    self.publish(&course, &job.revision, &items)?;
                    let repository = self.repository.clone();
                    // What an earlier commit of the same download brought is used by nothing.
                    return Ok(tokio::task::spawn_blocking(move || clear(&repository))
                        .await
                        .map_err(|_| Error::Broken)?);
                }
                Err(Halt::Changed(reason)) => {
                    lists += 1;
                    if lists >= MOST_LISTS {
                        return Err(Halt::Failed(Error::Contradicts {
                            host: self.hub.net().endpoint().host(),
                            reason,
                        }));
                    }
                    tracing::info!("{}: {reason}; the file list is asked for again", job.id);
                    sleep(&stop, self.pace.delay(lists)).await?;
                }
                Err(halt) => return Err(halt),
            }
        }
    }

    /// Takes the lock of the whole model, and waits while another Ponder has it.
    async fn lock(&self, job: &Job, stop: &CancellationToken) -> Result<Lock, Halt> {
        loop {
            if let Some(lock) = self.repository.try_lock_whole()? {
                return Ok(lock);
            }
            job.waits(another_program(), self.pace.lock);
            sleep(stop, self.pace.lock).await?;
        }
    }

    /// The file list, asked for until it comes or it is clear that it does not.
    async fn list(&self, job: &Job, stop: &CancellationToken) -> Result<Listing, Halt> {
        let mut patience = Patience::default();
        let mut without_way: Option<(Instant, u32)> = None;
        loop {
            let listed = tokio::select! {
                () = stop.cancelled() => return Err(Halt::Stopped),
                listed = self.hub.listing(&job.id, &job.revision, Purpose::FileList) => listed,
            };
            let error = match listed {
                Ok(listing) => return Ok(listing),
                Err(Error::Net(error)) => error,
                Err(error) => return Err(error.into()),
            };
            let (told, wait) = match trouble(error.clone()) {
                Trouble::Halt(halt) => return Err(halt),
                Trouble::Again(told, asked) => (told, patience.failed(&self.pace, 0, asked)),
                Trouble::NoWay(error) => {
                    let (since, times) = without_way.get_or_insert((Instant::now(), 0));
                    *times += 1;
                    let goes_on = since.elapsed() < self.pace.without_network;
                    (
                        error.into(),
                        goes_on.then(|| self.pace.delay(*times).min(super::connections::LOOK_FOR_NETWORK)),
                    )
                }
            };
            let Some(wait) = wait else { return Err(Error::Net(error).into()) };
            job.waits(told, wait);
            sleep(stop, wait).await?;
            job.works(DownloadState::Listing);
        }
    }

    /// Whether the disk has room for what is not on it yet.
    async fn has_room(&self, items: &[Arc<Item>]) -> Result<(), Halt> {
        let (repository, items, margin) = (self.repository.clone(), items.to_vec(), self.pace.margin);
        let asked = tokio::task::spawn_blocking(move || {
            let mut needed = 0;
            for item in &items {
                let there = if repository.blob(&item.etag).is_file() {
                    item.size
                } else {
                    Partial::bytes_at(&repository.partial(&item.etag), item.size)
                };
                item.set_done(there);
                needed += item.size - there;
            }
            room(&repository.folder(), needed, if needed > 0 { margin } else { 0 })
        });
        Ok(asked.await.map_err(|_| Error::Broken)??)
    }

    /// Fetches all files, some at once; the first that cannot be fetched ends the others.
    async fn files(&self, course: &Arc<Course>, items: &[Arc<Item>]) -> Result<(), Halt> {
        let fetched = stream::iter(items.to_vec()).map(|item| {
            let (course, hub) = (Arc::clone(course), self.hub.clone());
            async move {
                if course.stop.is_cancelled() {
                    return Err(Halt::Stopped);
                }
                let outcome = fetch(&course, &hub, &item).await;
                if outcome.is_err() {
                    // Files end by themselves, so that none is still written when the next attempt begins.
                    course.stop.cancel();
                    item.set_state(DownloadState::Queued);
                }
                outcome
            }
        });
        let outcomes: Vec<Result<(), Halt>> = fetched.buffer_unordered(self.pace.files.max(1)).collect().await;
        let mut stopped = false;
        for outcome in outcomes {
            match outcome {
                Ok(()) => {}
                Err(Halt::Stopped) => stopped = true,
                Err(halt) => return Err(halt),
            }
        }
        if stopped {
            return Err(Halt::Stopped);
        }
        Ok(())
    }

    /// Gives all files their names, and then the revision its commit: the model is there whole or not at all.
    fn publish(&self, course: &Course, revision: &Revision, items: &[Arc<Item>]) -> Result<(), Halt> {
        for item in items {
            for path in &item.paths {
                self.repository.publish(&course.commit, path, &item.etag)?;
            }
        }
        Ok(self.repository.set_ref(revision, &course.commit)?)
    }
}

async fn sleep(stop: &CancellationToken, wait: std::time::Duration) -> Result<(), Halt> {
    tokio::select! {
        () = stop.cancelled() => Err(Halt::Stopped),
        () = tokio::time::sleep(wait) => Ok(()),
    }
}

/// The blobs of the files that a model needs, each once, weights last.
fn items(listing: &Listing) -> Result<Vec<Arc<Item>>, Halt> {
    let wanted = needed(listing.files.iter().map(|file| file.path.as_str()));
    let mut blobs: BTreeMap<&Etag, (u64, Vec<FilePath>)> = BTreeMap::new();
    for file in listing.files.iter().filter(|file| wanted.contains(file.path.as_str())) {
        if let Some(reason) = oversize(file.path.as_str(), file.bytes) {
            return Err(crate::layout::refused("file", file.path.as_str(), &format!("it {reason}")).into());
        }
        let (size, paths) = blobs.entry(&file.etag).or_insert((file.bytes, Vec::new()));
        if *size != file.bytes {
            return Err(Halt::Changed(format!(
                "the list gives {} another size than a file of the same hash",
                file.path
            )));
        }
        paths.push(file.path.clone());
    }
    let mut items: Vec<Arc<Item>> = blobs
        .into_iter()
        .map(|(etag, (size, paths))| Arc::new(Item::new(etag.clone(), size, paths)))
        .collect();
    // Small files first: they say whether the model will run before much was fetched.
    items.sort_by_cached_key(|item| {
        (
            item.paths.iter().any(|path| path.as_str().ends_with(".safetensors")),
            item.paths.clone(),
        )
    });
    Ok(items)
}
