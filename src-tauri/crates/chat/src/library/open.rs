//! Opening a history file, and what is done about one that is damaged.

use std::path::{Path, PathBuf};

use api::RepairedHistory;
use history::{History, Repaired};
use protocol::Result;

/// Opens a history file; one that is damaged is repaired first, if anything of it can be read.
pub(crate) async fn open_history(database: &Path) -> Result<(History, Option<RepairedHistory>)> {
    let mut repaired = history::repair_if_suspect(database).await?;
    let opened = match History::open(database).await {
        Err(error) if repaired.is_none() && error.is_damage() => {
            tracing::warn!(%error, "the history is repaired");
            match history::repair(database).await {
                Ok(done) => repaired = Some(done),
                Err(reason) => {
                    tracing::warn!(%reason, "the history could not be repaired");
                    return Err(error.into());
                }
            }
            History::open(database).await
        }
        opened => opened,
    };
    let told = |done: Repaired| RepairedHistory {
        set_aside: done.set_aside.display().to_string(),
        chats: done.chats,
        from_backup: done.from_backup,
    };
    Ok((opened?, repaired.map(told)))
}

/// Moves a history file that nobody has open out of the way, where it is kept; returns where that is.
///
/// # Errors
/// `Storage` if it cannot be moved.
pub fn set_history_aside(database: &Path) -> Result<PathBuf> {
    Ok(history::set_aside(database)?)
}

/// Writes all that can be read of a history to a copy beside it, for [`crate::Chat::open_read_only`]; returns the copy.
///
/// # Errors
/// `Storage` if nothing can be read, or the copy cannot be written.
pub async fn readable_history(database: &Path) -> Result<PathBuf> {
    Ok(history::readable_copy(database).await?)
}
