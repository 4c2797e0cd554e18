//! The downloads in their order, stored on disk so that they survive the end of the app and a crash.

pub(super) mod job;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use api::DownloadState;
use files::{write_private, Durability};
use serde::{Deserialize, Serialize};

use self::job::{DownloadJob, Intent};
use super::file::partial::write_error;
use crate::cache::{Lock, RepositoryId, Revision};
use crate::error::Error;

/// The downloads in their order.
#[derive(Debug, Default)]
pub struct Queue {
    /// The first is the next.
    pub jobs: Vec<Arc<DownloadJob>>,
    /// True while the app closes, so that nothing begins.
    pub suspended: bool,
    file: Option<QueueFile>,
}

/// The file of the queue. One process at a time owns it; others do not store theirs.
#[derive(Debug)]
struct QueueFile {
    path: PathBuf,
    _lock: Lock,
}

/// A download as it is stored.
#[derive(Debug, Serialize, Deserialize)]
struct StoredDownload {
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
    pub fn job(&self, id: &RepositoryId) -> Option<Arc<DownloadJob>> {
        self.jobs.iter().find(|job| job.id == *id).cloned()
    }

    /// Removes the download of this model.
    pub fn remove(&mut self, id: &RepositoryId) {
        self.jobs.retain(|job| job.id != *id);
    }

    /// Moves the download of this model to a place in the order; 0 is the first.
    pub fn move_to(&mut self, id: &RepositoryId, place: usize) {
        if let Some(at) = self.jobs.iter().position(|job| job.id == *id) {
            let job = self.jobs.remove(at);
            self.jobs.insert(place.min(self.jobs.len()), job);
        }
    }

    /// The downloads that should begin, if at most `most` may run.
    pub fn next(&self, most: usize) -> Vec<Arc<DownloadJob>> {
        if self.suspended {
            return Vec::new();
        }
        let busy = self.jobs.iter().filter(|job| job.status().busy).count();
        self.jobs
            .iter()
            .filter(|job| {
                let status = job.status();
                !status.busy && status.state == DownloadState::Queued && status.intent != Intent::Cancel
            })
            .take(most.saturating_sub(busy))
            .cloned()
            .collect()
    }

    /// Appends the queue that an earlier process left in `folder`; returns true if it did. Another running process
    /// keeps its own.
    ///
    /// # Errors
    /// [`Error::Write`] if the folder cannot be written.
    pub fn resume_pending(&mut self, folder: &Path) -> Result<bool, Error> {
        if self.file.is_some() {
            return Ok(false);
        }
        files::make_private_folder(folder).map_err(|source| Error::write(folder, source))?;
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
            let job = DownloadJob::new(id, revision, state);
            job.status().error = kept.error;
            self.jobs.push(Arc::new(job));
        }
        self.file = Some(QueueFile { path, _lock: lock });
        Ok(true)
    }

    /// True if this process owns the queue of the data folder.
    pub fn is_stored(&self) -> bool {
        self.file.is_some()
    }

    /// Stores the queue.
    ///
    /// # Errors
    /// [`Error::Write`]; the previous file is then still there.
    pub fn save(&self) -> Result<(), Error> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let kept: Vec<StoredDownload> = self
            .jobs
            .iter()
            .filter_map(|job| {
                let status = job.status();
                let gone = status.state == DownloadState::Done || status.intent == Intent::Cancel;
                (!gone).then(|| StoredDownload {
                    id: job.id.to_string(),
                    revision: job.revision.to_string(),
                    paused: status.state == DownloadState::Paused || status.intent == Intent::Pause,
                    failed: status.state == DownloadState::Failed,
                    error: status.error.clone().filter(|_| !status.busy),
                })
            })
            .collect();
        let text = serde_json::to_vec_pretty(&kept).map_err(|error| Error::Write {
            path: file.path.clone(),
            source: error.into(),
        })?;
        write_private(&file.path, &text, Durability::PowerLoss).map_err(|source| write_error(&file.path, source))
    }
}

/// The stored queue. A file that cannot be parsed is renamed and not deleted; its downloads can be started again by
/// hand.
fn read(path: &Path) -> Vec<StoredDownload> {
    let Ok(text) = fs::read(path) else {
        return Vec::new();
    };
    serde_json::from_slice(&text).unwrap_or_else(|error| {
        tracing::warn!("{} cannot be understood and is renamed: {error}", path.display());
        let _ = fs::rename(path, path.with_extension("json.broken"));
        Vec::new()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(id: &str, state: DownloadState) -> Arc<DownloadJob> {
        Arc::new(DownloadJob::new(
            RepositoryId::new(id).unwrap(),
            Revision::main(),
            state,
        ))
    }

    fn names(queue: &Queue) -> Vec<String> {
        queue.jobs.iter().map(|job| job.id.to_string()).collect()
    }

    #[test]
    fn the_next_process_goes_on_and_two_do_not_share() {
        let folder = tempfile::tempdir().unwrap();
        let mut first = Queue::default();
        assert!(first.resume_pending(folder.path()).unwrap());
        for (id, state) in [
            ("o/running", DownloadState::Running),
            ("o/paused", DownloadState::Paused),
            ("o/done", DownloadState::Done),
            ("o/failed", DownloadState::Failed),
            ("o/queued", DownloadState::Queued),
        ] {
            first.jobs.push(job(id, state));
        }
        first.move_to(&RepositoryId::new("o/queued").unwrap(), 0);
        first.save().unwrap();

        let mut second = Queue::default();
        assert!(!second.resume_pending(folder.path()).unwrap());
        second.jobs.push(job("o/mine", DownloadState::Queued));
        second.save().unwrap();
        drop(first);
        assert!(second.resume_pending(folder.path()).unwrap());
        assert_eq!(
            names(&second),
            ["o/mine", "o/queued", "o/running", "o/paused", "o/failed"]
        );
        let states: Vec<_> = second.jobs.iter().map(|job| job.status().state).collect();
        use DownloadState::{Failed, Paused, Queued};
        assert_eq!(states, [Queued, Queued, Queued, Paused, Failed]);
        second.jobs[1].status().busy = true;
        assert_eq!(
            second.next(2).iter().map(|job| job.id.to_string()).collect::<Vec<_>>(),
            ["o/mine"]
        );
    }

    #[test]
    fn a_file_that_is_not_understood_is_put_aside() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("downloads.json"), b"[{]").unwrap();
        let mut queue = Queue::default();
        assert!(queue.resume_pending(folder.path()).unwrap());
        assert!(queue.jobs.is_empty());
        assert_eq!(fs::read(folder.path().join("downloads.json.broken")).unwrap(), b"[{]");
    }
}
