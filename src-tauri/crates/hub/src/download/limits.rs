//! Limits of downloads: parallel work, waits, retries.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, Instant};

/// Limit of the wait between two attempts to reach the network.
const LOOK_FOR_NETWORK: Duration = Duration::from_secs(15);

/// Limits of downloads. The defaults suit users; tests shorten the waits.
#[derive(Debug, Clone)]
pub struct DownloadLimits {
    /// Models fetched at the same time; the others wait.
    pub models: usize,
    /// Files of a model fetched at the same time.
    pub files: usize,
    /// Connections of a model, all files together.
    pub connections: usize,
    /// Ranges of one file fetched at the same time.
    pub parts: usize,
    /// Size of such a range, in bytes.
    pub part: u64,
    /// Wait after the first failure; it doubles with every further one.
    pub first_delay: Duration,
    /// Limit of that wait.
    pub longest_delay: Duration,
    /// Limit of the wait that a server's `Retry-After` may ask for.
    pub longest_asked_delay: Duration,
    /// Failures in a row, without a byte in between, after which a file fails.
    pub attempts: u32,
    /// Time after which a connection with less than `trickle` bytes is replaced; also the hub's time for an answer.
    pub stall: Duration,
    /// Bytes within `stall` that a connection must bring.
    pub trickle: u64,
    /// Time that a download waits for the network.
    pub without_network: Duration,
    /// Time between two attempts at a lock that another program holds.
    pub lock: Duration,
    /// Bytes that must stay free on the disk.
    pub margin: u64,
}

impl Default for DownloadLimits {
    fn default() -> Self {
        Self {
            models: 2,
            files: 4,
            connections: 8,
            parts: 4,
            part: 32 << 20,
            first_delay: Duration::from_millis(500),
            longest_delay: Duration::from_secs(30),
            longest_asked_delay: Duration::from_secs(300),
            attempts: 8,
            stall: Duration::from_secs(30),
            trickle: 1024,
            without_network: Duration::from_secs(24 * 3600),
            lock: Duration::from_millis(250),
            margin: 256 << 20,
        }
    }
}

impl DownloadLimits {
    /// The wait after this many failures in a row: doubled each time, minus up to half of it at random, so that many
    /// clients that failed together do not return together.
    pub fn delay(&self, failures: u32) -> Duration {
        let doubled = self.first_delay.saturating_mul(1 << failures.saturating_sub(1).min(16));
        let full = doubled.min(self.longest_delay);
        full.mul_f64(0.5 + 0.5 * chance())
    }
}

/// A random number from 0 to 1.
fn chance() -> f64 {
    // Each RandomState has its own keys.
    f64::from(RandomState::new().build_hasher().finish() as u32) / f64::from(u32::MAX)
}

/// A counter of the failures in a row of one worker.
#[derive(Debug, Default)]
pub struct Backoff {
    failures: u32,
    done: u64,
    /// The first failure to reach the network, and the number of failures since.
    unreachable: Option<(Instant, u32)>,
}

impl Backoff {
    /// The wait after a failure with `done` bytes on disk; `None` to give up. If bytes arrived since the last failure,
    /// the count starts again.
    pub fn failed(&mut self, limits: &DownloadLimits, done: u64, asked: Option<Duration>) -> Option<Duration> {
        if done > self.done {
            self.failures = 0;
        }
        self.done = done;
        self.failures += 1;
        let asked = asked.unwrap_or_default().min(limits.longest_asked_delay);
        (self.failures < limits.attempts).then(|| limits.delay(self.failures).max(asked))
    }

    /// The wait after a failure to reach the network; `None` to give up.
    pub fn unreachable(&mut self, limits: &DownloadLimits) -> Option<Duration> {
        let (since, times) = self.unreachable.get_or_insert((Instant::now(), 0));
        *times += 1;
        (since.elapsed() < limits.without_network).then(|| limits.delay(*times).min(LOOK_FOR_NETWORK))
    }

    /// Records that the network was reached.
    pub fn reached(&mut self) {
        self.unreachable = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_limit_and_differ() {
        let limits = DownloadLimits::default();
        for failures in 1..40 {
            let wait = limits.delay(failures);
            let full = limits
                .first_delay
                .saturating_mul(1 << (failures - 1).min(16))
                .min(limits.longest_delay);
            assert!(wait >= full / 2 && wait <= full, "{failures}: {wait:?}");
        }
        let waits: std::collections::HashSet<_> = (0..20).map(|_| limits.delay(1)).collect();
        assert!(waits.len() > 10, "{waits:?}");
    }

    #[test]
    fn failures_without_a_byte_end_and_bytes_begin_anew() {
        let limits = DownloadLimits {
            attempts: 3,
            ..DownloadLimits::default()
        };
        let mut backoff = Backoff::default();
        for done in [1, 2, 3, 4] {
            assert!(backoff.failed(&limits, done, None).is_some());
        }
        assert!(backoff.failed(&limits, 4, None).is_some());
        assert!(backoff.failed(&limits, 4, None).is_none());
        let hour = Some(Duration::from_secs(3600));
        assert_eq!(
            Backoff::default().failed(&limits, 0, hour),
            Some(limits.longest_asked_delay)
        );
    }
}
