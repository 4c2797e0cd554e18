//! Projects: folders of chats, and their files.

pub(crate) mod files;
pub(crate) mod list;
