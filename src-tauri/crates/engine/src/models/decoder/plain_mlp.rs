//! The network without a gate of the parametric decoder.

use checkpoint::config::decoder::PlainConfig;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::error;
use crate::layers::{Linear, Pointwise, ResidualStream, RmsNorm};
use crate::models::decoder::load_context::LoadContext;

/// `down(activation(up(x)))`.
#[derive(Parameters)]
pub struct PlainMlp {
    activation: Pointwise,
    up_proj: Linear,
    down_proj: Linear,
}

impl PlainMlp {
    /// Loads what stands below `path`: `up_proj`, `down_proj`, and what the activation `act_fn` has learned.
    pub fn load(config: &PlainConfig, path: &str, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let (hidden, width) = (loading.config.hidden_size as i32, config.width as i32);
        let (up, down) = (format!("{path}.up_proj"), format!("{path}.down_proj"));
        if config.bias {
            for name in [&up, &down] {
                loading.weights.require(&format!("{name}.bias"))?;
            }
        }
        Ok(Self {
            activation: Pointwise::load(
                config.activation,
                loading.weights,
                &format!("{path}.act_fn"),
                loading.dtype,
            )?,
            up_proj: Linear::load(loading.weights, &up, hidden, width)?,
            down_proj: Linear::load(loading.weights, &down, width, hidden)?,
        })
    }

    /// The same of the normed stream.
    pub fn forward_normed(&self, stream: &mut ResidualStream<'_>, norm: Option<&RmsNorm>) -> Result<Tensor> {
        let x = stream.normed(norm)?;
        self.down_proj.forward(&self.up_proj.activated(&x, &self.activation)?)
    }
}
