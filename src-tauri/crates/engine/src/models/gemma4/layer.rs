//! One layer of Gemma 4.

use checkpoint::Gemma4Config;
use mlx::parameters::parameters;
use mlx::tensor::Tensor;
use mlx::Result;

use super::attention::{Attention, Step};
use super::feed_forward::FeedForward;
use super::inputs::InputGate;
use crate::cache::{Cache, KvView};
use crate::error;
use crate::layers::{Gelu, ResidualStream, RmsNorm};
use crate::weights::Weights;

pub(super) struct Layer {
    input_layernorm: RmsNorm,
    self_attn: Attention,
    post_attention_layernorm: RmsNorm,
    feed_forward: FeedForward,
    input_gate: Option<InputGate>,
    /// `None` if it is 1 and would change nothing.
    layer_scalar: Option<Tensor>,
}

impl Layer {
    pub(super) fn load(
        config: &Gemma4Config,
        layer: usize,
        gelu: &Gelu,
        weights: &mut Weights<'_>,
    ) -> error::Result<Self> {
        let (hidden, eps) = (config.hidden_size as i32, config.rms_norm_eps);
        let norm = |weights: &mut Weights<'_>, name: &str| {
            RmsNorm::load(weights, &format!("layers.{layer}.{name}"), hidden, eps)
        };
        let scalar = weights.take(&format!("layers.{layer}.layer_scalar"), &[1])?;
        Ok(Self {
            input_layernorm: norm(weights, "input_layernorm")?,
            self_attn: Attention::load(config, layer, weights)?,
            post_attention_layernorm: norm(weights, "post_attention_layernorm")?,
            feed_forward: FeedForward::load(config, layer, gelu, weights)?,
            input_gate: match config.hidden_size_per_layer_input {
                Some(width) => Some(InputGate::load(config, layer, width as i32, gelu, weights)?),
                None => None,
            },
            layer_scalar: if scalar.to_f32()? == [1.0] { None } else { Some(scalar) },
        })
    }

    /// Takes the residual stream through this layer, which has inputs `[length, width]` of its own; keys and values as
    /// [`Attention::forward`] has them.
    pub(super) fn forward<'a>(
        &'a self,
        stream: &mut ResidualStream<'a>,
        input: Option<&Tensor>,
        step: &Step<'_>,
        caches: &mut [&mut Cache],
        shared: &mut Vec<KvView>,
    ) -> Result<()> {
        let attended = self
            .self_attn
            .forward(stream, &self.input_layernorm, step, caches, shared)?;
        stream.add(attended, Some(&self.post_attention_layernorm), None)?;
        let fed = self.feed_forward.forward(stream)?;
        let scalar = self.layer_scalar.as_ref();
        let (Some(gate), Some(input)) = (&self.input_gate, input) else {
            return stream.add(fed, Some(self.feed_forward.output_norm()), scalar);
        };
        stream.add(fed, Some(self.feed_forward.output_norm()), None)?;
        let projected = gate.forward(stream, input)?;
        stream.add(projected, Some(gate.output_norm()), scalar)
    }
}

parameters!(Layer {
    input_layernorm,
    self_attn,
    post_attention_layernorm,
    feed_forward,
    input_gate,
    layer_scalar,
});
