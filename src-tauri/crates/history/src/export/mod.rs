//! Chats as Markdown, JSON and HTML, and as documents that are searched.

mod document;
pub(crate) mod html;
pub(crate) mod text;
