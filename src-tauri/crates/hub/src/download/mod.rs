//! Fetching models: in ranges, with the hash following the bytes, into the standard cache, so that a model is there whole and
//! right or not at all.
//!
//! ```text
//! queue ─ job ─ run: file list ─ fetch (one file): lock ─ connections ─► writer: disk, record, hash ─► its name
//!                     └ links of all files, the revision last
//! ```

mod cleanup;
mod download_task;
mod file;
mod limits;
mod queue;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use api::{Download, DownloadState};
use protocol::ErrorCode;
use tokio::sync::{watch, Notify};
use tokio_util::sync::CancellationToken;

pub use limits::TransferLimits;

use self::cleanup::remove_leftovers;
use self::download_task::DownloadTask;
use self::file::halt::Halt;
use self::file::verified_blobs::VerifiedBlobs;
use self::queue::job::{DownloadJob, Intent};
use self::queue::Queue;
use crate::cache::{RepositoryId, Revision};
use crate::{Error, Hub, Inner};

/// The shortest time between two lists of downloads for the windows.
const PUBLISH_EVERY: Duration = Duration::from_millis(200);

/// All downloads of this process.
#[derive(Debug)]
pub(crate) struct Transfers {
    queue: Mutex<Queue>,
    limits: Mutex<Arc<TransferLimits>>,
    pub(crate) verified: Arc<VerifiedBlobs>,
    published: watch::Sender<Vec<Download>>,
    changed: Arc<Notify>,
    /// Whether the task that publishes changes was started.
    publishing: Mutex<bool>,
    /// Notified when a task that worked on a download has ended.
    task_ended: Notify,
}

impl Default for Transfers {
    fn default() -> Self {
        Self {
            queue: Mutex::default(),
            limits: Mutex::default(),
            verified: Arc::default(),
            published: watch::Sender::new(Vec::new()),
            changed: Arc::default(),
            publishing: Mutex::new(false),
            task_ended: Notify::new(),
        }
    }
}

impl Transfers {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes the downloads for the windows; returns whether one runs.
    fn publish(&self) -> bool {
        // The queue stays locked while it is published, so that nothing older is published last.
        let queue = self.queue();
        let shown: Vec<Download> = queue.jobs.iter().map(|job| job.show()).collect();
        self.published.send_if_modified(|before| {
            let other = *before != shown;
            *before = shown;
            other
        });
        queue.jobs.iter().any(|job| job.status().busy)
    }

    /// Stores the queue. If that fails, the downloads continue; only the next start would not know of them.
    fn save(&self, queue: &Queue) {
        if let Err(error) = queue.save() {
            tracing::warn!("the list of downloads is not kept: {error}");
        }
        self.changed.notify_one();
    }
}

impl Drop for Transfers {
    fn drop(&mut self) {
        // The task that publishes changes then sees that nobody is left.
        self.changed.notify_one();
    }
}

/// All of these run inside the Tokio runtime.
impl Hub {
    /// Sets the limits of the downloads that begin from here on.
    pub fn set_limits(&self, limits: TransferLimits) {
        *self.0.transfers.limits.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(limits);
    }

    /// How long the hub may take to answer.
    pub(crate) fn answer_timeout(&self) -> Duration {
        self.0
            .transfers
            .limits
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .stall
    }

    /// Continues the downloads that were running when the app was closed or crashed, and stores the list from here on. The app
    /// calls it at its start. Whether they are this process's now: if another process has them, nothing happens.
    ///
    /// # Errors
    /// [`Error::Write`] if the data folder cannot be written.
    pub async fn resume_pending(&self) -> Result<bool, Error> {
        let (taken, ours) = {
            let mut queue = self.0.transfers.queue();
            let taken = queue.resume_pending(self.data_dir())?;
            self.0.transfers.save(&queue);
            (taken, queue.is_stored())
        };
        if taken && self.net().is_offline() {
            self.begin_next();
        } else if taken {
            self.resume_offline();
        }
        self.publish_now();
        Ok(ours)
    }

