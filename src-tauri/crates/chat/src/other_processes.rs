//! What other processes do to the same history.

use std::future::pending;
use std::sync::Weak;
use std::time::Duration;

use history::Writes;
use tokio::time::{sleep, Instant};

use crate::{Inner, CHECK_EVERY};

/// For so long after a write the file is looked at every second: a write is heard before it holds, and on a slow disk that takes a while.
const SETTLES: Duration = Duration::from_secs(5);

/// How often it is looked whether the processes of answers live that are not written here.
const LIVING_EVERY: Duration = Duration::from_secs(5);

/// How often the file is looked at all the same: of writes to a folder on a network from other computers nothing is heard.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// Notices what other processes do, as long as somebody uses the chats. While nobody writes, next to nothing is done.
pub(crate) async fn watch(inner: Weak<Inner>) {
    let Some((writes, mut closing)) = inner.upgrade().map(|inner| (writes(&inner), inner.closing.subscribe())) else {
        return;
    };
    let mut last_change = None;
    let mut settled = Instant::now() + SETTLES;
    loop {
        let Some(foreign) = look(&inner, &mut last_change).await else {
            return;
        };
        let wait = match (&writes, foreign) {
            _ if Instant::now() < settled => CHECK_EVERY,
            (None, _) => CHECK_EVERY,
            (Some(_), true) => LIVING_EVERY,
            (Some(_), false) => LOOK_EVERY,
        };
        // Not more often than every second, however much is written.
        let next = async {
            sleep(CHECK_EVERY).await;
            tokio::select! {
                () = heard(writes.as_ref()) => true,
                () = sleep(wait - CHECK_EVERY) => false,
            }
        };
        tokio::select! {
            written = next => if written {
                settled = Instant::now() + SETTLES;
            },
            // Fails when nobody uses the chats any more.
            _ = closing.wait_for(|closing| *closing) => return,
        }
    }
}

/// What hears of writes, if the system tells.
fn writes(inner: &Inner) -> Option<Writes> {
    let told = inner.history.writes();
    told.inspect_err(|error| tracing::info!(%error, "the history is looked at every second"))
        .ok()
}

async fn heard(writes: Option<&Writes>) {
    match writes {
        Some(writes) => writes.heard().await,
        None => pending().await,
    }
}

/// Tells everybody here what others have changed since the last time; whether answers run that are not written here. `None` when nobody
/// uses the chats any more.
async fn look(inner: &Weak<Inner>, last_change: &mut Option<i64>) -> Option<bool> {
    let inner = inner.upgrade()?;
    if let Ok(change) = inner.history.foreign_changes().await {
        let last = last_change.replace(change);
        if last != Some(change) {
            // Also at the first look, because another process may have written since the settings were read.
            inner.reload_settings().await;
            if last.is_some() {
                inner.changed();
            }
        }
    }
    let foreign = inner.mark_interrupted().await;
    Some(foreign.unwrap_or_else(|error| {
        tracing::warn!(%error, "the history could not be searched for interrupted answers");
        true
    }))
}
