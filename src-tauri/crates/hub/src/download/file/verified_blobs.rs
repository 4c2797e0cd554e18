//! Blobs on disk whose hash was verified.

use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use tokio_util::sync::CancellationToken;

use super::progress::DownloadItem;
use super::stop::Stop;
use crate::cache::digest::Digest;
use crate::error::Error;

/// Blobs with the right hash, with their size and time then, so that a download that was paused does not hash all of
/// them again.
#[derive(Debug, Default)]
pub struct VerifiedBlobs(Mutex<HashMap<PathBuf, (u64, SystemTime)>>);

impl VerifiedBlobs {
    /// Records that this blob has the right hash.
    pub fn insert(&self, path: &Path) {
        if let Some(mark) = fs::metadata(path).ok().as_ref().and_then(mark) {
            self.marks().insert(path.to_owned(), mark);
        }
    }

    /// Records that this blob must be hashed again.
    pub fn remove(&self, path: &Path) {
        self.marks().remove(path);
    }

    /// True if the file at `path` has the right hash. Reads all of it unless that was done before; blocks.
    ///
    /// # Errors
    /// [`Stop::Canceled`]. A file that cannot be read is wrong, and no error.
    pub fn check(&self, path: &Path, item: &DownloadItem, stop: &CancellationToken) -> Result<bool, Stop> {
        let meta = fs::metadata(path).ok().filter(Metadata::is_file);
        let Some(mark) = meta.as_ref().and_then(mark) else {
            return Ok(false);
        };
        if mark.0 != item.size {
            return Ok(false);
        }
        if self.marks().get(path) == Some(&mark) {
            return Ok(true);
        }
        match hash(path, item, stop) {
            Ok(Some(digits)) if digits == item.etag.as_str() => {
                self.insert(path);
                Ok(true)
            }
            Ok(Some(_)) => {
                tracing::info!("{} is not what its name says and is fetched again", path.display());
                Ok(false)
            }
            Ok(None) => Err(Stop::Canceled),
            Err(source) => {
                let error = Error::read(path, source);
                tracing::info!("{error}; it is fetched again");
                Ok(false)
            }
        }
    }

    fn marks(&self) -> MutexGuard<'_, HashMap<PathBuf, (u64, SystemTime)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn mark(meta: &Metadata) -> Option<(u64, SystemTime)> {
    Some((meta.len(), meta.modified().ok()?))
}

/// The file's hash in hexadecimal; `None` if canceled.
fn hash(path: &Path, item: &DownloadItem, stop: &CancellationToken) -> io::Result<Option<String>> {
    let mut done = 0;
    Digest::new(&item.etag, item.size).of(File::open(path)?, |read| {
        done += read;
        item.set_done(done.min(item.size));
        !stop.is_cancelled()
    })
}
