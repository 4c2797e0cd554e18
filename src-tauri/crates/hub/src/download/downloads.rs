//! The downloads of this process: queue, pause, resume, cancel.

use std::path::Path;
use std::sync::Arc;

use api::{Download, DownloadState};
use protocol::ErrorCode;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::cleanup::remove_leftovers;
use super::download_task::DownloadTask;
use super::file::stop::Stop;
use super::file::verified_blobs::VerifiedBlobs;
use super::limits::DownloadLimits;
use super::queue::job::{DownloadJob, Intent};
use super::shared::Shared;
use crate::cache::{RepositoryId, Revision};
use crate::error::Error;
use crate::huggingface::HubApi;
use crate::local::model_folder::ModelFolder;

/// The downloads of this process. Clones share them; all methods run inside the Tokio runtime.
#[derive(Debug, Clone)]
pub struct Downloads(Arc<Shared>);

impl Downloads {
    pub(crate) fn new(api: HubApi, local: ModelFolder, data_dir: &Path) -> Self {
        Self(Arc::new(Shared::new(api, local, data_dir)))
    }

    /// Sets the limits of the downloads that begin from here on, and the time that the hub has for an answer.
    pub fn set_limits(&self, limits: DownloadLimits) {
        self.0.set_limits(limits);
    }

    /// Continues the downloads that were running when the app ended, and stores the list from here on. The app calls it
    /// at its start. Returns true if this process owns the list; if another one does, nothing happens.
    ///
    /// # Errors
    /// [`Error::Write`] if the data folder cannot be written.
    pub async fn resume_pending(&self) -> Result<bool, Error> {
        let (taken, ours) = {
            let mut queue = self.0.queue();
            let taken = queue.resume_pending(&self.0.data_dir)?;
            self.0.save(&queue);
            (taken, queue.is_stored())
        };
        if taken && self.0.api.net().is_offline() {
            self.begin_next();
        } else if taken {
            self.resume_offline();
        }
        self.0.publish_now();
        Ok(ours)
    }

    /// Puts a model at the end of the queue. If it is there already, it continues.
    ///
    /// # Errors
    /// [`Error::Name`] for an invalid id or revision, [`Error::NoHome`] if there is no place for models,
    /// [`Error::Fetching`] while another revision of it is fetched.
    pub async fn start(&self, id: &str, revision: &str) -> Result<(), Error> {
        let (id, revision) = (RepositoryId::new(id)?, Revision::new(revision)?);
        self.0.local.cache()?;
        {
            let mut queue = self.0.queue();
            if let Some(job) = queue.job(&id) {
                let mut status = job.status();
                let over = !status.busy && status.state != DownloadState::Queued;
                if !over && job.revision != revision {
                    return Err(Error::Fetching(id.to_string()));
                }
                if !over {
                    // A download that was about to stop continues after that.
                    status.intent = Intent::Continue;
                    return Ok(());
                }
                drop(status);
                queue.remove(&id);
            }
            queue.suspended = false;
            queue
                .jobs
                .push(Arc::new(DownloadJob::new(id, revision, DownloadState::Queued)));
            self.0.save(&queue);
        }
        self.begin_next();
        Ok(())
    }

    /// All downloads in their order, published up to five times a second. Finished and failed ones stay until
    /// [`Downloads::cancel`].
    pub fn watch(&self) -> watch::Receiver<Vec<Download>> {
        self.0.subscribe()
    }

    /// Pauses a download until [`Downloads::resume`].
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none of this model.
    pub async fn pause(&self, id: &str) -> Result<(), Error> {
        let job = self.job(id)?;
        {
            let mut status = job.status();
            if status.busy {
                status.intent = Intent::Pause;
                status.stop.cancel();
            } else if status.state == DownloadState::Queued {
                status.state = DownloadState::Paused;
            }
        }
        self.save();
        self.begin_next();
        Ok(())
    }

    /// Continues a download that was paused or failed.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none of this model.
    pub async fn resume(&self, id: &str) -> Result<(), Error> {
        let job = self.job(id)?;
        {
            let mut status = job.status();
            status.intent = Intent::Continue;
            if !status.busy && matches!(status.state, DownloadState::Paused | DownloadState::Failed) {
                status.state = DownloadState::Queued;
                status.error = None;
            }
        }
        self.save();
        self.begin_next();
        Ok(())
    }

    /// Ends a download and removes its files that nothing else uses; takes a finished one off the list and leaves its
    /// model. Returns when that is done.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none of this model.
    pub async fn cancel(&self, id: &str) -> Result<(), Error> {
        let job = self.job(id)?;
        {
            let mut status = job.status();
            if status.busy {
                status.intent = Intent::Cancel;
                status.stop.cancel();
            }
        }
        self.save();
        self.until(|| !job.status().busy).await;
        let done = job.status().state == DownloadState::Done;
        {
            let mut queue = self.0.queue();
            queue.jobs.retain(|other| !Arc::ptr_eq(other, &job));
            self.0.save(&queue);
        }
        if !done {
            let repository = self.0.local.cache()?.repository(&job.id);
            let removed = tokio::task::spawn_blocking(move || remove_leftovers(&repository)).await;
            removed.map_err(|_| Error::Broken)?;
        }
        self.begin_next();
        Ok(())
    }

    /// Moves a download to a place in the order; 0 is the first. A running one continues.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none of this model.
    pub async fn reorder(&self, id: &str, place: usize) -> Result<(), Error> {
        let job = self.job(id)?;
        let mut queue = self.0.queue();
        queue.move_to(&job.id, place);
        self.0.save(&queue);
        drop(queue);
        self.0.publish_now();
        Ok(())
    }

