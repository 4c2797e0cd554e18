//! A partial file and the record of its ranges.
//!
//! The record has two sets of ranges: those written, which hold until this computer restarts, and those synced to the
//! disk, which hold in any case.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use files::{sync_folder, write_shared, Durability};
use serde::{Deserialize, Serialize};

use super::byte_ranges::ByteRanges;
use crate::cache::{open_file, refuse_link};
use crate::error::Error;

/// Limit of the record's age while bytes arrive.
const SAVE_EVERY: Duration = Duration::from_millis(200);

#[derive(Debug, Default, Serialize, Deserialize)]
struct Record {
    size: u64,
    /// The ETag of the bytes.
    validator: Option<String>,
    /// The boot of this computer to which `written` belongs.
    boot: String,
    written: ByteRanges,
    synced: ByteRanges,
}

impl Record {
    fn empty(size: u64) -> Self {
        Self {
            size,
            boot: boot(),
            ..Self::default()
        }
    }
}

/// The partial file of a blob. Only the holder of the blob's lock has one.
#[derive(Debug)]
pub struct PartialFile {
    path: PathBuf,
    file: File,
    record: Record,
    saved_at: Instant,
    dirty: bool,
}

impl PartialFile {
    /// Opens or creates the partial file at `path`, for a file of `size` bytes, with the ranges of its record.
    ///
    /// # Errors
    /// [`Error::Write`] if it cannot be opened, [`Error::Trap`] if it is a link.
    pub fn open(path: &Path, size: u64) -> Result<Self, Error> {
        refuse_link(&record_of(path))?;
        let file = open_file(path)?;
        let length = file.metadata().map_err(|source| write_error(path, source))?.len();
        let record = read_record(path, size, length).unwrap_or_else(|| Record::empty(size));
        let fresh = record.written == ByteRanges::default();
        let mut partial = Self {
            path: path.to_owned(),
            file,
            record,
            saved_at: Instant::now(),
            dirty: false,
        };
        if fresh && length > 0 {
            partial.reset()?;
        }
        Ok(partial)
    }

    /// The number of bytes in the record of the partial file at `path`, without opening it.
    pub fn bytes_at(path: &Path, size: u64) -> u64 {
        let length = fs::metadata(path).map_or(0, |meta| meta.len());
        read_record(path, size, length).map_or(0, |record| record.written.total())
    }

    /// The ranges that were written.
    pub fn ranges(&self) -> &ByteRanges {
        &self.record.written
    }

    /// The size of the complete file.
    pub fn size(&self) -> u64 {
        self.record.size
    }

    /// The ETag of its bytes, if the server sent one.
    pub fn validator(&self) -> Option<&str> {
        self.record.validator.as_deref()
    }

    /// Sets the ETag of its bytes.
    pub fn set_validator(&mut self, etag: String) {
        self.record.validator = Some(etag);
        self.dirty = true;
    }

    /// The file, for reading.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Writes bytes at their place.
    ///
    /// # Errors
    /// [`Error::DiskFull`], else [`Error::Write`].
    pub fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        self.file
            .write_all_at(bytes, offset)
            .map_err(|source| write_error(&self.path, source))?;
        self.record.written.insert(offset..offset + bytes.len() as u64);
        self.dirty = true;
        Ok(())
    }

    /// The time at which the record should be saved; `None` while it is current.
    pub fn save_due(&self) -> Option<Instant> {
        self.dirty.then(|| self.saved_at + SAVE_EVERY)
    }

    /// Saves the record.
    ///
    /// # Errors
    /// As [`PartialFile::write`].
    pub fn save_record(&mut self) -> Result<(), Error> {
        if !self.dirty {
            return Ok(());
        }
        let path = record_of(&self.path);
        let text = serde_json::to_vec(&self.record).map_err(|error| write_error(&path, error.into()))?;
        // A draft next to the blobs could be taken for one of them.
        let folder = self.path.ancestors().nth(2).unwrap_or(&self.path);
        write_shared(&path, folder, &text, Durability::ProcessCrash).map_err(|source| write_error(&path, source))?;
        self.dirty = false;
        self.saved_at = Instant::now();
        Ok(())
    }

    /// Records the ranges that a finished [`File::sync_data`] covered, or fails with its error.
    ///
    /// # Errors
    /// As [`PartialFile::write`], if it failed.
    pub fn set_synced(&mut self, ranges: ByteRanges, outcome: io::Result<()>) -> Result<(), Error> {
        outcome.map_err(|source| write_error(&self.path, source))?;
        self.record.synced = ranges;
        self.dirty = true;
        Ok(())
    }

    /// Discards all bytes.
    ///
    /// # Errors
    /// As [`PartialFile::write`].
    pub fn reset(&mut self) -> Result<(), Error> {
        // The record is removed first: bytes without a record are ignored, while a record without its bytes would be
        // wrong.
        remove(&record_of(&self.path))?;
        self.file.set_len(0).map_err(|source| write_error(&self.path, source))?;
        self.record = Record::empty(self.record.size);
        self.dirty = false;
        Ok(())
    }

    /// Gives the complete file its name. The caller has verified its hash.
    ///
    /// # Errors
    /// As [`PartialFile::write`].
    pub fn publish(&mut self, name: &Path) -> Result<(), Error> {
        self.file.sync_all().map_err(|source| write_error(&self.path, source))?;
        fs::rename(&self.path, name).map_err(|source| write_error(name, source))?;
        name.parent().into_iter().for_each(sync_folder);
        remove(&record_of(&self.path))
    }
}

