//! Parts of a decoder that makes embeddings: inputs of each layer, and the projection of the last states
//! (EmbeddingGemma 2).

use crate::config::limits::{check_nonzero, check_width};
use crate::error::Error;

/// Parts that only a model for embeddings has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmbedderConfig {
    /// Numbers that each layer reads of the embeddings beside the stream, `ple` and `ple_block`. A layer that does so
    /// ends with a factor, `layer_scalar`.
    pub layer_inputs: u32,
    /// Width of the last states after `embedding_projection`.
    pub width: u32,
}

impl EmbedderConfig {
    /// Refuses shapes that no model has.
    pub(crate) fn check(&self, layers: u64) -> Result<(), Error> {
        check_nonzero("hidden_size_per_layer_input", self.layer_inputs)?;
        check_width("hidden_size_per_layer_input", u64::from(self.layer_inputs) * layers)?;
        check_nonzero("embedding_dim", self.width)?;
        check_width("embedding_dim", self.width.into())
    }
}
