//! The thread that writes the pieces of one file to the disk and hashes its prefix.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use api::DownloadState;
use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::byte_ranges::ByteRanges;
use super::disk_space::ensure_free;
use super::partial::PartialFile;
use super::prefix_hasher::PrefixHasher;
use super::progress::DownloadItem;
use crate::cache::Etag;
use crate::error::Error;

/// Limit of pieces that wait for the disk. The network waits for a free place, so this bounds the memory of a file.
pub const WAITING: usize = 16;
/// Bytes that the hash reads back at once while no piece waits.
const STEP: u64 = 4 << 20;
/// Bytes and time after which written bytes are synced to the disk.
const FORCE_AFTER: u64 = 256 << 20;
const FORCE_EVERY: Duration = Duration::from_secs(10);

/// A message of a connection to the writer.
#[derive(Debug)]
pub enum Piece {
    /// Bytes and their offset in the file.
    Bytes(u64, Bytes),
    /// The ETag of the file.
    Etag(String),
}

/// The outcome of writing a file.
#[derive(Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// The file is complete, its hash is right, and the blob has its name.
    Verified,
    /// The file is complete with another hash, this one.
    Mismatch(String),
    /// Bytes are missing.
    Incomplete,
}

/// A file being written.
pub struct FileWriter {
    /// The partial file.
    pub partial: PartialFile,
    /// The expected hash.
    pub etag: Etag,
    /// The path of the verified blob.
    pub name: PathBuf,
    /// The progress.
    pub item: Arc<DownloadItem>,
    /// Cancels hashing; the bytes on disk stay.
    pub stop: CancellationToken,
    /// Bytes that must stay free on the disk.
    pub margin: u64,
}

impl FileWriter {
    /// Writes pieces until the last sender is dropped. Blocks; returns the partial file.
    pub fn run(
        mut self,
        pieces: mpsc::Receiver<Piece>,
        runtime: &Handle,
    ) -> (PartialFile, Result<WriteOutcome, Error>) {
        let end = self.write(pieces, runtime);
        if !matches!(end, Ok(WriteOutcome::Verified)) {
            // A full disk has no space for the record either; the previous record is still right.
            if let Err(error) = self.partial.save_record() {
                tracing::debug!("the record of a download could not be updated: {error}");
            }
        }
        (self.partial, end)
    }

    fn write(&mut self, mut pieces: mpsc::Receiver<Piece>, runtime: &Handle) -> Result<WriteOutcome, Error> {
        let mut hasher = PrefixHasher::new(&self.etag, self.partial.size());
        let mut sync = BackgroundSync::new();
        loop {
            let piece = match pieces.try_recv() {
                Ok(piece) => piece,
                Err(mpsc::error::TryRecvError::Disconnected) => break,
                Err(mpsc::error::TryRecvError::Empty) if hasher.position() < self.partial.ranges().prefix_end() => {
                    self.catch_up(&mut hasher, STEP)?;
                    self.keep_up(&mut sync)?;
                    continue;
                }
                Err(mpsc::error::TryRecvError::Empty) => {
                    let next = match self.partial.save_due() {
                        Some(due) => {
                            runtime.block_on(async { tokio::time::timeout_at(due.into(), pieces.recv()).await })
                        }
                        None => Ok(pieces.blocking_recv()),
                    };
                    match next {
                        Ok(Some(piece)) => piece,
                        Ok(None) => break,
                        Err(_) => {
                            self.partial.save_record()?;
                            continue;
                        }
                    }
                }
            };
            match piece {
                Piece::Etag(etag) => self.partial.set_validator(etag),
                Piece::Bytes(offset, bytes) => {
                    self.partial.write(offset, &bytes)?;
                    self.item.set_done(self.partial.ranges().total());
                    hasher.feed(offset, &bytes);
                    // Hashing twice the bytes that arrived lets the hash catch up without making the network wait for
                    // all of it.
                    self.catch_up(&mut hasher, 2 * bytes.len() as u64)?;
                    sync.written += bytes.len() as u64;
                }
            }
            self.keep_up(&mut sync)?;
        }
        sync.finish(&mut self.partial)?;
        self.finish(hasher)
    }

    fn finish(&mut self, mut hasher: PrefixHasher) -> Result<WriteOutcome, Error> {
        let size = self.partial.size();
        if !self.partial.ranges().covers(size) {
            return Ok(WriteOutcome::Incomplete);
        }
        self.item.set_state(DownloadState::Verifying);
        while hasher.position() < size {
            if self.stop.is_cancelled() {
                return Ok(WriteOutcome::Incomplete);
            }
            self.catch_up(&mut hasher, STEP)?;
        }
        let digits = hasher.finish();
        if digits != self.etag.as_str() {
            return Ok(WriteOutcome::Mismatch(digits));
        }
        self.partial.publish(&self.name)?;
        Ok(WriteOutcome::Verified)
    }

    fn catch_up(&self, hasher: &mut PrefixHasher, most: u64) -> Result<(), Error> {
        hasher
            .catch_up(self.partial.file(), self.partial.ranges().prefix_end(), most)
            .map_err(|source| Error::read(&self.name, source))
    }

    fn keep_up(&mut self, sync: &mut BackgroundSync) -> Result<(), Error> {
        if self.partial.save_due().is_some_and(|due| due <= Instant::now()) {
            self.partial.save_record()?;
            ensure_free(&self.name, 0, self.margin)?;
        }
        sync.poll(&mut self.partial)
    }
}

/// Syncs written bytes to the disk from time to time on a thread of its own, so that a power cut costs seconds of a
/// download and the end does not wait for all of it.
struct BackgroundSync {
    written: u64,
    since: Instant,
    running: Option<(ByteRanges, oneshot::Receiver<io::Result<()>>)>,
}

impl BackgroundSync {
    fn new() -> Self {
        Self {
            written: 0,
            since: Instant::now(),
            running: None,
        }
    }

    fn poll(&mut self, partial: &mut PartialFile) -> Result<(), Error> {
        if let Some((_, running)) = &mut self.running {
            match running.try_recv() {
                Ok(outcome) => self.done(partial, outcome)?,
                Err(oneshot::error::TryRecvError::Empty) => return Ok(()),
                Err(oneshot::error::TryRecvError::Closed) => self.running = None,
            }
        }
        if self.written >= FORCE_AFTER || (self.written > 0 && self.since.elapsed() >= FORCE_EVERY) {
            let (tell, outcome) = oneshot::channel();
            // If the handle cannot be cloned, the end syncs the file anyway.
            if let Ok(file) = partial.file().try_clone() {
                tokio::task::spawn_blocking(move || tell.send(file.sync_data()));
                self.running = Some((partial.ranges().clone(), outcome));
            }
            self.written = 0;
            self.since = Instant::now();
        }
        Ok(())
    }

    fn finish(&mut self, partial: &mut PartialFile) -> Result<(), Error> {
        match self.running.as_mut().map(|(_, running)| running.try_recv()) {
            Some(Ok(outcome)) => self.done(partial, outcome),
            _ => Ok(()),
        }
    }

    fn done(&mut self, partial: &mut PartialFile, outcome: io::Result<()>) -> Result<(), Error> {
        if let Some((ranges, _)) = self.running.take() {
            partial.set_synced(ranges, outcome)?;
        }
        Ok(())
    }
}
