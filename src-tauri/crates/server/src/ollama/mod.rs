//! Ollama's surface.

pub(crate) mod chat;
mod content;
pub(crate) mod embed;
mod fields;
pub(crate) mod generate;
pub(crate) mod models;
pub(crate) mod reply;
