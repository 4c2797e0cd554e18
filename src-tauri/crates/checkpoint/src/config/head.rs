//! Heads that the makers of a model train to draft its answers (multi-token prediction): a few layers that read the
//! model's own states.

use crate::config::gemma4::AssistantConfig;
use crate::config::DecoderConfig;
use crate::memory::{ModelCost, Storage};

/// A head, and the model that it belongs to.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadConfig {
    /// Its layers.
    pub layers: HeadLayers,
    /// Width of the model's states.
    pub hidden_size: u32,
    /// Tokens of the model's vocabulary.
    pub vocab_size: u32,
    /// Layers of the model, if the file says.
    pub model_layers: Option<u32>,
    /// The `model_type`s of such models.
    pub model_types: &'static [&'static str],
}

/// The layers of a head.
#[derive(Debug, Clone, PartialEq)]
pub enum HeadLayers {
    /// Layers with caches of their own, which read a token's embedding and the model's state before it. Embeddings and
    /// the output layer are those of the model.
    Decoder(Box<DecoderConfig>),
    /// Layers that attend to the model's own keys and values, and an output layer.
    Assistant(Box<AssistantConfig>),
}

impl HeadConfig {
    pub(crate) fn cost(&self, storage: Storage) -> ModelCost {
        match &self.layers {
            HeadLayers::Decoder(layers) => ModelCost {
                vocabulary: 0,
                tied: true,
                // The projection of what it reads.
                tables: vec![[0, 2 * u64::from(self.hidden_size)]],
                ..layers.cost(storage)
            },
            HeadLayers::Assistant(assistant) => assistant.cost(storage),
        }
    }
}
