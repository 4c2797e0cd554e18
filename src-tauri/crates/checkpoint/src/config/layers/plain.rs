//! One feed-forward network without a gate for all tokens, `mlp`.

use crate::config::activation::EncoderActivation;
use crate::memory::PlainCost;

/// `down(activation(up(x)))`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlainConfig {
    /// Width inside.
    pub width: u32,
    /// The activation between the projections.
    pub activation: EncoderActivation,
    /// True if the projections must have a bias.
    pub bias: bool,
}

impl PlainConfig {
    pub(crate) fn cost(&self) -> PlainCost {
        PlainCost {
            width: self.width.into(),
            activation: self.activation.cost(),
            bias: self.bias,
        }
    }
}
