//! Changes that are not told yet, and what they ask of the watches.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// More paths than these are told as everything: a walk is cheaper than a long list.
const MOST_PATHS: usize = 1000;

/// The part of a collection that may have changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changed {
    /// These files and no others, as [`crate::FoundFile::path`]. Some of them may be gone or not count.
    Paths(BTreeSet<PathBuf>),
    /// Anything: folders came or went, the choice of files changed, or notifications were lost.
    Everything,
}

/// The pace of a watcher and its limit.
#[derive(Debug, Clone, Copy)]
pub struct WatchOptions {
    /// A change is told when nothing has happened for so long.
    pub quiet: Duration,
    /// A change is told after so long, also while more happens.
    pub longest: Duration,
    /// The most folders that are watched where each takes something of the system: on Linux about two kilobytes of the
    /// kernel's memory.
    pub most_watches: usize,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self {
            quiet: Duration::from_millis(300),
            longest: Duration::from_secs(3),
            most_watches: 50_000,
        }
    }
}

/// The changes between the thread of notifications and whoever waits for them.
#[derive(Default)]
pub(super) struct Pending {
    state: Mutex<State>,
    wake: Notify,
}

#[derive(Default)]
struct State {
    untold: Option<Untold>,
    work: Work,
}

struct Untold {
    changed: Changed,
    first: Instant,
    last: Instant,
}

/// The watches that are missing.
#[derive(Default)]
pub(super) struct Work {
    /// True if folders went away or may have: all watches are placed anew.
    pub anew: bool,
    /// Folders that came, by their paths below that of the collection.
    pub added: BTreeSet<PathBuf>,
}

impl Pending {
    /// Notes a file.
    pub fn path(&self, path: PathBuf) {
        self.note(|_| Some(path));
    }

    /// Notes a folder that came.
    pub fn added(&self, folder: PathBuf) {
        self.note(|work| {
            work.added.insert(folder);
            None
        });
    }

    /// Notes that all watches are to be placed anew.
    pub fn anew(&self) {
        self.note(|work| {
            work.anew = true;
            None
        });
    }

    /// The time to tell the changes, if there are any.
    pub fn due(&self, options: WatchOptions) -> Option<Instant> {
        let state = self.state();
        let untold = state.untold.as_ref()?;
        Some((untold.last + options.quiet).min(untold.first + options.longest))
    }

    /// Waits for the next change.
    pub async fn wait(&self) {
        self.wake.notified().await;
    }

    /// Takes the watches that are missing; the changes stay untold until they are placed.
    pub fn work(&self) -> Work {
        std::mem::take(&mut self.state().work)
    }

    /// Takes the changes. Those that asked for watches after the last [`Pending::work`] are told once more.
    pub fn take(&self) -> Option<Changed> {
        let mut state = self.state();
        let untold = state.untold.take()?;
        if state.work.anew || !state.work.added.is_empty() {
            let now = Instant::now();
            state.untold = Some(Untold {
                changed: Changed::Everything,
                first: now,
                last: now,
            });
        }
        Some(untold.changed)
    }

    /// Notes a change of one file, or of anything.
    fn note(&self, change: impl FnOnce(&mut Work) -> Option<PathBuf>) {
        let mut state = self.state();
        let path = change(&mut state.work);
        let now = Instant::now();
        let untold = state.untold.get_or_insert_with(|| Untold {
            changed: Changed::Paths(BTreeSet::new()),
            first: now,
            last: now,
        });
        untold.last = now;
        match (&mut untold.changed, path) {
            (Changed::Everything, _) => {}
            (Changed::Paths(paths), Some(path)) if paths.len() < MOST_PATHS => {
                paths.insert(path);
            }
            _ => untold.changed = Changed::Everything,
        }
        drop(state);
        self.wake.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
