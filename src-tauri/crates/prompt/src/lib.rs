//! From a conversation to token ids and from token ids back to an answer: tokenizer, chat template, streaming
//! detokenizer, stop set and channel parser; and from texts to the ids that embedding models read. No MLX, network or
//! database.

mod channels;
mod chat;
mod error;
mod images;
mod json_file;
mod prompt;
mod template;
mod tokenizer;
mod tool_calls;

pub use channels::{ChannelParser, EndOfThinking, Event, ParserState, Piece, Splitter, TASKS};
pub use chat::{CallForm, ChatProcessor, NextPrompt, StopSet, StopToken};
pub use error::{Error, Result};
pub use prompt::{ImageSpan, Prompt};
pub use template::{RenderLimits, RenderRequest, Template};
pub use tokenizer::{Detokenizer, EncodedText, TextEncoder, Tokenizer};
