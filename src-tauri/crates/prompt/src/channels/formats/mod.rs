//! The formats: the markers that separate a model's reasoning and tool calls from its answer. A model's format
//! is put together from the rows of two tables whose markers its tokenizer or its template knows.

mod calls;
mod channel_format;
mod header;
mod marker;
mod row;
mod thoughts;

pub(super) use channel_format::names;
pub(crate) use channel_format::ChannelFormat;
pub(super) use header::{Body, Headers};
pub(super) use marker::{Marker, MarkerKind};
