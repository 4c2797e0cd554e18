//! Text to token ids and back.

mod detokenizer;
mod growth;
mod losses;
mod spelling;
mod text_encoder;
mod tokens;

pub use detokenizer::Detokenizer;
pub use text_encoder::{EncodedText, TextEncoder};
pub use tokens::Tokenizer;
