//! One gated feed-forward network for all tokens, `mlp`.

use crate::config::activation::Activation;
use crate::memory::DenseCost;

/// `down(activation(gate(x)) · up(x))`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DenseConfig {
    /// Width inside.
    pub width: u32,
    /// The activation of the gate.
    pub activation: Activation,
    /// True if the projections must have a bias.
    pub bias: bool,
}

impl DenseConfig {
    pub(crate) fn cost(&self) -> DenseCost {
        DenseCost {
            width: self.width.into(),
            gated: self.activation.is_gated(),
            activation: match self.bias {
                true => self.activation.cost(),
                false => self.activation.unbiased_cost(),
            },
        }
    }
}
