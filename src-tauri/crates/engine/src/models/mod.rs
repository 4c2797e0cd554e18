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

    /// Reads the next tokens `ids` `[length]` of a sequence; the result are the states `[length, width]` before the output
    /// layer.
    pub fn forward(&self, ids: &Tensor, caches: &mut [Cache]) -> Result<Tensor> {
        match self {
            Self::Gemma4(model) => model.forward(ids, caches),
            Self::Decoder(model) => model.forward(ids, caches),
        }
    }

    /// The logits `[length, vocabulary]` of states.
    pub fn logits(&self, states: &Tensor) -> Result<Tensor> {
        match self {
            Self::Gemma4(model) => model.logits(states),
            Self::Decoder(model) => model.logits(states),
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