    /// Stops all downloads, so that the app can close; the next start continues them. Returns when everything is
    /// stored.
    pub async fn suspend(&self) {
        let jobs = {
            let mut queue = self.0.queue();
            queue.suspended = true;
            queue.jobs.clone()
        };
        for job in &jobs {
            let mut status = job.status();
            if status.busy && status.intent == Intent::Continue {
                status.intent = Intent::Suspend;
                status.stop.cancel();
            }
        }
        self.until(|| jobs.iter().all(|job| !job.status().busy)).await;
        self.save();
    }

    /// True while a model is fetched or queued.
    pub(crate) fn is_pending(&self, reference: &str) -> bool {
        let id = reference.split_once('@').map_or(reference, |(id, _)| id);
        self.job(id).is_ok_and(|job| {
            let status = job.status();
            status.busy || status.state == DownloadState::Queued
        })
    }

    /// True for a model whose download began and is not complete.
    pub(crate) fn is_unfinished(&self, reference: &str) -> bool {
        let id = reference.split_once('@').map_or(reference, |(id, _)| id);
        self.job(id).is_ok_and(|job| job.status().state != DownloadState::Done)
    }

    /// Continues the downloads that stopped because the app was offline. Called when it is online again.
    pub fn resume_offline(&self) {
        {
            let queue = self.0.queue();
            for job in &queue.jobs {
                let mut status = job.status();
                let code = status.error.as_ref().map(|error| error.code);
                if code == Some(ErrorCode::Offline) && !status.busy && status.state == DownloadState::Paused {
                    status.intent = Intent::Continue;
                    status.state = DownloadState::Queued;
                    status.error = None;
                }
            }
            self.0.save(&queue);
        }
        self.begin_next();
    }

    /// Waits until the download of this model ends, and takes it off the list if it is done.
    pub(crate) async fn ended(&self, id: &str) -> protocol::Result<()> {
        let mut downloads = self.watch();
        loop {
            if let Some(outcome) = self.outcome(id) {
                if outcome.is_ok() {
                    self.cancel(id).await?;
                }
                return outcome;
            }
            if downloads.changed().await.is_err() {
                let message = "Ponder is closing; what has arrived is kept";
                return Err(protocol::Error::new(ErrorCode::Stopped, message));
            }
        }
    }

    /// The blobs whose hash was checked.
    pub(crate) fn verified(&self) -> &VerifiedBlobs {
        &self.0.verified
    }

    /// The outcome of the download of this model; `None` before it ends.
    fn outcome(&self, id: &str) -> Option<protocol::Result<()>> {
        let message = "the download was stopped; what was here before is unchanged";
        let stopped = || protocol::Error::new(ErrorCode::Stopped, message);
        let Ok(job) = self.job(id) else {
            return Some(Err(stopped()));
        };
        let status = job.status();
        match status.state {
            _ if status.busy => None,
            DownloadState::Done => Some(Ok(())),
            DownloadState::Failed | DownloadState::Paused => Some(Err(status.error.clone().unwrap_or_else(stopped))),
            _ => None,
        }
    }

    /// Stores the queue after a job in it changed.
    fn save(&self) {
        self.0.save(&self.0.queue());
    }

    fn job(&self, id: &str) -> Result<Arc<DownloadJob>, Error> {
        let missing = || Error::NotFound(id.to_owned());
        let id = RepositoryId::new(id).map_err(|_| missing())?;
        self.0.queue().job(&id).ok_or_else(missing)
    }

    /// Waits until `enough` is true, checking whenever a task ends.
    async fn until(&self, enough: impl Fn() -> bool) {
        loop {
            let task_ended = self.0.task_ended.notified();
            tokio::pin!(task_ended);
            task_ended.as_mut().enable();
            if enough() {
                return;
            }
            task_ended.await;
        }
    }

    /// Starts the downloads at the head of the queue.
    fn begin_next(&self) {
        let limits = self.0.limits();
        let queue = self.0.queue();
        for job in queue.next(limits.models.max(1)) {
            {
                let mut status = job.status();
                status.busy = true;
                status.intent = Intent::Continue;
                status.stop = CancellationToken::new();
                status.state = DownloadState::Listing;
                status.error = None;
            }
            tokio::spawn(self.clone().work(job, Arc::clone(&limits)));
        }
        drop(queue);
        self.0.publish_now();
    }

    /// Works on a download until it ends.
    async fn work(self, job: Arc<DownloadJob>, limits: Arc<DownloadLimits>) {
        let ended = self.fetch_model(&job, limits).await;
        {
            let mut status = job.status();
            status.busy = false;
            status.retry_at = None;
            (status.state, status.error) = match (ended, status.intent) {
                (Ok(()), _) => (DownloadState::Done, None),
                (Err(Stop::Canceled), Intent::Pause) => (DownloadState::Paused, None),
                (Err(Stop::Canceled), Intent::Continue | Intent::Suspend | Intent::Cancel) => {
                    (DownloadState::Queued, None)
                }
                (Err(stop), _) => failed(&stop.into()),
            };
        }
        self.save();
        self.0.task_ended.notify_waiters();
        self.begin_next();
    }

    async fn fetch_model(&self, job: &Arc<DownloadJob>, limits: Arc<DownloadLimits>) -> Result<(), Stop> {
        let run = DownloadTask {
            api: self.0.api.clone(),
            repository: self.0.local.cache()?.repository(&job.id),
            limits,
            verified: Arc::clone(&self.0.verified),
        };
        run.fetch(job).await
    }
}

/// The state of a failed download. A fault that the user can solve, such as a full disk, pauses it.
fn failed(error: &protocol::Error) -> (DownloadState, Option<protocol::Error>) {
    let state = match error.code {
        ErrorCode::DiskFull | ErrorCode::Offline => DownloadState::Paused,
        _ => DownloadState::Failed,
    };
    (state, Some(error.clone()))
}
