//! Heads that the makers of a model train to draft its answers (multi-token prediction): a few layers that read the
//! model's own states.

use crate::config::DecoderConfig;
use crate::memory::{ModelCost, Storage};

/// A head: a projection of a token's embedding and the model's state before it, layers, and a norm. Embeddings and the
/// output layer are those of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadConfig {
    /// Its layers, with the width and the vocabulary of the model.
    pub layers: DecoderConfig,
    /// Layers of the model that it belongs to.
    pub model_layers: u32,
    /// The `model_type`s of such models.
    pub model_types: &'static [&'static str],
}

impl HeadConfig {
    pub(crate) fn cost(&self, storage: Storage) -> ModelCost {
        let hidden = u64::from(self.layers.hidden_size);
        ModelCost {
            vocabulary: 0,
            tied: true,
            // The projection of what it reads.
            tables: vec![[0, 2 * hidden]],
            ..self.layers.cost(storage)
        }
    }
}
