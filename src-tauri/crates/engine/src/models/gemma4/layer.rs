//! One layer of Gemma 4.

use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::Result;

use super::attention::{Attention, LayerPass};
use super::feed_forward::FeedForward;
use super::inputs::InputGate;
use super::load_context::LoadContext;
use crate::error;
use crate::layers::{ResidualStream, RmsNorm};

#[derive(Parameters)]
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
    pub(super) fn load(loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let scalar = loading.path("layer_scalar");
        let scalar = loading.weights.take(&scalar, &[1])?;
        let width = loading.config.hidden_size_per_layer_input;
        Ok(Self {
            input_layernorm: loading.norm("input_layernorm")?,
            self_attn: Attention::load(loading)?,
            post_attention_layernorm: loading.norm("post_attention_layernorm")?,
            feed_forward: FeedForward::load(loading)?,
            input_gate: width.map(|width| InputGate::load(width, loading)).transpose()?,
            layer_scalar: if scalar.to_f32()? == [1.0] { None } else { Some(scalar) },
        })
    }

    /// Takes the residual stream through this layer, which has inputs `[length, width]` of its own; keys and values as
    /// [`Attention::forward`] has them.
    pub(super) fn forward<'a>(
        &'a self,
        stream: &mut ResidualStream<'a>,
        input: Option<&Tensor>,
        pass: &mut LayerPass<'_>,
    ) -> Result<()> {
        let attended = self.self_attn.forward(stream, &self.input_layernorm, pass)?;
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
