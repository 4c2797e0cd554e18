//! Texts as vectors: what an embedding model is asked for and what it gives.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{ModelSource, Priority};

/// Texts that are to become vectors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmbeddingRequest {
    /// The embedding model.
    pub model: ModelSource,
    /// What is embedded, each by itself, in order.
    pub inputs: Vec<EmbeddingInput>,
    /// Numbers of a vector, if fewer than the model makes are wanted; only for models that were trained so (Matryoshka).
    pub dimensions: Option<u32>,
    /// Who waits for it.
    pub priority: Priority,
    /// As [`Request::keep_alive`](crate::Request::keep_alive).
    #[serde(default)]
    pub keep_alive: Option<Duration>,
}

/// One thing to be embedded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EmbeddingInput {
    /// A text, which gets the tokens that the model's tokenizer puts around every text; control tokens spelled in it stay text.
    Text(String),
    /// Token ids, taken as they are.
    Tokens(Vec<u32>),
}

/// The vectors of an [`EmbeddingRequest`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Embeddings {
    /// One for each input, in order.
    pub vectors: Vec<Vec<f32>>,
    /// Tokens of all inputs, those that the tokenizer adds included.
    pub prompt_tokens: u32,
}
