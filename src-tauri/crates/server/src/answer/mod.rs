//! An answer between the engine and its surface.

pub(crate) mod allowed_documents;
pub(crate) mod broken_call;
pub(crate) mod event_reader;
pub(crate) mod file_search;
pub(crate) mod logprobs;
pub(crate) mod reply;
pub(crate) mod reply_event;
pub(crate) mod responses_store;
