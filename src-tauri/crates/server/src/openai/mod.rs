//! OpenAI's surfaces.

pub(crate) mod chat;
pub(crate) mod chat_reply;
pub(crate) mod completions;
pub(crate) mod completions_reply;
pub(crate) mod embeddings;
pub(crate) mod file_search;
pub(crate) mod input_items;
mod response_item;
pub(crate) mod responses;
pub(crate) mod responses_input;
pub(crate) mod responses_replay;
pub(crate) mod responses_reply;
pub(crate) mod usage;