    /// Fetches a model: it is put at the end of the queue. One that is there already continues.
    ///
    /// # Errors
    /// [`Error::Name`] for an id or a revision that is none, [`Error::NoHome`] if there is no place for models,
    /// [`Error::Fetching`] while another revision of it is fetched.
    pub async fn download(&self, id: &str, revision: &str) -> Result<(), Error> {
        let (id, revision) = (RepositoryId::new(id)?, Revision::new(revision)?);
        self.folder().cache()?;
        {
            let mut queue = self.0.transfers.queue();
            if let Some(job) = queue.job(&id) {
                let mut status = job.status();
                let over = !status.busy && status.state != DownloadState::Queued;
                if !over && job.revision != revision {
                    return Err(Error::Fetching { id: id.to_string() });
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
            self.0.transfers.save(&queue);
        }
        self.begin_next();
        Ok(())
    }

    /// All downloads in their order, published about five times a second while something changes. Those that are done or failed
    /// stay until [`Hub::cancel`] takes them off.
    pub fn downloads(&self) -> watch::Receiver<Vec<Download>> {
        self.0.transfers.published.subscribe()
    }

    /// Stops a download where it is, until [`Hub::resume`].
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
        self.0.transfers.save(&self.0.transfers.queue());
        self.begin_next();
        Ok(())
    }

    /// Continues a download that was paused or failed where it was.
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
        self.0.transfers.save(&self.0.transfers.queue());
        self.begin_next();
        Ok(())
    }

