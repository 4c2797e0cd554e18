//! The state that all downloads of this process share.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use api::Download;
use tokio::sync::{watch, Notify};

use super::file::verified_blobs::VerifiedBlobs;
use super::limits::DownloadLimits;
use super::queue::Queue;
use crate::huggingface::HubApi;
use crate::local::model_folder::ModelFolder;

/// The shortest time between two lists of downloads for the windows.
const PUBLISH_EVERY: Duration = Duration::from_millis(200);

/// The queue, the limits, and the list that windows see.
#[derive(Debug)]
pub struct Shared {
    /// The calls to the hub.
    pub api: HubApi,
    /// The models on this computer.
    pub local: ModelFolder,
    /// The folder where the queue is stored.
    pub data_dir: PathBuf,
    /// Blobs whose hash was checked.
    pub verified: Arc<VerifiedBlobs>,
    /// Notified when a task that worked on a download has ended.
    pub task_ended: Notify,
    queue: Mutex<Queue>,
    limits: Mutex<Arc<DownloadLimits>>,
    published: watch::Sender<Vec<Download>>,
    changed: Arc<Notify>,
    /// True once the task that publishes changes was started.
    publishing: Mutex<bool>,
}

impl Shared {
    /// No downloads yet.
    pub fn new(api: HubApi, local: ModelFolder, data_dir: &Path) -> Self {
        Self {
            api,
            local,
            data_dir: data_dir.to_owned(),
            verified: Arc::default(),
            task_ended: Notify::new(),
            queue: Mutex::default(),
            limits: Mutex::default(),
            published: watch::Sender::new(Vec::new()),
            changed: Arc::default(),
            publishing: Mutex::new(false),
        }
    }

    /// The queue, locked.
    pub fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The limits of the downloads that begin now.
    pub fn limits(&self) -> Arc<DownloadLimits> {
        Arc::clone(&self.limits.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sets the limits of the downloads that begin from here on.
    pub fn set_limits(&self, limits: DownloadLimits) {
        self.api.set_answer_timeout(limits.stall);
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(limits);
    }

    /// The list that windows see.
    pub fn subscribe(&self) -> watch::Receiver<Vec<Download>> {
        self.published.subscribe()
    }

    /// Stores the queue. If that fails, the downloads continue; only the next start would not know of them.
    pub fn save(&self, queue: &Queue) {
        if let Err(error) = queue.save() {
            tracing::warn!("the list of downloads is not kept: {error}");
        }
        self.changed.notify_one();
    }

    /// Publishes the downloads at once, because the user acted, and starts the task that keeps the list current.
    pub fn publish_now(self: &Arc<Self>) {
        self.publish();
        let mut publishing = self.publishing.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut *publishing, true) {
            tokio::spawn(publish_changes(Arc::downgrade(self), Arc::clone(&self.changed)));
        }
        self.changed.notify_one();
    }

    /// Publishes the downloads for the windows; returns true while one runs.
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
}

impl Drop for Shared {
    fn drop(&mut self) {
        // The task that publishes changes then sees that nobody is left.
        self.changed.notify_one();
    }
}

/// Publishes the downloads five times a second while one runs, and once more at its end.
async fn publish_changes(shared: Weak<Shared>, changed: Arc<Notify>) {
    loop {
        let Some(shared) = shared.upgrade() else { return };
        let busy = shared.publish();
        drop(shared);
        tokio::time::sleep(PUBLISH_EVERY).await;
        if !busy {
            changed.notified().await;
        }
    }
}
