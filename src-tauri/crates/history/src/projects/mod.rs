//! Projects: folders of chats, their files, and notes about the user.

pub(crate) mod files;
pub(crate) mod list;
mod notes;
