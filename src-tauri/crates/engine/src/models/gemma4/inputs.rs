//! Per-layer inputs (Gemma 4 E2B and E4B): in addition to the residual stream, every layer gets a few numbers of its
//! own for each token, from a table of the token and from a projection of its embedding.

use checkpoint::config::gemma4::Gemma4Config;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::Dtype;

use super::load_context::LoadContext;
use crate::error::Result;
use crate::layers::{Embedding, Gelu, Linear, ResidualStream, RmsNorm};
use crate::weights::Weights;

/// The inputs that every layer gets for each token in addition to the residual stream.
#[derive(Parameters)]
pub(super) struct PerLayerInputs {
    width: i32,
    embed_tokens_per_layer: Embedding,
    per_layer_model_projection: Linear,
    per_layer_projection_norm: RmsNorm,
    embedding_scale: Tensor,
    projection_scale: Tensor,
    joint_scale: Tensor,
}

impl PerLayerInputs {
    pub(super) fn load(config: &Gemma4Config, width: u32, dtype: Dtype, weights: &mut Weights<'_>) -> Result<Self> {
        let (hidden, all) = (config.hidden_size, (width * config.layers.len() as u32) as i32);
        let (rows, width, eps) = (
            config.vocab_size_per_layer_input as i32,
            width as i32,
            config.rms_norm_eps,
        );
        Ok(Self {
            width,
            embed_tokens_per_layer: Embedding::load(weights, "embed_tokens_per_layer", rows, all)?,
            per_layer_model_projection: Linear::load(weights, "per_layer_model_projection", hidden as i32, all)?,
            per_layer_projection_norm: RmsNorm::load(weights, "per_layer_projection_norm", width, eps)?,
            embedding_scale: Tensor::scalar((width as f32).sqrt(), dtype)?,
            projection_scale: Tensor::scalar((hidden as f32).powf(-0.5), dtype)?,
            joint_scale: Tensor::scalar(0.5f32.sqrt(), dtype)?,
        })
    }

    /// `[length, width]` of one layer, out of those of all.
    pub(super) fn of_layer(&self, all: &Tensor, layer: usize) -> mlx::Result<Tensor> {
        let start = layer as i32 * self.width;
        all.slice(1, start, start + self.width)
    }

    /// `[length, layers · width]` for `ids` and their scaled embeddings `h`.
    pub(super) fn forward(&self, ids: &Tensor, h: &Tensor) -> mlx::Result<Tensor> {
        let tokens = self.embed_tokens_per_layer.forward(ids)?.mul(&self.embedding_scale)?;
        let context = self
            .per_layer_model_projection
            .forward(h)?
            .mul(&self.projection_scale)?;
        let by_layer = context.reshape(&[h.dim(0), -1, self.width])?;
        let context = self
            .per_layer_projection_norm
            .forward(&by_layer)?
            .reshape(tokens.shape())?;
        context.add(&tokens)?.mul(&self.joint_scale)
    }
}

/// How a layer takes in its per-layer input.
#[derive(Parameters)]
pub(super) struct InputGate {
    per_layer_input_gate: Linear,
    gelu: Gelu,
    per_layer_projection: Linear,
    post_per_layer_input_norm: RmsNorm,
}

impl InputGate {
    pub(super) fn load(width: u32, loading: &mut LoadContext<'_, '_>) -> Result<Self> {
        let (hidden, width) = (loading.hidden(), width as i32);
        Ok(Self {
            per_layer_input_gate: loading.linear("per_layer_input_gate", hidden, width)?,
            gelu: loading.gelu.clone(),
            per_layer_projection: loading.linear("per_layer_projection", width, hidden)?,
            post_per_layer_input_norm: loading.norm("post_per_layer_input_norm")?,
        })
    }

    /// The summand for the stream, before [`InputGate::output_norm`].
    pub(super) fn forward(&self, stream: &mut ResidualStream<'_>, input: &Tensor) -> mlx::Result<Tensor> {
        let gated = self.per_layer_input_gate.gelu_times(stream, &self.gelu, input)?;
        self.per_layer_projection.forward(&gated)
    }

    pub(super) fn output_norm(&self) -> &RmsNorm {
        &self.post_per_layer_input_norm
    }
}
