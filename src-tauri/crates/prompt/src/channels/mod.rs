//! Separates reasoning, answer and tool calls while an answer is generated.
//!
//! Markers that are tokens are recognized by id, so that the same characters spelled out stay text; the others are
//! looked for in the text. An opening marker counts before the first words and right after a block; Gemma 4's and
//! harmony's, which carry the channel's name, also count later. A marker in any other place is literal text, and so is
//! one inside a text of a call.

mod end_of_thinking;
mod event;
mod formats;
mod machine;
mod parser;
mod scanner;
mod splitter;
mod stop_strings;
mod thinking_control;

pub use end_of_thinking::EndOfThinking;
pub use event::{Event, Piece};
pub(crate) use formats::ChannelFormat;
pub use parser::{ChannelParser, ParserState};
pub use splitter::Splitter;
pub(crate) use thinking_control::capability;
pub use thinking_control::TASKS;
