//! One file on its way: its lock, its connections, its hash, its name.

use std::path::Path;
use std::sync::Arc;

use protocol::{DownloadState, ErrorCode};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::address::Address;
use super::connections::Connections;
use super::course::{Course, Halt};
use super::job::after;
use super::partial::{discard, Partial};
use super::parts::Parts;
use super::progress::Item;
use super::writer::{End, Writer, WAITING};
use crate::layout::Lock;
use crate::{Error, Hub};

/// How often a file is begun anew because the server cannot go on with it.
const MOST_NEW_BEGINNINGS: u32 = 4;

/// Fetches one blob, unless it is there and right. Afterwards it is under its name.
///
/// # Errors
/// [`Halt`]; what was fetched is kept for the next time, unless it is known to be wrong.
pub async fn fetch(course: &Arc<Course>, hub: &Hub, item: &Arc<Item>) -> Result<(), Halt> {
    let _lock = lock(course, item).await?;
    let name = course.repository.blob(&item.etag);
    if is_there(course, item, &name).await? {
        finished(course, item, &name);
        return Ok(());
    }
    item.set_state(DownloadState::Running);
    let place = course.repository.partial(&item.etag);
    let path = item.paths.first().ok_or_else(|| Error::Missing { path: name.clone() })?;
    let address = Address::new(hub, course.repository.id(), &course.commit, path, &item.etag, item.size);
    let mut partial = Partial::open(&place, item.size)?;
    let (mut part, mut wrong, mut beginnings) = (course.pace.part, false, 0);
    loop {
        let (kept, end) = gather(course, item, &address, partial, &name, part).await?;
        partial = kept;
        match end {
            Ok(End::Right) => {
                finished(course, item, &name);
                return Ok(());
            }
            Ok(End::Wrong(digits)) if !wrong => {
                tracing::info!("{path} of {} hashes to {digits} and is fetched once more", course.repository.id());
                wrong = true;
            }
            Ok(End::Wrong(_)) => {
                drop(partial);
                discard(&place)?;
                item.set_done(0);
                return Err(Halt::Failed(Error::Damaged {
                    path: path.to_string(),
                    host: hub.net().endpoint().host(),
                }));
            }
            Ok(End::Partly) if course.stop.is_cancelled() => return Err(Halt::Stopped),
            Ok(End::Partly) => return Err(gave_up(item, "not all bytes came")),
            Err(Halt::StartOver(reason)) => {
                beginnings += 1;
                if beginnings > MOST_NEW_BEGINNINGS {
                    return Err(gave_up(item, &reason));
                }
                tracing::info!("{path} of {} is begun anew: {reason}", course.repository.id());
                // A server that mixes up parts is asked for the whole file.
                part = u64::MAX;
            }
            Err(Halt::Changed(reason)) => {
                drop(partial);
                discard(&place)?;
                item.set_done(0);
                return Err(Halt::Changed(format!("{path}: {reason}")));
            }
            Err(halt) => return Err(halt),
        }
        partial.forget()?;
        // The hub is asked anew, because it may have another file by now.
        address.forget();
        item.set_done(0);
        item.set_state(DownloadState::Running);
    }
}

/// The error of a file that is given up for now.
pub fn gave_up(item: &Item, reason: &str) -> Halt {
    let path = item.paths.first().map(ToString::to_string).unwrap_or_default();
    Halt::Failed(Error::GaveUp {
        path,
        reason: reason.to_owned(),
    })
}

/// Takes the blob's lock, and waits while another program has it.
async fn lock(course: &Course, item: &Item) -> Result<Lock, Halt> {
    loop {
        if course.stop.is_cancelled() {
            return Err(Halt::Stopped);
        }
        if let Some(lock) = course.repository.try_lock(&item.etag)? {
            return Ok(lock);
        }
        item.wait(another_program(), after(course.pace.lock));
        course.sleep(course.pace.lock).await?;
    }
}

/// Why a download waits for a lock.
pub fn another_program() -> protocol::Error {
    let message = "another program is fetching this model; this goes on when that one is done";
    protocol::Error::new(ErrorCode::Stopped, message)
}

async fn is_there(course: &Arc<Course>, item: &Arc<Item>, name: &Path) -> Result<bool, Halt> {
    if !name.is_file() {
        return Ok(false);
    }
    item.set_state(DownloadState::Verifying);
    let (course, reading, name) = (Arc::clone(course), Arc::clone(item), name.to_owned());
    let right = tokio::task::spawn_blocking(move || course.seen.check(&name, &reading, &course.stop))
        .await
        .map_err(|_| Error::Broken)??;
    if !right {
        item.set_done(0);
    }
    Ok(right)
}

fn finished(course: &Course, item: &Item, name: &Path) {
    course.seen.is_right(name);
    item.set_done(item.size);
    item.set_state(DownloadState::Done);
}

/// Brings in what is missing. The partial file comes back in any case but one: the thread that writes broke.
async fn gather(
    course: &Arc<Course>,
    item: &Arc<Item>,
    address: &Address,
    partial: Partial,
    name: &Path,
    part: u64,
) -> Result<(Partial, Result<End, Halt>), Halt> {
    item.set_done(partial.there().total());
    let parts = Parts::new(partial.there(), item.size, part);
    let (send, receive) = mpsc::channel(WAITING);
    let connections = Connections::new(course, item, address, parts, partial.validator().map(Into::into), send);
    let writer = Writer {
        partial,
        etag: item.etag.clone(),
        name: name.to_owned(),
        item: Arc::clone(item),
        stop: course.stop.clone(),
        margin: course.pace.margin / 8,
    };
    let runtime = Handle::current();
    let writing = tokio::task::spawn_blocking(move || writer.run(receive, &runtime));
    // The connections end, and with them the sender, before the writer is waited for.
    let came = connections.run().await;
    let (partial, end) = writing.await.map_err(|_| Error::Broken)?;
    let end = match (end, came) {
        // Why nothing could be written says more than that the connections found nobody to write.
        (Err(error), _) => Err(Halt::Failed(error)),
        (Ok(End::Partly), Err(halt)) => Err(halt),
        (Ok(end), _) => Ok(end),
    };
    Ok((partial, end))
}