    /// Ends a download and removes what it fetched and nothing else uses; takes one that is done off the list and leaves its model.
    /// Returns when that is done.
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
        self.0.transfers.save(&self.0.transfers.queue());
        self.until(|| !job.status().busy).await;
        let done = job.status().state == DownloadState::Done;
        {
            let mut queue = self.0.transfers.queue();
            queue.jobs.retain(|other| !Arc::ptr_eq(other, &job));
            self.0.transfers.save(&queue);
        }
        if !done {
            let repository = self.folder().cache()?.repository(&job.id);
            tokio::task::spawn_blocking(move || remove_leftovers(&repository))
                .await
                .map_err(|_| Error::Broken)?;
        }
        self.begin_next();
        Ok(())
    }

    /// Moves a download to a place in the order; 0 is the first. One that runs is not stopped by it.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none of this model.
    pub async fn reorder(&self, id: &str, place: usize) -> Result<(), Error> {
        let job = self.job(id)?;
        let mut queue = self.0.transfers.queue();
        queue.move_to(&job.id, place);
        self.0.transfers.save(&queue);
        drop(queue);
        self.publish_now();
        Ok(())
    }

    /// Stops everything, so that the app can close; the next start continues. Returns when everything is stored.
    pub async fn suspend(&self) {
        let jobs = {
            let mut queue = self.0.transfers.queue();
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
        self.0.transfers.save(&self.0.transfers.queue());
    }

    /// Whether a model is being fetched, or waits for its turn.
    pub(crate) fn fetches(&self, reference: &str) -> bool {
        let id = reference.split_once('@').map_or(reference, |(id, _)| id);
        self.job(id).is_ok_and(|job| {
            let status = job.status();
            status.busy || status.state == DownloadState::Queued
        })
    }

    /// Whether a download of this model was begun and has not brought all of it.
    pub(crate) fn unfinished(&self, reference: &str) -> bool {
        let id = reference.split_once('@').map_or(reference, |(id, _)| id);
        self.job(id).is_ok_and(|job| job.status().state != DownloadState::Done)
    }

    /// Continues the downloads that stopped because the network was not to be used. Called when it may be used again.
    pub fn resume_offline(&self) {
        {
            let queue = self.0.transfers.queue();
            for job in &queue.jobs {
                let mut status = job.status();
                let offline = status
                    .error
                    .as_ref()
                    .is_some_and(|error| error.code == ErrorCode::Offline);
                if offline && !status.busy && status.state == DownloadState::Paused {
                    status.intent = Intent::Continue;
                    status.state = DownloadState::Queued;
                    status.error = None;
                }
            }
            self.0.transfers.save(&queue);
        }
        self.begin_next();
    }

    /// How the download of this model ended; `None` before it has.
    pub(crate) fn outcome(&self, id: &str) -> Option<protocol::Result<()>> {
        let stopped = || {
            protocol::Error::new(
                ErrorCode::Stopped,
                "the download was stopped; what was here before is unchanged",
            )
        };
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

    fn job(&self, id: &str) -> Result<Arc<DownloadJob>, Error> {
        let missing = || Error::NotFound {
            reference: id.to_owned(),
        };
        let id = RepositoryId::new(id).map_err(|_| missing())?;
        self.0.transfers.queue().job(&id).ok_or_else(missing)
    }

    /// Waits for tasks to end until `enough`.
    async fn until(&self, enough: impl Fn() -> bool) {
        loop {
            let task_ended = self.0.transfers.task_ended.notified();
            tokio::pin!(task_ended);
            task_ended.as_mut().enable();
            if enough() {
                return;
            }
            task_ended.await;
        }
    }

    /// Starts those at the head of the queue.
    fn begin_next(&self) {
        let limits = Arc::clone(&self.0.transfers.limits.lock().unwrap_or_else(PoisonError::into_inner));
        let queue = self.0.transfers.queue();
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
        self.publish_now();
    }

    /// Works on a download until it ends, whatever the end.
    async fn work(self, job: Arc<DownloadJob>, limits: Arc<TransferLimits>) {
        let ended = self.fetch_model(&job, limits).await;
        {
            let mut status = job.status();
            status.busy = false;
            status.retry_at = None;
            let (state, error) = match (ended, status.intent) {
                (Ok(()), _) => (DownloadState::Done, None),
                (Err(Halt::Stopped), Intent::Pause) => (DownloadState::Paused, None),
                (Err(Halt::Stopped), Intent::Continue | Intent::Suspend | Intent::Cancel) => {
                    (DownloadState::Queued, None)
                }
                (Err(halt), _) => failed(&halt.into()),
            };
            status.state = state;
            status.error = error;
        }
        self.0.transfers.save(&self.0.transfers.queue());
        self.0.transfers.task_ended.notify_waiters();
        self.begin_next();
    }

    async fn fetch_model(&self, job: &Arc<DownloadJob>, limits: Arc<TransferLimits>) -> Result<(), Halt> {
        let run = DownloadTask {
            hub: self.clone(),
            repository: self.folder().cache()?.repository(&job.id),
            limits,
            verified: Arc::clone(&self.0.transfers.verified),
        };
        run.fetch(job).await
    }

    /// Publishes the downloads at once, because somebody acted, and starts the task that keeps them up to date.
    fn publish_now(&self) {
        self.0.transfers.publish();
        let mut publishing = self
            .0
            .transfers
            .publishing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut *publishing, true) {
            tokio::spawn(publish_changes(
                Arc::downgrade(&self.0),
                Arc::clone(&self.0.transfers.changed),
            ));
        }
        self.0.transfers.changed.notify_one();
    }
}

/// Publishes the downloads five times a second while something runs, and once more at its end.
async fn publish_changes(inner: Weak<Inner>, changed: Arc<Notify>) {
    loop {
        let Some(inner) = inner.upgrade() else { return };
        let busy = inner.transfers.publish();
        drop(inner);
        tokio::time::sleep(PUBLISH_EVERY).await;
        if !busy {
            changed.notified().await;
        }
    }
}

/// The state of a download that went wrong. One that the user can solve, such as a full disk, pauses it.
fn failed(error: &protocol::Error) -> (DownloadState, Option<protocol::Error>) {
    let state = match error.code {
        ErrorCode::DiskFull | ErrorCode::Offline => DownloadState::Paused,
        _ => DownloadState::Failed,
    };
    (state, Some(error.clone()))
}
