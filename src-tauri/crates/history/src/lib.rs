//! The history file: chats, their messages as trees, and settings, in one SQLite file that the window and the command
//! line use at the same time. The only room that knows SQL; it never knows an engine, a window or a prompt.
//!
//! Times are Unix milliseconds, ids are UUIDv7 texts. An id that does not exist is [`Error::NotFound`], and a chat in
//! the trash counts as not existing for everything but [`History::restore_chat`].

#[macro_use]
mod from_row;
mod attachments;
mod chats;
mod error;
mod export;
mod file;
mod import;
mod json;
mod messages;
mod projects;
mod search;
mod settings;
mod stamp;

pub use attachments::Attachment;
pub use error::{Error, Result};
pub use export::html::page;
pub use export::text::{exported_together, with_projects, ExportedImages};
pub use file::backup::{backups, remove_backups, Backup};
pub use file::database::History;
pub use file::repair::{readable_copy, repair, repair_if_suspect, set_aside, suspect, Repaired};
pub use file::writes::Writes;
pub use import::{check_import_beginning, read_import, ImportFormat, ImportOutcome, ImportedChats, LONGEST_IMPORT};
pub use messages::answers::StreamingAnswer;
pub use messages::parts::{AnswerDelta, ControlRequests, PartDelta};
pub use messages::tool_results::NOT_RUN;
pub use messages::turns::NewAnswer;
pub use settings::stored_settings;
pub use stamp::now;
