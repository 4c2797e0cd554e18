//! The context in which the parts of a layer are loaded.

use checkpoint::config::gemma4::Gemma4Config;

use crate::error::Result;
use crate::layers::{Gelu, Linear, RmsNorm};
use crate::weights::Weights;

/// Everything that the parts of a layer need while they are loaded.
pub(super) struct LoadContext<'a, 'w> {
    pub(super) config: &'a Gemma4Config,
    pub(super) layer: usize,
    pub(super) gelu: &'a Gelu,
    pub(super) weights: &'a mut Weights<'w>,
}

impl LoadContext<'_, '_> {
    /// Width of the residual stream.
    pub(super) fn hidden(&self) -> i32 {
        self.config.hidden_size as i32
    }

    /// The path of a part of the layer.
    pub(super) fn path(&self, name: &str) -> String {
        format!("layers.{}.{name}", self.layer)
    }

    pub(super) fn linear(&mut self, name: &str, inputs: i32, outputs: i32) -> Result<Linear> {
        let path = self.path(name);
        Linear::load(self.weights, &path, inputs, outputs)
    }

    /// A norm of the residual stream.
    pub(super) fn norm(&mut self, name: &str) -> Result<RmsNorm> {
        let (path, hidden) = (self.path(name), self.hidden());
        RmsNorm::load(self.weights, &path, hidden, self.config.rms_norm_eps)
    }

    /// The dense network: gate_proj and up_proj side by side, and down_proj.
    pub(super) fn network(&mut self) -> Result<(Linear, Linear)> {
        let (hidden, width) = (self.hidden(), self.config.mlp_width(self.layer) as i32);
        let parts = ["mlp.gate_proj", "mlp.up_proj"].map(|name| (self.path(name), width));
        let gate_up_proj = Linear::load_joined(self.weights, &parts, hidden)?;
        Ok((gate_up_proj, self.linear("mlp.down_proj", width, hidden)?))
    }
}
