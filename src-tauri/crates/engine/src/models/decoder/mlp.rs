//! The gated network of the parametric decoder.

use checkpoint::config::decoder::DenseConfig;

use super::LoadContext;
use crate::error::Result;
use crate::layers::{Activation, Linear, ResidualStream, RmsNorm};
use crate::parameters::Parameters;
use crate::tensor::Tensor;

/// `down(activation(gate(x)) · up(x))`.
pub struct Mlp {
    activation: Activation,
    /// gate_proj and up_proj side by side.
    gate_up_proj: Linear,
    down_proj: Linear,
}

impl Mlp {
    /// Loads what stands below `path`: `gate_proj` and `up_proj`, or both in one `gate_up_proj` (Phi 3, GLM 4), and
    /// `down_proj`.
    pub fn load(config: &DenseConfig, path: &str, loading: &mut LoadContext<'_, '_>) -> Result<Self> {
        let (hidden, width) = (loading.config.hidden_size as i32, config.width as i32);
        let joined = format!("{path}.gate_up_proj");
        let parts = if loading.weights.has(&format!("{joined}.weight")) {
            vec![(joined, 2 * width)]
        } else {
            vec![(format!("{path}.gate_proj"), width), (format!("{path}.up_proj"), width)]
        };
        let down = format!("{path}.down_proj");
        if config.bias {
            for part in parts.iter().map(|(part, _)| part).chain([&down]) {
                loading.weights.require(&format!("{part}.bias"))?;
            }
        }
        Ok(Self {
            activation: Activation::new(config.activation, loading.dtype)?,
            gate_up_proj: Linear::load_joined(loading.weights, &parts, hidden)?,
            down_proj: Linear::load(loading.weights, &down, width, hidden)?,
        })
    }

    /// The same of the normed stream.
    pub fn forward_normed(&self, stream: &mut ResidualStream<'_>, norm: Option<&RmsNorm>) -> Result<Tensor> {
        self.down_proj
            .forward(&self.gate_up_proj.gated_normed(stream, norm, &self.activation)?)
    }

    /// `[length, hidden]` to the same.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.down_proj.forward(&self.gate_up_proj.gated(x, &self.activation)?)
    }
}

impl Parameters for Mlp {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        let Self {
            activation,
            gate_up_proj,
            down_proj,
        } = self;
        activation.visit(visitor);
        gate_up_proj.visit(visitor);
        down_proj.visit(visitor);
    }
}
