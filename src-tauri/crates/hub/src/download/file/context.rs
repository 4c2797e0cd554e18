//! What the files of one download share while it runs.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::super::limits::DownloadLimits;
use super::stop::Stop;
use super::verified_blobs::VerifiedBlobs;
use crate::cache::{Commit, Repository};

/// What the files of one download share.
#[derive(Debug)]
pub struct DownloadContext {
    /// Where its files go.
    pub repository: Repository,
    /// The commit that is fetched.
    pub commit: Commit,
    /// Its limits.
    pub limits: Arc<DownloadLimits>,
    /// Ends it.
    pub stop: CancellationToken,
    /// One permit for each connection.
    pub connections: Semaphore,
    /// Blobs that were read and found right.
    pub verified: Arc<VerifiedBlobs>,
    hold: Mutex<Option<Instant>>,
}

impl DownloadContext {
    /// A download that begins.
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

    /// Lets no file ask the server for this long, because the server wants that.
    pub fn hold_off(&self, wait: Duration) {
        let until = Instant::now() + wait.min(self.limits.longest_asked_delay);
        let mut hold = self.hold.lock().unwrap_or_else(PoisonError::into_inner);
        *hold = Some(hold.map_or(until, |held| held.max(until)));
    }

    /// Waits until the server wants to be asked again.
    pub async fn held_off(&self) {
        let until = *self.hold.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(until) = until {
            tokio::time::sleep_until(until.into()).await;
        }
    }

    /// Sleeps, unless it is stopped.
    ///
    /// # Errors
    /// [`Stop::Canceled`].
    pub async fn sleep(&self, wait: Duration) -> Result<(), Stop> {
        tokio::select! {
            () = self.stop.cancelled() => Err(Stop::Canceled),
            () = tokio::time::sleep(wait) => Ok(()),
        }
    }
}
