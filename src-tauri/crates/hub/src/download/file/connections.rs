//! The connections that fetch the ranges of one file.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use api::DownloadState;
use futures::stream::{FuturesUnordered, TryStreamExt};
use tokio::sync::{mpsc, watch};

use super::super::limits::Backoff;
use super::context::DownloadContext;
use super::file_source::{classify, FileSource, OpenedRange, RequestFailure};
use super::progress::{after, DownloadItem};
use super::range_allocator::RangeAllocator;
use super::range_response::RangeRequest;
use super::stop::{retries_exhausted, Stop};
use super::writer::Piece;

/// The connections of one file. Dropping the future of [`Connections::run`] closes them all.
pub struct Connections<'a> {
    context: &'a DownloadContext,
    item: &'a DownloadItem,
    address: &'a FileSource,
    parts: RangeAllocator,
    validator: Mutex<Option<String>>,
    send: mpsc::Sender<Piece>,
    answered: watch::Sender<bool>,
    brought: AtomicU64,
}

impl<'a> Connections<'a> {
    /// Connections that fetch these ranges; the bytes on disk came with the ETag `validator`.
    pub fn new(
        context: &'a DownloadContext,
        item: &'a DownloadItem,
        address: &'a FileSource,
        parts: RangeAllocator,
        validator: Option<String>,
        send: mpsc::Sender<Piece>,
    ) -> Self {
        Self {
            context,
            item,
            address,
            parts,
            validator: Mutex::new(validator),
            send,
            answered: watch::Sender::new(false),
            brought: AtomicU64::new(0),
        }
    }

    /// Runs until all ranges were handed to the writer.
    ///
    /// # Errors
    /// [`Stop`]; the first one ends all connections.
    pub async fn run(self) -> Result<(), Stop> {
        let count = self.parts.len().min(self.context.limits.parts.max(1));
        let connections: FuturesUnordered<_> = (0..count).map(|number| self.connection(number)).collect();
        tokio::select! {
            () = self.context.stop.cancelled() => Err(Stop::Canceled),
            ended = connections.try_collect::<()>() => ended,
        }
    }

    /// Fetches one range after the other.
    async fn connection(&self, number: usize) -> Result<(), Stop> {
        if number > 0 {
            // The first answer shows if the server supports ranges.
            let _ = self.answered.subscribe().wait_for(|answered| *answered).await;
        }
        let mut backoff = Backoff::default();
        loop {
            self.context.held_off().await;
            // The permit comes before the range: a connection that waits for a permit must not hold one.
            let Ok(permit) = self.context.connections.acquire().await else {
                return Err(Stop::Canceled);
            };
            let Some(part) = self.parts.take() else { return Ok(()) };
            let mut at = part.start;
            let outcome = self.bring(part.clone(), &mut at).await;
            drop(permit);
            // After a complete answer there are no other ranges, and its end is the file's.
            let end = match &outcome {
                Ok(end) => *end,
                Err((_, end)) => *end,
            };
            self.parts.give_back(at..end);
            if at > part.start {
                backoff.reached();
            }
            let Err((trouble, _)) = outcome else { continue };
            match trouble {
                RequestFailure::Stop(stop) => return Err(stop),
                RequestFailure::Retry(error, asked) => {
                    if let Some(asked) = asked {
                        self.context.hold_off(asked);
                    }
                    let brought = self.brought.load(Ordering::Relaxed);
                    let Some(wait) = backoff.failed(&self.context.limits, brought, asked) else {
                        return Err(retries_exhausted(self.item, &error.message));
                    };
                    tracing::debug!("{} again in {wait:?}: {error}", part.start);
                    self.pause_for(error, wait).await;
                }
                RequestFailure::Unreachable(error) => {
                    let Some(wait) = backoff.unreachable(&self.context.limits) else {
                        return Err(Stop::Failed(error));
                    };
                    self.pause_for(error.into(), wait).await;
                }
            }
        }
    }

    async fn pause_for(&self, error: protocol::Error, wait: Duration) {
        self.item.wait(error, after(wait));
        tokio::time::sleep(wait).await;
    }

    /// Fetches one range as far as it comes; `at` is the position of the next byte. Returns the end of the range, or of
    /// the file if the server sends all of it.
    async fn bring(&self, part: Range<u64>, at: &mut u64) -> Result<u64, (RequestFailure, u64)> {
        let limits = &self.context.limits;
        let asked = RangeRequest {
            ranged: part != (0..self.item.size),
            range: part.clone(),
            size: self.item.size,
            validator: self.validator().clone(),
        };
        let opened = self
            .address
            .open(&asked, limits.stall)
            .await
            .map_err(|trouble| (trouble, part.end))?;
        let end = if opened.range.end > part.end {
            self.parts.clear();
            opened.range.end
        } else {
            part.end
        };
        self.note_etag(&opened)
            .await
            .map_err(|stop| (RequestFailure::Stop(stop), end))?;
        self.answered.send_replace(true);
        self.drain(opened, at)
            .await
            .map(|()| end)
            .map_err(|trouble| (trouble, end))
    }

    async fn note_etag(&self, opened: &OpenedRange) -> Result<(), Stop> {
        let Some(etag) = &opened.etag else { return Ok(()) };
        {
            let mut validator = self.validator();
            if validator.is_some() {
                return Ok(());
            }
            *validator = Some(etag.clone());
        }
        self.hand(Piece::Etag(etag.clone())).await
    }

    /// Hands the body of an answer to the writer.
    async fn drain(&self, opened: OpenedRange, at: &mut u64) -> Result<(), RequestFailure> {
        let OpenedRange {
            mut response, range, ..
        } = opened;
        let limits = &self.context.limits;
        let (mut since, mut brought) = (Instant::now(), 0);
        while *at < range.end {
            let next = match tokio::time::timeout(limits.stall, response.chunk()).await {
                Ok(next) => next.map_err(classify)?,
                Err(_) => return Err(RequestFailure::network("nothing came for too long")),
            };
            let Some(mut bytes) = next else {
                return Err(RequestFailure::network(
                    "the connection ended before all bytes had come",
                ));
            };
            let room = range.end - *at;
            if bytes.len() as u64 > room {
                bytes.truncate(usize::try_from(room).unwrap_or(usize::MAX));
            }
            brought += bytes.len() as u64;
            if since.elapsed() >= limits.stall {
                if brought < limits.trickle {
                    return Err(RequestFailure::network("next to nothing came for too long"));
                }
                (since, brought) = (Instant::now(), 0);
            }
            let (offset, length) = (*at, bytes.len() as u64);
            self.hand(Piece::Bytes(offset, bytes))
                .await
                .map_err(RequestFailure::Stop)?;
            *at += length;
            self.brought.fetch_add(length, Ordering::Relaxed);
            if self.item.state() != DownloadState::Running {
                self.item.set_state(DownloadState::Running);
            }
        }
        Ok(())
    }

    /// Hands a piece to the writer. One that has ended reports its own reason.
    async fn hand(&self, piece: Piece) -> Result<(), Stop> {
        self.send.send(piece).await.map_err(|_| Stop::Canceled)
    }

    fn validator(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.validator.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
