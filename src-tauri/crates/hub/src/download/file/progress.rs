//! The progress of a download.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use api::{DownloadFile, DownloadState};
use jiff::Timestamp;

use crate::cache::{Etag, FilePath};

/// The window of the rate.
const WINDOW: Duration = Duration::from_secs(3);

/// A blob that is fetched, its files, and its progress.
#[derive(Debug)]
pub struct DownloadItem {
    /// Its hash, which is its name.
    pub etag: Etag,
    /// Its size in bytes.
    pub size: u64,
    /// The files of the repository with this content.
    pub paths: Vec<FilePath>,
    done: AtomicU64,
    /// The state, and the reason and the end of a wait.
    state: Mutex<(DownloadState, Option<(protocol::Error, i64)>)>,
}

impl DownloadItem {
    /// A blob of which nothing is known to be there.
    pub fn new(etag: Etag, size: u64, paths: Vec<FilePath>) -> Self {
        Self {
            etag,
            size,
            paths,
            done: AtomicU64::new(0),
            state: Mutex::new((DownloadState::Queued, None)),
        }
    }

    /// Bytes on disk.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Sets the bytes on disk.
    pub fn set_done(&self, done: u64) {
        self.done.store(done, Ordering::Relaxed);
    }

    /// Records that it waits, for a reason that passes, until a time in milliseconds since 1970.
    pub fn wait(&self, error: protocol::Error, until: i64) {
        *self.locked() = (DownloadState::Waiting, Some((error, until)));
    }

    /// The reason and the end of its wait.
    pub fn waits_for(&self) -> Option<(protocol::Error, i64)> {
        self.locked().1.clone()
    }

    /// The state.
    pub fn state(&self) -> DownloadState {
        self.locked().0
    }

    /// Sets the state.
    pub fn set_state(&self, state: DownloadState) {
        *self.locked() = (state, None);
    }

    fn locked(&self) -> MutexGuard<'_, (DownloadState, Option<(protocol::Error, i64)>)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its files as windows see them.
    pub fn files(&self) -> impl Iterator<Item = DownloadFile> + '_ {
        self.paths.iter().map(|path| DownloadFile {
            path: path.to_string(),
            bytes: self.size,
            done: self.done(),
            state: self.state(),
        })
    }
}

/// The rate of a download over the last seconds.
#[derive(Debug, Default)]
pub struct RateMeter {
    samples: VecDeque<(Instant, u64)>,
}

impl RateMeter {
    /// Records the number of bytes so far. Bytes before the first sample do not count.
    pub fn sample(&mut self, now: Instant, done: u64) {
        // Fewer than before: the file started over, or a wrong one was discarded.
        if self.samples.back().is_some_and(|(_, before)| done < *before) {
            self.samples.clear();
        }
        self.samples.push_back((now, done));
        // One sample older than the window stays, so that the window is covered.
        while self
            .samples
            .get(1)
            .is_some_and(|(at, _)| now.duration_since(*at) >= WINDOW)
        {
            self.samples.pop_front();
        }
    }

    /// Forgets all samples, for a download at rest.
    pub fn reset(&mut self) {
        self.samples.clear();
    }

    /// Bytes per second.
    pub fn bytes_per_second(&self) -> f64 {
        let (Some((from, before)), Some((to, done))) = (self.samples.front(), self.samples.back()) else {
            return 0.0;
        };
        let seconds = to.duration_since(*from).as_secs_f64();
        if seconds < 0.1 {
            return 0.0;
        }
        (done - before) as f64 / seconds
    }
}

/// The time after `wait`, in milliseconds since 1970.
pub fn after(wait: Duration) -> i64 {
    Timestamp::now()
        .as_millisecond()
        .saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_last_seconds_and_never_below_zero() {
        let begin = Instant::now();
        let mut meter = RateMeter::default();
        assert_eq!(meter.bytes_per_second(), 0.0);
        for step in 0..=50_u64 {
            // 1,000 bytes a second for 5 seconds, then 3,000.
            let done = if step <= 25 {
                200 * step
            } else {
                5_000 + 600 * (step - 25)
            };
            meter.sample(begin + Duration::from_millis(200 * step), done);
            if step == 20 {
                assert!((meter.bytes_per_second() - 1_000.0).abs() < 1.0);
            }
        }
        assert!(
            (meter.bytes_per_second() - 3_000.0).abs() < 1.0,
            "{}",
            meter.bytes_per_second()
        );
        meter.sample(begin + Duration::from_secs(11), 0);
        assert_eq!(meter.bytes_per_second(), 0.0);
    }

    #[test]
    fn every_state_is_told() {
        let item = DownloadItem::new(Etag::new(&"a".repeat(40)).unwrap(), 1, Vec::new());
        for state in [
            DownloadState::Queued,
            DownloadState::Running,
            DownloadState::Verifying,
            DownloadState::Done,
        ] {
            item.set_state(state);
            assert_eq!(item.state(), state);
        }
    }
}
