//! Running work on files, which a window may stop.

use std::collections::hash_map::Entry;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use protocol::{Error, ErrorCode, Result};
use tokio_util::sync::CancellationToken;

/// The running work of one kind, by the files that are read.
#[derive(Default)]
pub struct FileJobs(Mutex<HashMap<PathBuf, CancellationToken>>);

impl FileJobs {
    /// Work begins, and ends early when the app does.
    ///
    /// # Errors
    /// `busy` if this file is in work: two would be two models.
    pub fn begin(&self, file: &Path, app: &CancellationToken) -> Result<CancellationToken> {
        match self.running().entry(file.to_owned()) {
            Entry::Occupied(_) => {
                let message = format!("{} is in work already", file.display());
                Err(Error::new(ErrorCode::Busy, message))
            }
            Entry::Vacant(free) => Ok(free.insert(app.child_token()).clone()),
        }
    }

    /// Work has ended.
    pub fn end(&self, file: &Path) {
        self.running().remove(file);
    }

    /// Stops work, if it runs.
    pub fn stop(&self, file: &Path) {
        if let Some(stop) = self.running().get(file) {
            stop.cancel();
        }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<PathBuf, CancellationToken>> {
        // Nothing that can panic runs under this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_in_work_once_at_a_time_and_its_work_can_be_stopped() {
        let (jobs, app) = (FileJobs::default(), CancellationToken::new());
        let (file, other) = (Path::new("/a.gguf"), Path::new("/b.gguf"));
        let stop = jobs.begin(file, &app).expect("nothing runs");
        let second = jobs.begin(file, &app).expect_err("it runs");
        assert_eq!(second.code, ErrorCode::Busy);
        jobs.stop(other);
        assert!(!stop.is_cancelled());
        jobs.stop(file);
        assert!(stop.is_cancelled() && !app.is_cancelled());
        jobs.end(file);
        let again = jobs.begin(file, &app).expect("it has ended");
        app.cancel();
        assert!(again.is_cancelled(), "the app ends");
    }
}
