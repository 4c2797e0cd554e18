//! Embeddings: the request to an embedding model, and its vectors.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{ModelSource, Priority};

/// A request to turn texts into vectors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmbeddingRequest {
    /// The embedding model.
    pub model: ModelSource,
    /// The inputs, each embedded separately, in order.
    pub inputs: Vec<EmbeddingInput>,
    /// The number of dimensions, if fewer than the model's own; only for models that were trained for it (Matryoshka).
    pub dimensions: Option<u32>,
    /// The priority among other requests.
    pub priority: Priority,
    /// As [`Request::keep_alive`](crate::Request::keep_alive).
    #[serde(default)]
    pub keep_alive: Option<Duration>,
}

/// One text to embed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EmbeddingInput {
    /// Text, with the tokens that the model's tokenizer adds to every text; spelled-out control tokens stay text.
    Text(String),
    /// Token ids, used as they are.
    Tokens(Vec<u32>),
    /// A question and a text that may answer it, for rerankers alone, whose vectors are one number: the score, greater
    /// for a better answer, comparable among the texts of one question.
    Pair {
        /// The question.
        question: String,
        /// The text.
        text: String,
    },
}

/// The vectors of an [`EmbeddingRequest`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Embeddings {
    /// One vector for each input, in order.
    pub vectors: Vec<Vec<f32>>,
    /// Tokens of all inputs, those that the tokenizer adds included.
    pub prompt_tokens: u32,
}
