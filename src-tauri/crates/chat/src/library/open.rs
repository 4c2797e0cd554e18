//! A history that cannot be opened as it is: it is set aside, copied for looking at alone, or repaired.

use std::path::{Path, PathBuf};

use api::{HistoryContents, HistoryDamage, HistoryRemedy, RepairedHistory, UsableBackup};
use history::{Contents, Remedy};
use protocol::{Error, ErrorCode, Result};

/// Moves a history file that cannot be opened out of the way, where it is kept; returns where that is.
///
/// # Errors
/// `Storage` if it can be opened after all, another program has it open, or it cannot be moved.
pub async fn set_history_aside(database: &Path) -> Result<PathBuf> {
    refuse_sound(database).await?;
    Ok(history::set_aside(database)?)
}

/// Fails if the history is not damaged any more: another program may have repaired it since it was found so.
async fn refuse_sound(database: &Path) -> Result<()> {
    // Any other error leads to the remedy, too, which reports it if it is in its way.
    match history::is_damaged(database).await {
        Ok(false) => Err(Error::new(
            ErrorCode::Storage,
            "the history can be read again; nothing was changed. Please open Ponder again",
        )),
        _ => Ok(()),
    }
}

/// Writes all that can be read of a history to a copy beside it, for [`crate::Chat::open_read_only`]; returns the copy.
///
/// # Errors
/// `Storage` if nothing can be read, or the copy cannot be written.
pub async fn readable_history(database: &Path) -> Result<PathBuf> {
    Ok(history::readable_copy(database).await?)
}

/// True if a history is damaged. A damaged search index is made anew.
///
/// # Errors
/// `Storage` if it cannot be read for another reason.
pub async fn history_is_damaged(database: &Path) -> Result<bool> {
    Ok(history::is_damaged(database).await?)
}

/// Counts what is left of a damaged history, which stays as it is.
///
/// # Errors
/// `Storage` if there is no room to do so.
pub async fn examine_history(database: &Path) -> Result<HistoryDamage> {
    let damage = history::examine(database).await?;
    let backup = |(made_at, found)| UsableBackup {
        made_at,
        contents: contents(found),
    };
    Ok(HistoryDamage {
        known_chats: damage.known_chats,
        readable: contents(damage.readable),
        backup: damage.backup.map(backup),
        together: contents(damage.together),
    })
}

/// Puts a new file in the place of a damaged history that nobody has open. The damaged one is kept beside it.
///
/// # Errors
/// `HistoryDamaged` if nothing can be read, `Storage` if it is not damaged any more, another program has it open or
/// nothing can be written; the file lies where it was then.
pub async fn repair_history(database: &Path, remedy: HistoryRemedy) -> Result<RepairedHistory> {
    refuse_sound(database).await?;
    let remedy = match remedy {
        HistoryRemedy::Everything => Remedy::Everything,
        HistoryRemedy::Backup => Remedy::Backup,
    };
    let done = history::repair(database, remedy).await?;
    Ok(RepairedHistory {
        set_aside: done.set_aside.display().to_string(),
        contents: contents(done.contents),
    })
}

pub(super) fn contents(found: Contents) -> HistoryContents {
    HistoryContents {
        chats: found.chats,
        messages: found.messages,
    }
}
