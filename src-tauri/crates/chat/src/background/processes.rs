//! Notices changes that other processes make to the same history.

use std::future::pending;
use std::sync::Weak;
use std::time::Duration;

use history::Writes;
use tokio::time::{sleep, Instant};

use crate::core::Core;

/// The history is checked for writes of other processes, and for dead ones, at most this often.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// After a write the file is checked every second for this long: the notification comes before the commit, which takes
/// a while on a slow disk.
const SETTLES: Duration = Duration::from_secs(5);

/// How often it is looked whether the processes of answers live that are not written here.
const LIVING_EVERY: Duration = Duration::from_secs(5);

/// How often the file is looked at all the same: of writes to a folder on a network from other computers nothing is
/// heard.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// Notices what other processes do, as long as somebody uses the chats. While nobody writes, next to nothing is done.
pub(crate) async fn watch(core: Weak<Core>) {
    let Some((writes, mut closing)) = core.upgrade().map(|core| (writes(&core), core.closing.subscribe())) else {
        return;
    };
    let mut last_change = None;
    let mut settled = Instant::now() + SETTLES;
    loop {
        let Some(foreign) = look(&core, &mut last_change).await else {
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

/// The watcher for writes, if the system has one.
fn writes(core: &Core) -> Option<Writes> {
    let told = core.history.writes();
    told.inspect_err(|error| tracing::info!(%error, "the history is looked at every second"))
        .ok()
}

async fn heard(writes: Option<&Writes>) {
    match writes {
        Some(writes) => writes.heard().await,
        None => pending().await,
    }
}

/// Tells everybody here what others have changed since the last time; whether answers run that are not written here.
/// `None` when nobody uses the chats any more.
async fn look(core: &Weak<Core>, last_change: &mut Option<i64>) -> Option<bool> {
    let core = core.upgrade()?;
    if let Ok(change) = core.history.foreign_changes().await {
        let last = last_change.replace(change);
        if last != Some(change) {
            // Also at the first look, because another process may have written since the settings were read.
            core.reload_settings().await;
            if last.is_some() {
                core.changed();
            }
        }
    }
    let foreign = core.mark_interrupted().await;
    Some(foreign.unwrap_or_else(|error| {
        tracing::warn!(%error, "the history could not be searched for interrupted answers");
        true
    }))
}
