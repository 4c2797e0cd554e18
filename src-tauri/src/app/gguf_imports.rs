//! The running imports of GGUF files, which a window may stop.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// The running imports, by their files.
#[derive(Default)]
pub struct GgufImports(Mutex<HashMap<PathBuf, CancellationToken>>);

impl GgufImports {
    /// An import begins, and ends early when the app does.
    pub fn begin(&self, file: &Path, app: &CancellationToken) -> CancellationToken {
        let stop = app.child_token();
        self.running().insert(file.to_owned(), stop.clone());
        stop
    }

    /// An import has ended.
    pub fn end(&self, file: &Path) {
        self.running().remove(file);
    }

    /// Stops an import, if it runs.
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
