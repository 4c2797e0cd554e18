//! Heads, which draft for a model from its own states and do nothing alone.

use checkpoint::config::head::{HeadConfig, HeadLayers};
use mlx::parameters::Parameters;

use crate::cache::Cache;
use crate::error::Result;
use crate::models::decoder::mtp_head::MtpHead;
use crate::models::gemma4::assistant::Assistant;
use crate::weights::Weights;

/// A head of any kind.
#[derive(Parameters)]
pub enum DraftHead {
    /// Layers with caches of their own.
    Layers(Box<MtpHead>),
    /// Layers that attend to the keys and values of the model.
    Assistant(Box<Assistant>),
}

impl DraftHead {
    /// Builds the head; every tensor of it is computed when this returns.
    pub fn load(config: &HeadConfig, weights: &mut Weights<'_>) -> Result<Self> {
        match &config.layers {
            HeadLayers::Decoder(layers) => Ok(Self::Layers(Box::new(MtpHead::load(layers, weights)?))),
            HeadLayers::Assistant(assistant) => Ok(Self::Assistant(Box::new(Assistant::load(assistant, weights)?))),
        }
    }

    /// Empty caches, if it has any.
    pub fn caches(&self) -> Vec<Cache> {
        match self {
            Self::Layers(head) => head.caches(),
            Self::Assistant(_) => Vec::new(),
        }
    }

    /// True if it reads a text from the beginning; else the last state is all that it needs.
    pub fn reads_all(&self) -> bool {
        matches!(self, Self::Layers(_))
    }

    /// Width of the states that it reads and gives.
    pub fn hidden_size(&self) -> u32 {
        match self {
            Self::Layers(head) => head.hidden_size(),
            Self::Assistant(assistant) => assistant.hidden_size(),
        }
    }

    /// The number of tokens of the vocabulary.
    pub fn vocabulary(&self) -> u32 {
        match self {
            Self::Layers(head) => head.vocabulary(),
            Self::Assistant(assistant) => assistant.vocabulary(),
        }
    }
}
