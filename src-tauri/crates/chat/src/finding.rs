//! Full-text search over all chats.

use std::sync::Weak;
use std::time::Duration;

use protocol::{HistoryHits, HistoryQuery, Result};
use tokio::time::{sleep, timeout};

use crate::{Chat, Inner};

/// So many texts are read into the index before others get their turn at the file.
const TEXTS_AT_ONCE: usize = 100;
/// The pause between two such steps.
const BETWEEN_STEPS: Duration = Duration::from_millis(20);
/// How often it is looked whether texts have changed, if nobody says that anything has.
const LOOK_EVERY: Duration = Duration::from_secs(60);

impl Chat {
    /// Where words stand in titles, questions, answers and names of what is attached.
    pub async fn search(&self, query: &HistoryQuery) -> Result<HistoryHits> {
        Ok(self.0.history.search(query).await?)
    }
}

/// Reads texts into the index as long as somebody uses the chats: those of a file of an earlier version, and what is said later.
pub(crate) async fn read_into_index(inner: Weak<Inner>) {
    loop {
        let Some(inner) = inner.upgrade() else { return };
        let mut changes = inner.changes.subscribe();
        let more = match inner.history.index_texts(TEXTS_AT_ONCE, false).await {
            Ok(more) => more,
            Err(error) => {
                tracing::debug!(%error, "texts could not be read into the index; it is tried again");
                false
            }
        };
        drop(inner);
        match more {
            true => sleep(BETWEEN_STEPS).await,
            // The sender goes with the last who uses the chats.
            false => drop(timeout(LOOK_EVERY, changes.changed()).await),
        }
    }
}
