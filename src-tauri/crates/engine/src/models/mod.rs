//! Models: the parametric decoder, and the families that need more than it can describe.

mod decoder;
mod gemma4;

use checkpoint::{Family, ModelConfig};

use crate::cache::Cache;
use crate::error::Result;
use crate::parameters::Parameters;
use crate::tensor::Tensor;
use crate::weights::Weights;

/// A model of any family.
pub enum Model {
    /// Gemma 4, text.
    Gemma4(Box<gemma4::Gemma4>),
    /// Any family that the parametric decoder covers.
    Decoder(Box<decoder::Decoder>),
}

impl Model {
    /// Builds the model and makes every tensor of it resident.
    pub fn load(config: &ModelConfig, weights: &mut Weights<'_>) -> Result<Self> {
        match &config.family {
            Family::Gemma4(config) => Ok(Self::Gemma4(Box::new(gemma4::Gemma4::load(config, weights)?))),
            Family::Decoder(config) => Ok(Self::Decoder(Box::new(decoder::Decoder::load(config, weights)?))),
        }
    }

    /// Empty caches for one sequence.
    pub fn caches(&self) -> Vec<Cache> {
        match self {
            Self::Gemma4(model) => model.caches(),
            Self::Decoder(model) => model.caches(),
        }
    }

    /// Reads the tokens `ids` `[rows]` that come next: those of one sequence, or one of each of several, whose caches are given
    /// in order. The result are the states `[rows, width]` before the output layer.
    pub fn forward(&self, ids: &Tensor, sequences: &mut [&mut [Cache]]) -> Result<Tensor> {
        debug_assert!(sequences.len() == 1 || sequences.len() == ids.size());
        match self {
            Self::Gemma4(model) => model.forward(ids, sequences),
            Self::Decoder(model) => model.forward(ids, sequences),
        }
    }

    /// The logits `[length, vocabulary]` of states.
    pub fn logits(&self, states: &Tensor) -> Result<Tensor> {
        match self {
            Self::Gemma4(model) => model.logits(states),
            Self::Decoder(model) => model.logits(states),
        }
    }

    /// Whether a position is read alike however many come with it; not if the base of its rotary positions grows with the sequence.
    pub fn reads_chunks_alike(&self) -> bool {
        match self {
            Self::Gemma4(_) => true,
            Self::Decoder(model) => model.reads_chunks_alike(),
        }
    }

    /// How many tokens its vocabulary has.
    pub fn vocabulary(&self) -> u32 {
        match self {
            Self::Gemma4(model) => model.vocabulary(),
            Self::Decoder(model) => model.vocabulary(),
        }
    }
}

impl Parameters for Model {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        match self {
            Self::Gemma4(model) => model.visit(visitor),
            Self::Decoder(model) => model.visit(visitor),
        }
    }
}
