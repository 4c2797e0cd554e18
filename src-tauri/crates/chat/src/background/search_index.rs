//! Texts are read into the search index, a few at a time.

use std::sync::Weak;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::core::Core;

/// The texts that are indexed in one step, after which others get their turn at the file.
const TEXTS_AT_ONCE: usize = 100;
/// The pause between two such steps.
const BETWEEN_STEPS: Duration = Duration::from_millis(20);
/// How often it is looked whether texts have changed, if nobody says that anything has.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// Reads texts into the index as long as somebody uses the chats: those of a file of an earlier version, and what is
/// said later.
pub(crate) async fn read_into_index(core: Weak<Core>) {
    loop {
        let Some(core) = core.upgrade() else { return };
        let mut changes = core.changes.subscribe();
        let more = match core.history.index_texts(TEXTS_AT_ONCE, false).await {
            Ok(more) => more,
            Err(error) => {
                tracing::debug!(%error, "texts could not be read into the index; it is tried again");
                false
            }
        };
        drop(core);
        match more {
            true => sleep(BETWEEN_STEPS).await,
            // The sender goes with the last who uses the chats.
            false => drop(timeout(LOOK_EVERY, changes.changed()).await),
        }
    }
}
