//! GGUF files, as llama.cpp, Ollama and LM Studio have them.

mod blocks;
mod file;

pub use blocks::{Loss, Parts};
pub use file::{split_of, GgufFile, Kind, Stored, Value};