/// Removes a partial file and its record.
///
/// # Errors
/// [`Error::Write`].
pub fn discard(path: &Path) -> Result<(), Error> {
    remove(&record_of(path))?;
    remove(path)
}

fn record_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".json");
    PathBuf::from(name)
}

fn read_record(path: &Path, size: u64, length: u64) -> Option<Record> {
    let mut record: Record = serde_json::from_slice(&fs::read(record_of(path)).ok()?).ok()?;
    let boot = boot();
    if record.boot != boot {
        record.written = record.synced.clone();
        record.boot = boot;
    }
    let end = record.written.end();
    (record.size == size && end <= size && end <= length).then_some(record)
}

fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(write_error(path, error)),
        _ => Ok(()),
    }
}

pub(in crate::download) fn write_error(path: &Path, source: io::Error) -> Error {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::DiskFull {
            path: path.parent().unwrap_or(path).to_owned(),
            needed: None,
        },
        _ => Error::write(path, source),
    }
}

/// A name for this boot of the computer.
fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|id| id.trim().to_owned())
        .ok()
        .or_else(|| Some(sysinfo::System::boot_time().ok()?.to_string()))
        // Without an answer of the system every call is a boot of its own, so only synced ranges count.
        .unwrap_or_else(|| uuid::Uuid::now_v7().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_noted_is_there_again_and_the_rest_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("blob.ponder");
        let mut partial = PartialFile::open(&path, 10).unwrap();
        partial.set_validator("\"v\"".into());
        partial.write(6, b"789").unwrap();
        partial.save_record().unwrap();
        partial.write(0, b"012").unwrap();
        drop(partial);

        let partial = PartialFile::open(&path, 10).unwrap();
        assert_eq!(partial.ranges().missing(10), [0..6, 9..10]);
        assert_eq!(partial.validator(), Some("\"v\""));
        assert!(
            PartialFile::open(&path, 11).unwrap().ranges().total() == 0,
            "a record of another size counts for nothing"
        );
    }

    #[test]
    fn after_a_start_of_the_computer_only_what_was_forced_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("blob.ponder");
        let mut partial = PartialFile::open(&path, 10).unwrap();
        partial.write(0, b"0123").unwrap();
        partial.set_synced(ByteRanges::from(vec![(0, 2)]), Ok(())).unwrap();
        partial.record.boot = "another".into();
        partial.save_record().unwrap();
        assert_eq!(PartialFile::open(&path, 10).unwrap().ranges().total(), 2);
    }

    #[test]
    fn a_record_that_says_more_than_the_file_has_counts_for_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("blob.ponder");
        let mut partial = PartialFile::open(&path, 10).unwrap();
        partial.write(0, b"0123").unwrap();
        partial.save_record().unwrap();
        partial.file.set_len(3).unwrap();
        let partial = PartialFile::open(&path, 10).unwrap();
        assert_eq!((partial.ranges().total(), fs::metadata(&path).unwrap().len()), (0, 0));
        fs::write(record_of(&path), b"{ not json").unwrap();
        assert_eq!(PartialFile::open(&path, 10).unwrap().ranges().total(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_its_place_is_not_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let (path, elsewhere) = (folder.path().join("blob.ponder"), folder.path().join("elsewhere"));
        fs::write(&elsewhere, b"mine").unwrap();
        std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
        assert!(matches!(PartialFile::open(&path, 10), Err(Error::Trap(_))));
        assert_eq!(fs::read(&elsewhere).unwrap(), b"mine");
    }
}
