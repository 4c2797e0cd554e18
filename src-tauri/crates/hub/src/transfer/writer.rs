//! The thread that puts the pieces of one file on the disk and lets the hash follow.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use protocol::DownloadState;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::front::Front;
use super::partial::Partial;
use super::progress::Item;
use super::room::room;
use super::stretches::Stretches;
use crate::layout::Etag;
use crate::Error;

/// Pieces that may wait for the disk; the network waits for more room, so this bounds the memory of a file.
pub const WAITING: usize = 16;
/// Bytes that the hash reads back at once while nothing else is to do.
const STEP: u64 = 4 << 20;
/// Bytes and time after which what was written is forced to the disk.
const FORCE_AFTER: u64 = 256 << 20;
const FORCE_EVERY: Duration = Duration::from_secs(10);

/// What connections hand to the writer.
#[derive(Debug)]
pub enum Piece {
    /// Bytes, and their place in the file.
    Bytes(u64, Bytes),
    /// The ETag that the file is served with.
    Etag(String),
}

/// How the writing of a file ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// All is there, the hash is right, the blob has its name.
    Right,
    /// All is there and the hash is another one, this one.
    Wrong(String),
    /// Bytes are missing.
    Partly,
}

/// A file being written.
pub struct Writer {
    /// What is there so far.
    pub partial: Partial,
    /// What it must hash to.
    pub etag: Etag,
    /// The name it gets when it is right.
    pub name: PathBuf,
    /// Where its progress is told.
    pub item: Arc<Item>,
    /// Ends the reading back; what is on disk stays.
    pub stop: CancellationToken,
    /// Bytes that must stay free on the disk.
    pub margin: u64,
}

impl Writer {
    /// Writes pieces until nobody sends any more. Blocks; hands the partial file back.
    pub fn run(mut self, pieces: mpsc::Receiver<Piece>, runtime: &Handle) -> (Partial, Result<End, Error>) {
        let end = self.write(pieces, runtime);
        if !matches!(end, Ok(End::Right)) {
            // A full disk has no room for the record either; the one before still says the truth.
            if let Err(error) = self.partial.note() {
                tracing::debug!("the record of a download is behind: {error}");
            }
        }
        (self.partial, end)
    }

    fn write(&mut self, mut pieces: mpsc::Receiver<Piece>, runtime: &Handle) -> Result<End, Error> {
        let mut front = Front::new(&self.etag, self.partial.size());
        let mut forcing = Forcing::new();
        loop {
            let piece = match pieces.try_recv() {
                Ok(piece) => piece,
                Err(mpsc::error::TryRecvError::Disconnected) => break,
                Err(mpsc::error::TryRecvError::Empty) if front.at() < self.partial.there().front() => {
                    self.follow(&mut front, STEP)?;
                    self.keep_up(&mut forcing)?;
                    continue;
                }
                Err(mpsc::error::TryRecvError::Empty) => {
                    let next = match self.partial.note_due() {
                        Some(due) => runtime.block_on(async { tokio::time::timeout_at(due.into(), pieces.recv()).await }),
                        None => Ok(pieces.blocking_recv()),
                    };
                    match next {
                        Ok(Some(piece)) => piece,
                        Ok(None) => break,
                        Err(_) => {
                            self.partial.note()?;
                            continue;
                        }
                    }
                }
            };
            match piece {
                Piece::Etag(etag) => self.partial.set_validator(etag),
                Piece::Bytes(offset, bytes) => {
                    self.partial.write(offset, &bytes)?;
                    self.item.set_done(self.partial.there().total());
                    front.meet(offset, &bytes);
                    // Twice what arrived: the hash catches up with what it has before it, and the network never waits for all of that.
                    self.follow(&mut front, 2 * bytes.len() as u64)?;
                    forcing.written += bytes.len() as u64;
                }
            }
            self.keep_up(&mut forcing)?;
        }
        forcing.finish(&mut self.partial)?;
        self.finish(front)
    }

    fn finish(&mut self, mut front: Front) -> Result<End, Error> {
        let size = self.partial.size();
        if !self.partial.there().covers(size) {
            return Ok(End::Partly);
        }
        self.item.set_state(DownloadState::Verifying);
        while front.at() < size {
            if self.stop.is_cancelled() {
                return Ok(End::Partly);
            }
            self.follow(&mut front, STEP)?;
        }
        let digits = front.finish();
        if digits != self.etag.as_str() {
            return Ok(End::Wrong(digits));
        }
        self.partial.publish(&self.name)?;
        Ok(End::Right)
    }

    fn follow(&self, front: &mut Front, most: u64) -> Result<(), Error> {
        front
            .follow(self.partial.file(), self.partial.there().front(), most)
            .map_err(|source| Error::Read {
                path: self.name.clone(),
                source,
            })
    }

    fn keep_up(&mut self, forcing: &mut Forcing) -> Result<(), Error> {
        if self.partial.note_due().is_some_and(|due| due <= Instant::now()) {
            self.partial.note()?;
            room(&self.name, 0, self.margin)?;
        }
        forcing.go_on(&mut self.partial)
    }
}

/// Forces what was written to the disk now and then, on a thread of its own, so that a power cut costs seconds of a download and
/// the end does not wait for all of it at once.
struct Forcing {
    written: u64,
    since: Instant,
    running: Option<(Stretches, oneshot::Receiver<io::Result<()>>)>,
}

impl Forcing {
    fn new() -> Self {
        Self {
            written: 0,
            since: Instant::now(),
            running: None,
        }
    }

    fn go_on(&mut self, partial: &mut Partial) -> Result<(), Error> {
        if let Some((_, running)) = &mut self.running {
            match running.try_recv() {
                Ok(outcome) => self.done(partial, outcome)?,
                Err(oneshot::error::TryRecvError::Empty) => return Ok(()),
                Err(oneshot::error::TryRecvError::Closed) => self.running = None,
            }
        }
        if self.written >= FORCE_AFTER || (self.written > 0 && self.since.elapsed() >= FORCE_EVERY) {
            let (tell, outcome) = oneshot::channel();
            // Where the file cannot be opened twice, the end forces it all the same.
            if let Ok(file) = partial.file().try_clone() {
                tokio::task::spawn_blocking(move || tell.send(force(&file)));
                self.running = Some((partial.there().clone(), outcome));
            }
            self.written = 0;
            self.since = Instant::now();
        }
        Ok(())
    }

    fn finish(&mut self, partial: &mut Partial) -> Result<(), Error> {
        match self.running.as_mut().map(|(_, running)| running.try_recv()) {
            Some(Ok(outcome)) => self.done(partial, outcome),
            _ => Ok(()),
        }
    }

    fn done(&mut self, partial: &mut Partial, outcome: io::Result<()>) -> Result<(), Error> {
        if let Some((stretches, _)) = self.running.take() {
            partial.outcome_of_forcing(stretches, outcome)?;
        }
        Ok(())
    }
}

fn force(file: &File) -> io::Result<()> {
    file.sync_data()
}
