//! One feed-forward network without a gate for all tokens, `mlp`.

use crate::config::activation::{Activation, EncoderActivation};
use crate::memory::DenseCost;

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
    pub(crate) fn cost(&self) -> DenseCost {
        DenseCost {
            width: self.width.into(),
            gated: false,
            activation: Activation::GeluTanh.cost(),
        }
    }
}
