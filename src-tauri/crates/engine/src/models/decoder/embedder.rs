//! Parts of a decoder that makes embeddings (EmbeddingGemma 2): numbers that each layer reads of the embeddings beside
//! the stream, and the projection of the last states.

use checkpoint::config::decoder::{DecoderConfig, EmbedderConfig};
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::error;
use crate::layers::{Gelu, Linear, ResidualStream, RmsNorm};
use crate::models::decoder::load_context::LoadContext;
use crate::weights::Weights;

/// The parts of the whole model.
#[derive(Parameters)]
pub(super) struct Embedder {
    width: i32,
    /// Makes the inputs of all layers side by side.
    per_layer_model_projection: Linear,
    scale: Tensor,
    per_layer_projection_norm: RmsNorm,
    embedding_projection: Linear,
}

impl Embedder {
    /// Loads `ple` and `embedding_projection`, if the model has them.
    pub(super) fn load(config: &DecoderConfig, dtype: Dtype, weights: &mut Weights<'_>) -> error::Result<Option<Self>> {
        let Some(EmbedderConfig { layer_inputs, width }) = config.embedder else {
            return Ok(None);
        };
        let (hidden, inputs) = (config.hidden_size as i32, layer_inputs as i32);
        let (all, eps) = (inputs * config.layers.len() as i32, config.norm.eps);
        Ok(Some(Self {
            width: inputs,
            per_layer_model_projection: Linear::load(weights, "ple.per_layer_model_projection", hidden, all)?,
            scale: Tensor::scalar((hidden as f32).powf(-0.5), dtype)?,
            per_layer_projection_norm: RmsNorm::load(weights, "ple.per_layer_projection_norm", inputs, eps)?,
            embedding_projection: Linear::load(weights, "embedding_projection", hidden, width as i32)?,
        }))
    }

    /// The inputs `[rows, layers, width]` that layers read of the embeddings `[rows, hidden]`.
    pub(super) fn inputs(&self, embedded: &Tensor) -> Result<Tensor> {
        let projected = self.per_layer_model_projection.forward(embedded)?.mul(&self.scale)?;
        let by_layer = projected.reshape(&[embedded.dim(0), -1, self.width])?;
        self.per_layer_projection_norm.forward(&by_layer)
    }

    /// The states that embeddings are made of, from those after the last norm.
    pub(super) fn project(&self, states: &Tensor) -> Result<Tensor> {
        self.embedding_projection.forward(states)
    }
}

/// The part of a layer that reads its inputs, and the factor that the stream has after it.
#[derive(Parameters)]
pub(super) struct InputGate {
    layer: i32,
    gelu: Gelu,
    per_layer_input_gate: Linear,
    per_layer_projection: Linear,
    post_per_layer_input_norm: RmsNorm,
    layer_scalar: Tensor,
}

impl InputGate {
    /// Loads `ple_block` and `layer_scalar` of a layer, if the model has them.
    pub(super) fn load(layer: usize, loading: &mut LoadContext<'_, '_>) -> error::Result<Option<Self>> {
        let Some(embedder) = loading.config.embedder else {
            return Ok(None);
        };
        let (hidden, width) = (loading.config.hidden_size as i32, embedder.layer_inputs as i32);
        let (eps, weights) = (loading.config.norm.eps, &mut *loading.weights);
        let at = |name: &str| format!("layers.{layer}.ple_block.{name}");
        let gate = Self {
            layer: layer as i32,
            gelu: Gelu::new(loading.dtype)?,
            per_layer_input_gate: Linear::load(weights, &at("per_layer_input_gate"), hidden, width)?,
            per_layer_projection: Linear::load(weights, &at("per_layer_projection"), width, hidden)?,
            post_per_layer_input_norm: RmsNorm::load(weights, &at("post_per_layer_input_norm"), hidden, eps)?,
            layer_scalar: weights.take(&format!("layers.{layer}.layer_scalar"), &[1])?,
        };
        weights.materialize(gate.tensors())?;
        Ok(Some(gate))
    }

    /// Adds to the stream what it makes of the inputs of all layers, `[rows, layers, width]`.
    pub(super) fn add<'a>(&'a self, stream: &mut ResidualStream<'a>, inputs: &Tensor) -> Result<()> {
        let input = inputs.slice(1, self.layer, self.layer + 1)?;
        let input = input.reshape(&[inputs.dim(0), inputs.dim(2)])?;
        let gated = self.per_layer_input_gate.gelu_times(stream, &self.gelu, &input)?;
        let projected = self.per_layer_projection.forward(&gated)?;
        stream.add(
            projected,
            Some(&self.post_per_layer_input_norm),
            Some(&self.layer_scalar),
        )
    }
}
