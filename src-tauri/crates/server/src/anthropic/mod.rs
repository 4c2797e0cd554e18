//! Anthropic's surface.

pub(crate) mod content;
pub(crate) mod messages;
pub(crate) mod messages_reply;
mod source;
