//! Fetching models: in ranges, with the hash following the bytes, into the standard cache, so that a model is there whole and
//! right or not at all.
//!
//! ```text
//! queue ─ job ─ run: file list ─ fetch (one file): lock ─ connections ─► writer: disk, record, hash ─► its name
//!                     └ links of all files, the revision last
//! ```

mod address;
mod clear;
mod connections;
mod course;
mod fetch;
mod front;
mod job;
mod judge;
mod pace;
mod partial;
mod parts;
mod progress;
mod queue;
mod room;
mod run;
mod seen;
mod stretches;
mod writer;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use protocol::{Download, DownloadState, ErrorCode};
use tokio::sync::{watch, Notify};
use tokio_util::sync::CancellationToken;

pub use pace::Pace;

use self::clear::clear;
use self::course::Halt;
use self::job::{Job, Wish};
use self::queue::Queue;
use self::run::Run;
use self::seen::Seen;
use crate::layout::{RepositoryId, Revision};
use crate::{Error, Hub, Rooms};

/// How often the windows are told about downloads at most.
const TELL_EVERY: Duration = Duration::from_millis(200);

/// All downloads of this process.
#[derive(Debug)]
pub(crate) struct Transfers {
    queue: Mutex<Queue>,
    pace: Mutex<Arc<Pace>>,
    pub(crate) seen: Arc<Seen>,
    told: watch::Sender<Vec<Download>>,
    changed: Arc<Notify>,
    /// Whether the task that tells the windows was started.
    telling: Mutex<bool>,
    /// Told when a task that worked on a download has ended.
    rested: Notify,
}

impl Default for Transfers {
    fn default() -> Self {
        Self {
            queue: Mutex::default(),
            pace: Mutex::default(),
            seen: Arc::default(),
            told: watch::Sender::new(Vec::new()),
            changed: Arc::default(),
            telling: Mutex::new(false),
            rested: Notify::new(),
        }
    }
}

impl Transfers {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the windows what is the case; whether something runs.
    fn publish(&self) -> bool {
        // The order holds while it is told, so that nothing older is told last.
        let queue = self.queue();
        let shown: Vec<Download> = queue.jobs.iter().map(|job| job.show()).collect();
        self.told.send_if_modified(|before| {
            let other = *before != shown;
            *before = shown;
            other
        });
        queue.jobs.iter().any(|job| job.now().busy)
    }

    /// Writes the queue down. Where that fails the downloads go on; only the next start would not know of them.
    fn keep(&self, queue: &Queue) {
        if let Err(error) = queue.keep() {
            tracing::warn!("the list of downloads is not kept: {error}");
        }
        self.changed.notify_one();
    }
}

impl Drop for Transfers {
    fn drop(&mut self) {
        // The task that tells the windows looks whether anybody is left.
        self.changed.notify_one();
    }
}

/// All of these run inside the Tokio runtime.
impl Hub {
    /// Sets the limits of the downloads that begin from here on.
    pub fn set_pace(&self, pace: Pace) {
        *self.0.transfers.pace.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(pace);
    }

    /// How long the hub may take to answer.
    pub(crate) fn patience(&self) -> Duration {
        self.0.transfers.pace.lock().unwrap_or_else(PoisonError::into_inner).stall
    }

    /// Goes on with the downloads that were under way when the app was closed or broke, and keeps the list from here on. The app
    /// calls it once at its start. Where another process does so already, nothing happens.
    ///
    /// # Errors
    /// [`Error::Write`] where the data folder cannot be written.
    pub async fn go_on(&self) -> Result<(), Error> {
        let taken = {
            let mut queue = self.0.transfers.queue();
            let taken = queue.take_up(self.data_dir())?;
            self.0.transfers.keep(&queue);
            taken
        };
        if taken {
            self.begin_next();
        }
        self.tell();
        Ok(())
    }

    /// Fetches a model: it is put at the end of the line. A download of it that is there already goes on.
    ///
    /// # Errors
    /// [`Error::Name`] for an id or a revision that is none, [`Error::NoHome`] where there is no place for models,
    /// [`Error::Fetching`] while another revision of it is fetched.
    pub async fn download(&self, id: &str, revision: &str) -> Result<(), Error> {
        let (id, revision) = (RepositoryId::new(id)?, Revision::new(revision)?);
        self.folder().cache()?;
        {
            let mut queue = self.0.transfers.queue();
            if let Some(job) = queue.job(&id) {
                let mut now = job.now();
                let over = !now.busy && now.state != DownloadState::Queued;
                if !over && job.revision != revision {
                    return Err(Error::Fetching { id: id.to_string() });
                }
                if !over {
                    // What was about to stop goes on behind that.
                    now.wish = Wish::GoOn;
                    return Ok(());
                }
                drop(now);
                queue.remove(&id);
            }
            queue.resting = false;
            queue.jobs.push(Arc::new(Job::new(id, revision, DownloadState::Queued)));
            self.0.transfers.keep(&queue);
        }
        self.begin_next();
        Ok(())
    }

