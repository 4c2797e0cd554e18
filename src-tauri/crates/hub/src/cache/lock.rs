//! Locks of the cache: one file per blob, locked with flock, as huggingface_hub's filelock does.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::open::open_file;
use crate::error::Error;

/// A lock that is held until it is dropped. It excludes other processes and other holders in this one.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Takes the lock; `None` if another holds it.
    ///
    /// # Errors
    /// [`Error::Write`] if the file cannot be created, [`Error::Trap`] if it is a link.
    pub fn try_take(path: &Path) -> Result<Option<Self>, Error> {
        let file = open_file(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            // A file system without flock, such as some network ones: huggingface_hub continues without a lock as well.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
            Err(TryLockError::Error(source)) => return Err(Error::write(path, source)),
        }
        // The previous holder may have removed the file, and a lock on a file without a name excludes nobody.
        if !same_file(&file, path) {
            return Ok(None);
        }
        Ok(Some(Self {
            file,
            path: path.to_owned(),
        }))
    }

    /// Removes the lock's file and releases it, for a repository that is removed as a whole.
    pub(crate) fn remove(self) {
        // At worst an empty file is left.
        let _ = fs::remove_file(&self.path);
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file releases it as well.
        let _ = self.file.unlock();
    }
}

fn same_file(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(held), Ok(named)) => (held.dev(), held.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}
