//! GGUF files, as llama.cpp, Ollama and LM Studio have them.

mod file;

pub use file::{split_of, GgufFile, Kind, Stored, Value};