    /// All downloads in their order, told again about five times a second while something changes. Those that are done or failed
    /// stay until they are taken away with [`Hub::cancel`].
    pub fn downloads(&self) -> watch::Receiver<Vec<Download>> {
        self.0.transfers.told.subscribe()
    }

    /// Stops a download where it is, until [`Hub::resume`].
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is none of this model.
    pub async fn pause(&self, id: &str) -> Result<(), Error> {
        let job = self.job(id)?;
        {
            let mut now = job.now();
            if now.busy {
                now.wish = Wish::Pause;
                now.stop.cancel();
            } else if now.state == DownloadState::Queued {
                now.state = DownloadState::Paused;
            }
        }
        self.0.transfers.keep(&self.0.transfers.queue());
        self.begin_next();
        Ok(())
    }

    /// Lets a download that was paused or failed go on where it was.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is none of this model.
    pub async fn resume(&self, id: &str) -> Result<(), Error> {
        let job = self.job(id)?;
        {
            let mut now = job.now();
            now.wish = Wish::GoOn;
            if !now.busy && matches!(now.state, DownloadState::Paused | DownloadState::Failed) {
                now.state = DownloadState::Queued;
                now.error = None;
            }
        }
        self.0.transfers.keep(&self.0.transfers.queue());
        self.begin_next();
        Ok(())
    }

    /// Ends a download and removes what it fetched and nothing else uses; takes one that is done off the list and leaves its model.
    /// Comes back when that is so.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is none of this model.
    pub async fn cancel(&self, id: &str) -> Result<(), Error> {
        let job = self.job(id)?;
        {
            let mut now = job.now();
            if now.busy {
                now.wish = Wish::Cancel;
                now.stop.cancel();
            }
        }
        self.0.transfers.keep(&self.0.transfers.queue());
        self.until(|| !job.now().busy).await;
        let done = job.now().state == DownloadState::Done;
        {
            let mut queue = self.0.transfers.queue();
            queue.jobs.retain(|other| !Arc::ptr_eq(other, &job));
            self.0.transfers.keep(&queue);
        }
        if !done {
            let repository = self.folder().cache()?.repository(&job.id);
            tokio::task::spawn_blocking(move || clear(&repository))
                .await
                .map_err(|_| Error::Broken)?;
        }
        self.begin_next();
        Ok(())
    }

    /// Moves a download to a place in the order; 0 is the first. One that runs is not stopped by it.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is none of this model.
    pub async fn reorder(&self, id: &str, place: usize) -> Result<(), Error> {
        let job = self.job(id)?;
        let mut queue = self.0.transfers.queue();
        queue.put(&job.id, place);
        self.0.transfers.keep(&queue);
        drop(queue);
        self.tell();
        Ok(())
    }

    /// Stops everything, so that the app can close; the next start goes on. Comes back when all is written down.
    pub async fn rest(&self) {
        let jobs = {
            let mut queue = self.0.transfers.queue();
            queue.resting = true;
            queue.jobs.clone()
        };
        for job in &jobs {
            let mut now = job.now();
            if now.busy && now.wish == Wish::GoOn {
                now.wish = Wish::Rest;
                now.stop.cancel();
            }
        }
        self.until(|| jobs.iter().all(|job| !job.now().busy)).await;
        self.0.transfers.keep(&self.0.transfers.queue());
    }

    /// Whether a model is being fetched, or waits for its turn.
    pub(crate) fn fetches(&self, reference: &str) -> bool {
        let id = reference.split_once('@').map_or(reference, |(id, _)| id);
        self.job(id).is_ok_and(|job| {
            let now = job.now();
            now.busy || now.state == DownloadState::Queued
        })
    }

