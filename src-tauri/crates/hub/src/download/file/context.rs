//! The state that the files of one download share.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::super::limits::DownloadLimits;
use super::verified_blobs::VerifiedBlobs;
use crate::cache::{Commit, Repository};

/// The state that the files of one download share.
#[derive(Debug)]
pub struct DownloadContext {
    /// The repository in the cache.
    pub repository: Repository,
    /// The commit.
    pub commit: Commit,
    /// The limits.
    pub limits: Arc<DownloadLimits>,
    /// Cancels the download.
    pub stop: CancellationToken,
    /// One permit per connection.
    pub connections: Semaphore,
    /// Blobs whose hash was checked.
    pub verified: Arc<VerifiedBlobs>,
    hold: Mutex<Option<Instant>>,
}

impl DownloadContext {
    /// The state at the beginning.
    pub fn new(
        repository: Repository,
        commit: Commit,
        limits: Arc<DownloadLimits>,
        stop: CancellationToken,
        verified: Arc<VerifiedBlobs>,
    ) -> Self {
        Self {
            repository,
            commit,
            connections: Semaphore::new(limits.connections.max(1)),
            limits,
            stop,
            verified,
            hold: Mutex::default(),
        }
    }

    /// Sends no request for this time, because the server asked for that.
    pub fn hold_off(&self, wait: Duration) {
        let until = Instant::now() + wait.min(self.limits.longest_asked_delay);
        let mut hold = self.hold.lock().unwrap_or_else(PoisonError::into_inner);
        *hold = Some(hold.map_or(until, |held| held.max(until)));
    }

    /// Waits until the server accepts requests again.
    pub async fn held_off(&self) {
        let until = *self.hold.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(until) = until {
            tokio::time::sleep_until(until.into()).await;
        }
    }
}
