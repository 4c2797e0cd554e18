//! The history file: chats, their messages as trees, and settings, in one SQLite file that the window and the command line
//! use at the same time. The only room that knows SQL; it never knows an engine, a window or a prompt.
//!
//! Times are Unix milliseconds, ids are UUIDv7 texts. An id that does not exist is [`Error::NotFound`], and a chat in the
//! trash counts as not existing for everything but [`History::restore_chat`].

mod attachments;
mod backup;
mod branches;
mod chats;
mod continuation;
mod cuts;
mod database;
mod error;
mod export;
mod export_html;
mod folder_files;
mod folders;
mod import;
mod messages;
mod parts;
mod plain_text;
mod privacy;
mod repair;
mod rows;
mod search;
mod search_index;
mod search_words;
mod settings;
mod tool_results;
mod writes;

use std::time::{SystemTime, UNIX_EPOCH};

pub use attachments::Attachment;
pub use backup::{backups, remove_backups, Backup};
pub use database::History;
pub use error::{Error, Result};
pub use export::{exported_together, with_folders, ExportedPictures};
pub use export_html::page;
pub use import::{check_import_beginning, read_import, ImportFormat, ImportOutcome, ImportedChats, LONGEST_IMPORT};
pub use messages::{NewAnswer, StreamingAnswer};
pub use parts::{AnswerDelta, ControlRequests, PartDelta};
pub use repair::{readable_copy, repair, repair_if_suspect, set_aside, suspect, Repaired};
pub use settings::stored_settings;
pub use tool_results::NOT_RUN;
pub use writes::Writes;

/// The time by the computer's clock, in Unix milliseconds.
pub fn now() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as i64)
}

/// A new id; of one process, younger ids sort after older ones.
fn new_id() -> String {
    uuid::Uuid::now_v7().to_string()
}
