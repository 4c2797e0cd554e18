//! A lock beside the file: whoever has the history open shares it, and a repair, which moves the file, needs it alone.
//! SQLite's own locks do not outlive a file that is renamed.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::Duration;

use crate::{Error, Result};

/// A lock that seems taken is tried again this often: a process that is being started has all locks of the one that
/// starts it until its program begins, also those that were given up meanwhile.
const TRIES: u32 = 50;

/// The time between two tries.
const PAUSE: Duration = Duration::from_millis(5);

/// Shares the lock as long as what is returned lives; `None` where the file system knows no locks.
///
/// # Errors
/// [`Error::Locked`] while a repair moves the file.
pub(crate) fn shared(path: &Path) -> Result<Option<File>> {
    match files::append_private(&path.with_extension("lock")) {
        Ok(file) => taken(file, File::try_lock_shared),
        // A folder that cannot be written is SQLite's to report.
        Err(_) => Ok(None),
    }
}

/// Takes the lock alone as long as what is returned lives.
///
/// # Errors
/// [`Error::Locked`] if anyone has the history open.
pub(crate) fn alone(path: &Path) -> Result<Option<File>> {
    let file = files::append_private(&path.with_extension("lock")).map_err(Error::from_file)?;
    taken(file, File::try_lock)
}

fn taken(file: File, lock: fn(&File) -> std::result::Result<(), TryLockError>) -> Result<Option<File>> {
    let mut locked = lock(&file);
    for _ in 0..TRIES {
        if !matches!(locked, Err(TryLockError::WouldBlock)) {
            break;
        }
        std::thread::sleep(PAUSE);
        locked = lock(&file);
    }
    match locked {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(Error::Locked),
        // A file system without locks, such as some network ones.
        Err(TryLockError::Error(error)) => {
            tracing::warn!(%error, "the history cannot be kept from being moved while it is open");
            Ok(None)
        }
    }
}
