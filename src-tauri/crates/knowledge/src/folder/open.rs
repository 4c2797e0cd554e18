//! Reading one file: through no link, up to a limit, and only as a whole.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};

use super::{FoundFile, SkipReason, Source, Stamp};

/// A file that changed more recently may change once more within the same tick of the file system's clock.
const TICK: Duration = Duration::from_secs(2);

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Their SHA-256.
    pub hash: [u8; 32],
    /// Its state while it was read. Its time is 0 if it had changed just before: it is looked at once more then.
    pub stamp: Stamp,
}

/// Reads a file that was found.
///
/// # Errors
/// The reason why it is not read: it is gone, a link or no file, became too large, was written meanwhile, or the system
/// does not give it.
pub fn read(source: &Source, file: &FoundFile, most_bytes: u64) -> Result<Reading, SkipReason> {
    let (folder, below) = place(source, &file.path).ok_or(SkipReason::Unreadable)?;
    let mut open = open_below(&folder, &below).map_err(|error| reason(&error, &folder.join(&below)))?;
    let before = open.metadata().map_err(|_| SkipReason::Unreadable)?;
    if !before.is_file() {
        return Err(SkipReason::Special);
    }
    if before.len() > most_bytes {
        return Err(SkipReason::TooLarge);
    }
    let mut bytes = Vec::new();
    let read = (&mut open).take(before.len() + 1).read_to_end(&mut bytes);
    read.map_err(|_| SkipReason::Unreadable)?;
    let after = open.metadata().map_err(|_| SkipReason::Unreadable)?;
    let mut stamp = Stamp::of(&before);
    if bytes.len() as u64 != before.len() || stamp != Stamp::of(&after) {
        return Err(SkipReason::Changing);
    }
    if bytes.is_empty() {
        return Err(SkipReason::Empty);
    }
    let tick = SystemTime::now()
        .checked_sub(TICK)
        .and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    if tick.is_none_or(|tick| i128::from(stamp.modified) > tick.as_nanos() as i128) {
        stamp.modified = 0;
    }
    let hash = Sha256::digest(&bytes).into();
    Ok(Reading { bytes, hash, stamp })
}

/// The folder that a path is taken from, and the rest.
fn place(source: &Source, path: &Path) -> Option<(PathBuf, PathBuf)> {
    match source {
        Source::Folder(folder) => Some((folder.clone(), path.to_owned())),
        Source::Files(_) => Some((path.parent()?.to_owned(), path.file_name()?.into())),
    }
}

fn reason(error: &io::Error, path: &Path) -> SkipReason {
    let is_link = std::fs::symlink_metadata(path).is_ok_and(|file| file.is_symlink());
    match error.kind() {
        _ if is_link => SkipReason::Link,
        ErrorKind::NotFound => SkipReason::Gone,
        _ => SkipReason::Unreadable,
    }
}

/// Opens a file below a folder. Neither it nor a folder on the way may be a link, also one that was put there after it
/// was found; opening a pipe does not wait for its other end.
#[cfg(unix)]
pub(super) fn open_below(folder: &Path, below: &Path) -> io::Result<File> {
    use std::path::Component;

    use rustix::fs::{openat, Mode, OFlags, CWD};

    let as_folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let as_file = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut open = openat(CWD, folder, as_folder, Mode::empty())?;
    let mut names = below.components().peekable();
    while let Some(name) = names.next() {
        let Component::Normal(name) = name else {
            return Err(ErrorKind::InvalidInput.into());
        };
        let flags = if names.peek().is_some() { as_folder } else { as_file };
        open = openat(&open, name, flags | OFlags::NOFOLLOW, Mode::empty())?;
    }
    Ok(File::from(open))
}

#[cfg(not(unix))]
pub(super) fn open_below(folder: &Path, below: &Path) -> io::Result<File> {
    File::open(folder.join(below))
}
