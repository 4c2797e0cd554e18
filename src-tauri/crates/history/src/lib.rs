//! The history file: chats, their messages as trees, and settings, in one SQLite file that the window and the command
//! line use at the same time. It never knows an engine, a window or a prompt.
//!
//! Times are Unix milliseconds, ids are UUIDv7 texts. An id that does not exist is [`Error::NotFound`], and a chat in
//! the trash counts as not existing for everything but [`History::restore_chat`].

#[macro_use]
mod sql;
mod attachments;
mod chats;
mod error;
mod export;
mod file;
mod import;
mod json;
mod messages;
mod projects;
mod recovery;
mod search;
mod settings;
mod stamp;
mod temporary;

pub use attachments::Attachment;
pub use error::{Error, Result};
pub use export::html::page;
pub use export::text::{exported_together, with_projects, ExportedImages};
pub use file::backup::{backups, remove_backups, Backup, Checked};
pub use file::database::History;
pub use file::writes::Writes;
pub use import::{check_import_beginning, read_import, ImportFormat, ImportedChat, ImportedChats, LONGEST_IMPORT};
pub use messages::answers::StreamingAnswer;
pub use messages::parts::{AnswerDelta, ControlRequests, PartDelta};
pub use messages::tool_calls::OpenCall;
pub use messages::tool_results::NOT_RUN;
pub use messages::turns::NewAnswer;
pub use recovery::repair::{
    examine, files_set_aside, is_damaged, readable_copy, remove_copies, remove_examined, remove_set_aside, repair,
    set_aside, Contents, Damage, Remedy, Repaired,
};
pub use settings::stored_settings;
pub use stamp::now;
