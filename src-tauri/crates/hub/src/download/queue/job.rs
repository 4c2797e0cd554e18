//! One model that is fetched, as the queue and the windows know it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use api::{Download, DownloadState};
use tokio_util::sync::CancellationToken;

use super::super::file::progress::{after, DownloadItem, RateMeter};
use crate::cache::{Commit, RepositoryId, Revision};

/// The wish of the user, or of the app at its end, for a running download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intent {
    /// It continues.
    Continue,
    /// It stops until it is resumed.
    Pause,
    /// It stops, and the next start of the app continues it.
    Suspend,
    /// It stops, and its files are removed.
    Cancel,
}

/// A download.
#[derive(Debug)]
pub struct DownloadJob {
    /// The model.
    pub id: RepositoryId,
    /// The requested revision.
    pub revision: Revision,
    status: Mutex<JobStatus>,
}

/// The changing part of a download.
#[derive(Debug)]
pub struct JobStatus {
    /// The state.
    pub state: DownloadState,
    /// True while a task works on it, even one that is ending.
    pub busy: bool,
    /// The wish for it.
    pub intent: Intent,
    /// Cancels the task that works on it.
    pub stop: CancellationToken,
    /// The commit, once known.
    pub commit: Option<Commit>,
    /// The blobs to fetch, once known.
    pub items: Vec<Arc<DownloadItem>>,
    /// The reason why it waits, is paused or failed.
    pub error: Option<protocol::Error>,
    /// The time at which it continues by itself, in milliseconds since 1970.
    pub retry_at: Option<i64>,
    rate: RateMeter,
}

impl DownloadJob {
    /// A download in this state, with unknown files.
    pub fn new(id: RepositoryId, revision: Revision, state: DownloadState) -> Self {
        Self {
            id,
            revision,
            status: Mutex::new(JobStatus {
                state,
                busy: false,
                intent: Intent::Continue,
                stop: CancellationToken::new(),
                commit: None,
                items: Vec::new(),
                error: None,
                retry_at: None,
                rate: RateMeter::default(),
            }),
        }
    }

    /// The present state, locked.
    pub fn status(&self) -> MutexGuard<'_, JobStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that it waits for this time, and the reason.
    pub fn waits(&self, error: protocol::Error, wait: Duration) {
        let mut status = self.status();
        status.state = DownloadState::Waiting;
        status.error = Some(error);
        status.retry_at = Some(after(wait));
    }

    /// Records that it continues.
    pub fn works(&self, state: DownloadState) {
        let mut status = self.status();
        status.state = state;
        status.error = None;
        status.retry_at = None;
    }

    /// The download as windows see it.
    pub fn show(&self) -> Download {
        let mut status = self.status();
        let done = status.items.iter().map(|item| item.done()).sum();
        let total = status.items.iter().map(|item| item.size).sum();
        let (mut state, mut error, mut retry_at) = (status.state, status.error.clone(), status.retry_at);
        if state == DownloadState::Running {
            status.rate.sample(Instant::now(), done);
            (state, error, retry_at) = among(&status.items);
        } else {
            status.rate.reset();
        }
        let bytes_per_second = status.rate.bytes_per_second();
        let left = bytes_per_second > 0.0 && state == DownloadState::Running;
        Download {
            id: self.id.to_string(),
            revision: self.revision.to_string(),
            commit: status.commit.as_ref().map(ToString::to_string),
            state,
            files: status.items.iter().flat_map(|item| item.files()).collect(),
            done,
            total,
            bytes_per_second,
            seconds_left: left.then(|| (total - done.min(total)) as f64 / bytes_per_second),
            retry_at,
            error,
        }
    }
}

/// The state of a download while its files are fetched: waiting if some wait and none arrives, verifying while the rest
/// is read.
fn among(items: &[Arc<DownloadItem>]) -> (DownloadState, Option<protocol::Error>, Option<i64>) {
    let any = |state| items.iter().any(|item| item.state() == state);
    if any(DownloadState::Running) {
        return (DownloadState::Running, None, None);
    }
    if let Some((error, at)) = items.iter().find_map(|item| item.waits_for()) {
        return (DownloadState::Waiting, Some(error), Some(at));
    }
    if any(DownloadState::Verifying) {
        return (DownloadState::Verifying, None, None);
    }
    (DownloadState::Running, None, None)
}
