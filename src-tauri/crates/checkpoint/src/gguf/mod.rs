//! GGUF files, as llama.cpp, Ollama and LM Studio have them: read, judged, and converted to a folder as the hub has it.

mod architecture;
mod blocks;
mod config;
mod file;
mod hybrid;
mod import;
mod metadata;
mod order;
#[cfg(test)]
mod tests;
mod tokenizer;

pub use blocks::{Loss, Parts};
pub use file::{split_of, GgufFile, Kind, Stored, Value};
pub use import::{check_gguf, Changed, GgufImport};
