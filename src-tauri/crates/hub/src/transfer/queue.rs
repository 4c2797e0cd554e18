//! The downloads in their order, kept on disk so that quitting or a crash loses none.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol::DownloadState;
use serde::{Deserialize, Serialize};

use super::job::{Job, Wish};
use super::partial::write_aside;
use crate::layout::{Lock, RepositoryId, Revision};
use crate::Error;

/// The downloads in their order.
#[derive(Debug, Default)]
pub struct Queue {
    /// The first is the next.
    pub jobs: Vec<Arc<Job>>,
    /// Whether the app is about to close, so that nothing begins.
    pub resting: bool,
    keeper: Option<Keeper>,
}

/// The file the queue is kept in. One process at a time has it; the downloads of the others are theirs alone.
#[derive(Debug)]
struct Keeper {
    path: PathBuf,
    _lock: Lock,
}

/// A download as it is kept.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    id: String,
    revision: String,
    #[serde(default)]
    paused: bool,
    #[serde(default)]
    failed: bool,
    #[serde(default)]
    error: Option<protocol::Error>,
}

impl Queue {
    /// The download of this model.
    pub fn job(&self, id: &RepositoryId) -> Option<Arc<Job>> {
        self.jobs.iter().find(|job| job.id == *id).cloned()
    }

    /// Takes the download of this model out.
    pub fn remove(&mut self, id: &RepositoryId) {
        self.jobs.retain(|job| job.id != *id);
    }

    /// Moves the download of this model to a place in the order; 0 is the first.
    pub fn put(&mut self, id: &RepositoryId, place: usize) {
        if let Some(at) = self.jobs.iter().position(|job| job.id == *id) {
            let job = self.jobs.remove(at);
            self.jobs.insert(place.min(self.jobs.len()), job);
        }
    }

    /// Those that should begin when at most `most` run at once.
    pub fn next(&self, most: usize) -> Vec<Arc<Job>> {
        if self.resting {
            return Vec::new();
        }
        let busy = self.jobs.iter().filter(|job| job.now().busy).count();
        self.jobs
            .iter()
            .filter(|job| {
                let now = job.now();
                !now.busy && now.state == DownloadState::Queued && now.wish != Wish::Cancel
            })
            .take(most.saturating_sub(busy))
            .cloned()
            .collect()
    }

    /// Takes the queue in `folder` over from the process that was here before, behind what is in this one; whether it was there to
    /// take. Another running process keeps its own.
    ///
    /// # Errors
    /// [`Error::Write`] where the folder cannot be written.
    pub fn take_up(&mut self, folder: &Path) -> Result<bool, Error> {
        if self.keeper.is_some() {
            return Ok(false);
        }
        fs::create_dir_all(folder).map_err(|source| Error::Write {
            path: folder.to_owned(),
            source,
        })?;
        let Some(lock) = Lock::try_take(&folder.join("downloads.lock"))? else {
            return Ok(false);
        };
        let path = folder.join("downloads.json");
        for kept in read(&path) {
            let (Ok(id), Ok(revision)) = (RepositoryId::new(&kept.id), Revision::new(&kept.revision)) else {
                continue;
            };
            if self.job(&id).is_some() {
                continue;
            }
            let state = match (kept.paused, kept.failed) {
                (true, _) => DownloadState::Paused,
                (_, true) => DownloadState::Failed,
                _ => DownloadState::Queued,
            };
            let job = Job::new(id, revision, state);
            job.now().error = kept.error;
            self.jobs.push(Arc::new(job));
        }
        self.keeper = Some(Keeper { path, _lock: lock });
        Ok(true)
    }

    /// Writes the queue down.
    ///
    /// # Errors
    /// [`Error::Write`]; the queue as it was written before is still there.
    pub fn keep(&self) -> Result<(), Error> {
        let Some(keeper) = &self.keeper else {
            return Ok(());
        };
        let kept: Vec<Kept> = self
            .jobs
            .iter()
            .filter_map(|job| {
                let now = job.now();
                let gone = now.state == DownloadState::Done || now.wish == Wish::Cancel;
                (!gone).then(|| Kept {
                    id: job.id.to_string(),
                    revision: job.revision.to_string(),
                    paused: now.state == DownloadState::Paused || now.wish == Wish::Pause,
                    failed: now.state == DownloadState::Failed,
                    error: now.error.clone().filter(|_| !now.busy),
                })
            })
            .collect();
        let text = serde_json::to_vec_pretty(&kept).map_err(|error| Error::Write {
            path: keeper.path.clone(),
            source: error.into(),
        })?;
        write_aside(&keeper.path, &text)
    }
}

/// What was kept. A file that cannot be understood is put aside, because the downloads it named can be begun again by hand.
fn read(path: &Path) -> Vec<Kept> {
    let Ok(text) = fs::read(path) else {
        return Vec::new();
    };
    serde_json::from_slice(&text).unwrap_or_else(|error| {
        tracing::warn!("{} is not understood and put aside: {error}", path.display());
        let _ = fs::rename(path, path.with_extension("json.broken"));
        Vec::new()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(id: &str, state: DownloadState) -> Arc<Job> {
        Arc::new(Job::new(RepositoryId::new(id).unwrap(), Revision::main(), state))
    }

    fn names(queue: &Queue) -> Vec<String> {
        queue.jobs.iter().map(|job| job.id.to_string()).collect()
    }

    #[test]
    fn the_next_process_goes_on_and_two_do_not_share() {
        let folder = tempfile::tempdir().unwrap();
        let mut first = Queue::default();
        assert!(first.take_up(folder.path()).unwrap());
        for (id, state) in [
            ("o/running", DownloadState::Running),
            ("o/paused", DownloadState::Paused),
            ("o/done", DownloadState::Done),
            ("o/failed", DownloadState::Failed),
            ("o/queued", DownloadState::Queued),
        ] {
            first.jobs.push(job(id, state));
        }
        first.put(&RepositoryId::new("o/queued").unwrap(), 0);
        first.keep().unwrap();

        let mut second = Queue::default();
        assert!(!second.take_up(folder.path()).unwrap());
        second.jobs.push(job("o/mine", DownloadState::Queued));
        second.keep().unwrap();
        drop(first);
        assert!(second.take_up(folder.path()).unwrap());
        assert_eq!(names(&second), ["o/mine", "o/queued", "o/running", "o/paused", "o/failed"]);
        let states: Vec<_> = second.jobs.iter().map(|job| job.now().state).collect();
        use DownloadState::{Failed, Paused, Queued};
        assert_eq!(states, [Queued, Queued, Queued, Paused, Failed]);
        second.jobs[1].now().busy = true;
        assert_eq!(second.next(2).iter().map(|job| job.id.to_string()).collect::<Vec<_>>(), ["o/mine"]);
    }

    #[test]
    fn a_file_that_is_not_understood_is_put_aside() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("downloads.json"), b"[{]").unwrap();
        let mut queue = Queue::default();
        assert!(queue.take_up(folder.path()).unwrap());
        assert!(queue.jobs.is_empty());
        assert_eq!(fs::read(folder.path().join("downloads.json.broken")).unwrap(), b"[{]");
    }
}
