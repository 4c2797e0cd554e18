//! Chats as Markdown, JSON and HTML.

pub(crate) mod html;
pub(crate) mod text;