    /// How the download of this model ended; `None` before it has.
    pub(crate) fn outcome(&self, id: &str) -> Option<protocol::Result<()>> {
        let stopped = || protocol::Error::new(ErrorCode::Stopped, "the download was stopped; what was here before is unchanged");
        let Ok(job) = self.job(id) else { return Some(Err(stopped())) };
        let now = job.now();
        match now.state {
            _ if now.busy => None,
            DownloadState::Done => Some(Ok(())),
            DownloadState::Failed | DownloadState::Paused => Some(Err(now.error.clone().unwrap_or_else(stopped))),
            _ => None,
        }
    }

    fn job(&self, id: &str) -> Result<Arc<Job>, Error> {
        let missing = || Error::NotFound { reference: id.to_owned() };
        let id = RepositoryId::new(id).map_err(|_| missing())?;
        self.0.transfers.queue().job(&id).ok_or_else(missing)
    }

    /// Waits for tasks to end until `enough`.
    async fn until(&self, enough: impl Fn() -> bool) {
        loop {
            let rested = self.0.transfers.rested.notified();
            tokio::pin!(rested);
            rested.as_mut().enable();
            if enough() {
                return;
            }
            rested.await;
        }
    }

    /// Begins those at the head of the line.
    fn begin_next(&self) {
        let pace = Arc::clone(&self.0.transfers.pace.lock().unwrap_or_else(PoisonError::into_inner));
        let queue = self.0.transfers.queue();
        for job in queue.next(pace.models.max(1)) {
            {
                let mut now = job.now();
                now.busy = true;
                now.wish = Wish::GoOn;
                now.stop = CancellationToken::new();
                now.state = DownloadState::Listing;
                now.error = None;
            }
            tokio::spawn(self.clone().work(job, Arc::clone(&pace)));
        }
        drop(queue);
        self.tell();
    }

    /// Works on a download until it ends, whatever the end.
    async fn work(self, job: Arc<Job>, pace: Arc<Pace>) {
        let ended = self.fetch_model(&job, pace).await;
        {
            let mut now = job.now();
            now.busy = false;
            now.retry_at = None;
            let (state, error) = match (ended, now.wish) {
                (Ok(()), _) => (DownloadState::Done, None),
                (Err(Halt::Stopped), Wish::Pause) => (DownloadState::Paused, None),
                (Err(Halt::Stopped), Wish::GoOn | Wish::Rest | Wish::Cancel) => (DownloadState::Queued, None),
                (Err(halt), _) => failed(&halt.into()),
            };
            now.state = state;
            now.error = error;
        }
        self.0.transfers.keep(&self.0.transfers.queue());
        self.0.transfers.rested.notify_waiters();
        self.begin_next();
    }

    async fn fetch_model(&self, job: &Arc<Job>, pace: Arc<Pace>) -> Result<(), Halt> {
        let run = Run {
            hub: self.clone(),
            repository: self.folder().cache()?.repository(&job.id),
            pace,
            seen: Arc::clone(&self.0.transfers.seen),
        };
        run.fetch(job).await
    }

    /// Tells the windows at once, because somebody acted, and starts the task that goes on telling them.
    fn tell(&self) {
        self.0.transfers.publish();
        let mut telling = self.0.transfers.telling.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut *telling, true) {
            tokio::spawn(tell(Arc::downgrade(&self.0), Arc::clone(&self.0.transfers.changed)));
        }
        self.0.transfers.changed.notify_one();
    }
}

/// Tells the windows about downloads, five times a second while something runs, and once more at its end.
async fn tell(rooms: Weak<Rooms>, changed: Arc<Notify>) {
    loop {
        let Some(rooms) = rooms.upgrade() else { return };
        let busy = rooms.transfers.publish();
        drop(rooms);
        tokio::time::sleep(TELL_EVERY).await;
        if !busy {
            changed.notified().await;
        }
    }
}

/// The state of a download that went wrong. What a person mends beside it, such as a full disk, is a pause.
fn failed(error: &protocol::Error) -> (DownloadState, Option<protocol::Error>) {
    let state = match error.code {
        ErrorCode::DiskFull | ErrorCode::Offline => DownloadState::Paused,
        _ => DownloadState::Failed,
    };
    (state, Some(error.clone()))
}

impl From<Halt> for protocol::Error {
    fn from(halt: Halt) -> Self {
        match halt {
            Halt::Failed(error) => error.into(),
            Halt::Stopped => protocol::Error::new(ErrorCode::Stopped, "the download was stopped; what has come is kept"),
            Halt::Changed(reason) | Halt::StartOver(reason) => {
                protocol::Error::new(ErrorCode::Corrupt, format!("{reason}; nothing wrong was kept, try again later"))
            }
        }
    }
}
