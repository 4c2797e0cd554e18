//! From a conversation to token ids and from token ids back to an answer: tokenizer, chat template, streaming
//! detokenizer, stop set, channel parser, and the pure parser of config.json. No MLX, network or database.

pub mod config;

mod begun;
mod boundaries;
mod calls;
mod capability;
mod channels;
mod conversation;
mod detokenizer;
mod dialect;
mod error;
mod stop_text;
mod stops;
mod template;
mod tokenizer;

pub use boundaries::Future;
pub use channels::{ChannelParser, Closing, Event, Piece, Splitter};
pub use conversation::RenderRequest;
pub use detokenizer::Detokenizer;
pub use dialect::{Dialect, Prompt};
pub use error::{Error, Result};
pub use stops::{StopSet, StopToken};
pub use template::Template;
pub use tokenizer::Tokenizer;

/// A JSON file of a model; `null` where it is missing.
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
