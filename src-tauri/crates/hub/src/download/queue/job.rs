//! One model that is being fetched, as the queue and the windows know it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use api::{Download, DownloadState};
use tokio_util::sync::CancellationToken;

use super::super::file::progress::{after, DownloadItem, RateMeter};
use crate::cache::{Commit, RepositoryId, Revision};

/// What the user, or the end of the app, wants of a running download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intent {
    /// It continues.
    Continue,
    /// It stops until it is resumed.
    Pause,
    /// It stops and continues with the next start of the app.
    Suspend,
    /// It stops, and what it fetched is removed.
    Cancel,
}

/// A download.
#[derive(Debug)]
pub struct DownloadJob {
    /// The model.
    pub id: RepositoryId,
    /// The revision that was asked for.
    pub revision: Revision,
    status: Mutex<JobStatus>,
}

/// The changing part of a download.
#[derive(Debug)]
pub struct JobStatus {
    /// Where it is.
    pub state: DownloadState,
    /// Whether a task works on it, which may be ending.
    pub busy: bool,
    /// What is wanted of it.
    pub intent: Intent,
    /// Ends the task that works on it.
    pub stop: CancellationToken,
    /// The commit, once it is known.
    pub commit: Option<Commit>,
    /// What is fetched, once it is known.
    pub items: Vec<Arc<DownloadItem>>,
    /// What went wrong, if it waits, is paused or failed.
    pub error: Option<protocol::Error>,
    /// When it continues by itself.
    pub retry_at: Option<i64>,
    rate: RateMeter,
}

impl DownloadJob {
    /// A download in this state, with nothing known about its files.
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

    /// Its present state.
    pub fn status(&self) -> MutexGuard<'_, JobStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that it waits, because of `error`, for `wait`.
    pub fn waits(&self, error: protocol::Error, wait: Duration) {
        let mut status = self.status();
        status.state = DownloadState::Waiting;
        status.error = Some(error);
        status.retry_at = Some(after(wait));
    }

    /// Notes that it continues.
    pub fn works(&self, state: DownloadState) {
        let mut status = self.status();
        status.state = state;
        status.error = None;
        status.retry_at = None;
    }

    /// What the windows are shown.
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

/// The state of a download while its files are fetched: it waits if some wait and none moves, and verifies while the rest is read.
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
