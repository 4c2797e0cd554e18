//! Replies of servers, read into the events of an answer.

mod calls;
mod chunk;
mod content_parser;
mod stream_assembler;
mod text_format;

#[cfg(test)]
pub(crate) use chunk::Chunk;
pub(crate) use chunk::{error_message, Reply};
pub(crate) use stream_assembler::StreamAssembler;
