//! From a conversation to token ids and from token ids back to an answer: tokenizer, chat template, streaming
//! detokenizer, stop set and channel parser; and from texts to the ids that embedding models read. No MLX, network or database.

mod answer_prefix;
mod call_form;
mod channels;
mod chat_processor;
mod conversation;
mod detokenizer;
mod error;
mod images;
mod next_prompt;
mod raw_prompt;
mod stop_strings;
mod stop_tokens;
mod template;
mod text_encoder;
mod thinking_control;
mod tokenizer;
mod tool_calls;
mod tool_conventions;

pub use call_form::{CallBody, CallForm};
pub use channels::{ChannelParser, Event, ParserState, Piece, Splitter, ThinkingTerminator};
pub use chat_processor::{ChatProcessor, Prompt};
pub use conversation::RenderRequest;
pub use detokenizer::Detokenizer;
pub use error::{Error, Result};
pub use images::ImageSpan;
pub use next_prompt::NextPrompt;
pub use stop_tokens::{StopSet, StopToken};
pub use template::Template;
pub use text_encoder::TextEncoder;
pub use tokenizer::Tokenizer;

/// A JSON file of a model; `null` if it is missing.
fn read_json(path: &std::path::Path) -> Result<serde_json::Value> {
    match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|source| Error::Json {
            path: path.to_owned(),
            source,
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(serde_json::Value::Null),
        Err(source) => Err(Error::File {
            path: path.to_owned(),
            source,
        }),
    }
}
