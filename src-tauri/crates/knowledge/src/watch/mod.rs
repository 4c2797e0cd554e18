//! Watching a collection by the system's notifications: it tells when a walk is worth it again.
//!
//! Every folder that the walk would visit has a watch of its own, because a recursive one would take in those that are
//! left out. So have the folders on the way to the collection, which tell when it is moved or comes back. After a
//! change among folders the watches are placed first and the change is told then: the walk that follows sees what
//! happened while they were missing.
//!
//! Between notifications nothing runs: the thread of `notify` sleeps, and on Linux one for mounts. File systems of
//! other computers tell only what this one changes in them.

mod mounts;
mod pending;
mod place;
mod view;
mod way;

use std::sync::Arc;
use std::time::Instant;

use self::mounts::Mounts;
pub use self::pending::{Changed, WatchOptions};
use self::place::Placed;
use crate::{Error, Result, Rules, Source};

/// A collection that is watched. Dropping it ends the watching and its thread.
pub struct Watcher {
    placed: Arc<Placed>,
    /// Ends with the watcher.
    _mounts: Option<Mounts>,
    options: WatchOptions,
}

impl Watcher {
    /// Watches a collection. Changes from its return on are told: it is walked after that. Its folder need not be
    /// there; its coming is a change. Needs a runtime of tokio with time.
    ///
    /// # Errors
    /// [`Error::TooManyFolders`], [`Error::WatchLimit`] or [`Error::Watch`] if it cannot be watched as a whole; nothing
    /// is watched then. [`Error::Pattern`] if a pattern cannot be read.
    pub async fn start(source: Source, rules: Rules, options: WatchOptions) -> Result<Self> {
        let placed = Arc::new(Placed::new(source, rules, options.most_watches));
        let mounts = on_thread(&placed, |placed| Ok(placed.watch_mounts())).await?;
        let watcher = Self {
            placed,
            _mounts: mounts,
            options,
        };
        on_thread(&watcher.placed, Placed::settle).await?;
        Ok(watcher)
    }

    /// Waits for changes and tells those since the last call in one. Nothing is lost between two calls, nor if the
    /// waiting is given up.
    ///
    /// # Errors
    /// Those of [`Watcher::start`]; nothing is watched from then on, and the watcher is to be dropped.
    pub async fn changed(&mut self) -> Result<Changed> {
        loop {
            let pending = self.placed.pending();
            match pending.due(self.options) {
                None => pending.wait().await,
                Some(due) if due > Instant::now() => tokio::time::sleep_until(due.into()).await,
                Some(_) => {
                    on_thread(&self.placed, Placed::settle).await?;
                    if let Some(changed) = self.placed.pending().take() {
                        return Ok(changed);
                    }
                }
            }
        }
    }

    /// The watches that are placed, those of the folders on the way included.
    pub fn watches(&self) -> usize {
        self.placed.count()
    }
}

/// Does what waits for the disk where the runtime may wait.
async fn on_thread<T: Send + 'static>(
    placed: &Arc<Placed>,
    work: impl FnOnce(&Placed) -> Result<T> + Send + 'static,
) -> Result<T> {
    let placed = Arc::clone(placed);
    let done = tokio::task::spawn_blocking(move || work(&placed)).await;
    done.unwrap_or_else(|error| Err(Error::Watch(error.to_string())))
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.placed.close();
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
