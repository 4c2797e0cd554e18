//! Fetching one file: its lock, its connections, its hash, its name.

use std::path::Path;
use std::sync::Arc;

use api::DownloadState;
use protocol::ErrorCode;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::connections::Connections;
use super::context::DownloadContext;
use super::file_source::FileSource;
use super::partial::{discard, PartialFile};
use super::progress::{after, DownloadItem};
use super::range_allocator::RangeAllocator;
use super::stop::{retries_exhausted, sleep, Stop};
use super::writer::{FileWriter, WriteOutcome, WAITING};
use crate::cache::Lock;
use crate::error::Error;
use crate::huggingface::HubApi;

/// Limit of new beginnings of a file that the server cannot continue.
const MOST_NEW_BEGINNINGS: u32 = 4;

/// Fetches one blob, unless it is there with the right hash. Afterwards it has its name.
///
/// # Errors
/// [`Stop`]; fetched bytes are kept for the next time, unless they are known to be wrong.
pub async fn fetch(context: &Arc<DownloadContext>, api: &HubApi, item: &Arc<DownloadItem>) -> Result<(), Stop> {
    let _lock = lock(context, item).await?;
    let name = context.repository.blob(&item.etag);
    if is_there(context, item, &name).await? {
        finished(context, item, &name);
        return Ok(());
    }
    item.set_state(DownloadState::Running);
    let place = context.repository.partial(&item.etag);
    let path = item.paths.first().ok_or_else(|| Error::Missing(name.clone()))?;
    let address = FileSource::new(
        api,
        context.repository.id(),
        &context.commit,
        path,
        &item.etag,
        item.size,
    );
    let mut partial = PartialFile::open(&place, item.size)?;
    let (mut part, mut wrong, mut beginnings) = (context.limits.part, false, 0);
    loop {
        let (kept, end) = fetch_missing(context, item, &address, partial, &name, part).await?;
        partial = kept;
        match end {
            Ok(WriteOutcome::Verified) => {
                finished(context, item, &name);
                return Ok(());
            }
            Ok(WriteOutcome::Mismatch(digits)) if !wrong => {
                tracing::info!(
                    "{path} of {} hashes to {digits} and is fetched once more",
                    context.repository.id()
                );
                wrong = true;
            }
            Ok(WriteOutcome::Mismatch(_)) => {
                drop(partial);
                discard(&place)?;
                item.set_done(0);
                return Err(Stop::Failed(Error::Damaged {
                    path: path.to_string(),
                    host: api.host(),
                }));
            }
            Ok(WriteOutcome::Incomplete) if context.stop.is_cancelled() => return Err(Stop::Canceled),
            Ok(WriteOutcome::Incomplete) => return Err(retries_exhausted(item, "not all bytes came")),
            Err(Stop::Restart(reason)) => {
                beginnings += 1;
                if beginnings > MOST_NEW_BEGINNINGS {
                    return Err(retries_exhausted(item, &reason));
                }
                tracing::info!("{path} of {} is started over: {reason}", context.repository.id());
                // A server that mixes up ranges is asked for the whole file.
                part = u64::MAX;
            }
            Err(Stop::Changed(reason)) => {
                drop(partial);
                discard(&place)?;
                item.set_done(0);
                return Err(Stop::Changed(format!("{path}: {reason}")));
            }
            Err(stop) => return Err(stop),
        }
        partial.reset()?;
        // The hub may have another file by now, so its redirect is forgotten.
        address.forget();
        item.set_done(0);
        item.set_state(DownloadState::Running);
    }
}

/// Takes the blob's lock, and waits while another program holds it.
async fn lock(context: &DownloadContext, item: &DownloadItem) -> Result<Lock, Stop> {
    loop {
        if context.stop.is_cancelled() {
            return Err(Stop::Canceled);
        }
        if let Some(lock) = context.repository.try_lock(&item.etag)? {
            return Ok(lock);
        }
        item.wait(locked_by_another_program(), after(context.limits.lock));
        sleep(&context.stop, context.limits.lock).await?;
    }
}

/// The reason of a download that waits for a lock.
pub fn locked_by_another_program() -> protocol::Error {
    let message = "another program is fetching this model; this continues when that is done";
    protocol::Error::new(ErrorCode::Stopped, message)
}

async fn is_there(context: &Arc<DownloadContext>, item: &Arc<DownloadItem>, name: &Path) -> Result<bool, Stop> {
    if !name.is_file() {
        return Ok(false);
    }
    item.set_state(DownloadState::Verifying);
    let (context, reading, name) = (Arc::clone(context), Arc::clone(item), name.to_owned());
    let right = tokio::task::spawn_blocking(move || context.verified.check(&name, &reading, &context.stop))
        .await
        .map_err(|_| Error::Broken)??;
    if !right {
        item.set_done(0);
    }
    Ok(right)
}

fn finished(context: &DownloadContext, item: &DownloadItem, name: &Path) {
    context.verified.insert(name);
    item.set_done(item.size);
    item.set_state(DownloadState::Done);
}

/// Fetches the missing ranges. Returns the partial file, unless the writing thread panicked.
async fn fetch_missing(
    context: &Arc<DownloadContext>,
    item: &Arc<DownloadItem>,
    address: &FileSource,
    partial: PartialFile,
    name: &Path,
    part: u64,
) -> Result<(PartialFile, Result<WriteOutcome, Stop>), Stop> {
    item.set_done(partial.ranges().total());
    let parts = RangeAllocator::new(partial.ranges(), item.size, part);
    let (send, receive) = mpsc::channel(WAITING);
    let connections = Connections::new(context, item, address, parts, partial.validator().map(Into::into), send);
    let writer = FileWriter {
        partial,
        etag: item.etag.clone(),
        name: name.to_owned(),
        item: Arc::clone(item),
        stop: context.stop.clone(),
        margin: context.limits.margin / 8,
    };
    let runtime = Handle::current();
    let writing = tokio::task::spawn_blocking(move || writer.run(receive, &runtime));
    // The connections, and with them the sender, end before the writer is awaited.
    let came = connections.run().await;
    let (partial, end) = writing.await.map_err(|_| Error::Broken)?;
    let end = match (end, came) {
        // The writer's error is the cause; the connections only lost their receiver.
        (Err(error), _) => Err(Stop::Failed(error)),
        (Ok(WriteOutcome::Incomplete), Err(stop)) => Err(stop),
        (Ok(end), _) => Ok(end),
    };
    Ok((partial, end))
}
