//! SigLIP at an image's own shape, and learned rows that look at its patches (Idefics 2). Reference: transformers'
//! `modeling_idefics2.py`.

use checkpoint::config::encoder::EncoderActivation;
use checkpoint::vision::Idefics2Config;
use mlx::ops::{concatenate, Mask};
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use super::block::Mlp;
use super::patches::{load_patch_linear, PatchOrder, COLOURS};
use super::resample::Resampling;
use super::stack::{load_mlp, load_table, BlockNames, Stack};
use super::{ImageEmbeddings, LayerHook, ViewInput};
use crate::error;
use crate::layers::{LayerNorm, Linear, RmsNorm};
use crate::weights::Weights;

/// The path of the tower.
const PATH: &str = "vision_model";

/// A vision encoder with its resampler.
#[derive(Parameters)]
pub struct Idefics2 {
    #[parameters(skip)]
    config: Idefics2Config,
    dtype: Dtype,
    patch_embedding: Linear,
    /// `[side, side, hidden]`.
    positions: Tensor,
    stack: Stack,
    norm: LayerNorm,
    network: Mlp,
    /// `[latents, width of the language part]`.
    latents: Tensor,
    layers: Vec<ResamplerLayer>,
    last_norm: RmsNorm,
}

/// Learned rows look at patches and at each other, then go through a network.
#[derive(Parameters)]
struct ResamplerLayer {
    /// Of the learned rows and of the patches.
    norms: [RmsNorm; 2],
    queries: Linear,
    /// Keys and values.
    seen: Linear,
    output: Linear,
    after: RmsNorm,
    mlp: Mlp,
}

impl Idefics2 {
    pub(super) fn load(config: &Idefics2Config, outputs: u32, weights: &mut Weights<'_>) -> error::Result<Self> {
        let (shape, outputs) = (&config.shape, outputs as i32);
        let (hidden, side) = (shape.hidden_size as i32, shape.patch_size as i32);
        let (embeddings, layers) = (format!("{PATH}.embeddings"), format!("{PATH}.encoder.layers"));
        let dtype = weights.dtype(&format!("{layers}.0.layer_norm1.weight"));
        let (embedding, order) = (format!("{embeddings}.patch_embedding"), PatchOrder::PixelByPixel);
        let positions = format!("{embeddings}.position_embedding");
        let sizes = (hidden, config.width as i32, outputs);
        let (gated, names) = ("connector.modality_projection", ["up_proj", "down_proj"]);
        let silu = (EncoderActivation::Silu, dtype);
        let resampler = "connector.perceiver_resampler";
        let latents = weights.take(&format!("{resampler}.latents"), &[config.latents as i32, outputs])?;
        weights.materialize([&latents])?;
        let load_layer =
            |layer: u32| ResamplerLayer::load(&format!("{resampler}.layers.{layer}"), config, outputs, dtype, weights);
        let resampling = (0..config.depth).map(load_layer).collect::<error::Result<_>>()?;
        Ok(Self {
            dtype,
            patch_embedding: load_patch_linear(weights, &embedding, COLOURS * side * side, hidden, order)?,
            positions: load_table(&positions, config.side, hidden, weights)?,
            stack: Stack::load(&layers, &BlockNames::CLIP, shape, dtype, weights)?,
            norm: LayerNorm::load(weights, &format!("{PATH}.post_layernorm"), hidden, shape.eps)?,
            network: load_mlp(gated, Some("gate_proj"), names, sizes, silu, weights)?,
            latents,
            layers: resampling,
            last_norm: RmsNorm::load(weights, &format!("{resampler}.norm"), outputs, config.eps)?,
            config: *config,
        })
    }

    pub(super) fn encode(&self, input: &ViewInput<'_>, hook: &mut LayerHook<'_>) -> error::Result<ImageEmbeddings> {
        let rows = input.cut(self.config.shape.patch_size as i32)?.astype(self.dtype)?;
        let positions = Resampling::Nearest.apply(&self.positions, input.view.patches)?;
        let x = self
            .patch_embedding
            .forward(&rows)?
            .add(&positions.astype(self.dtype)?)?;
        let x = self.norm.forward(&self.stack.forward(x, None, hook)?)?;
        let patches = self.network.forward(&x)?;
        let mut latents = self.latents.clone();
        for layer in &self.layers {
            latents = layer.forward(&latents, &patches, &self.config)?;
        }
        Ok(ImageEmbeddings::of(self.last_norm.forward(&latents)?))
    }
}

impl ResamplerLayer {
    fn load(
        path: &str,
        config: &Idefics2Config,
        width: i32,
        dtype: Dtype,
        weights: &mut Weights<'_>,
    ) -> error::Result<Self> {
        let at = |name: &str| format!("{path}.{name}");
        let (head, heads, kv_heads) = (config.head_dim as i32, config.heads as i32, config.kv_heads as i32);
        let norm = |name: &str, weights: &mut Weights<'_>| RmsNorm::load(weights, &at(name), width, config.eps);
        let seen = ["k_proj", "v_proj"].map(|name| (at(&format!("self_attn.{name}")), kv_heads * head));
        let (sizes, silu) = ((width, 4 * width, width), (EncoderActivation::Silu, dtype));
        let layer = Self {
            norms: [
                norm("input_latents_norm", weights)?,
                norm("input_context_norm", weights)?,
            ],
            queries: Linear::load(weights, &at("self_attn.q_proj"), width, heads * head)?,
            seen: Linear::load_joined(weights, &seen, width)?,
            output: Linear::load(weights, &at("self_attn.o_proj"), heads * head, width)?,
            after: norm("post_attention_layernorm", weights)?,
            mlp: load_mlp(
                &at("mlp"),
                Some("gate_proj"),
                ["up_proj", "down_proj"],
                sizes,
                silu,
                weights,
            )?,
        };
        weights.materialize(layer.tensors())?;
        Ok(layer)
    }

    /// Learned rows `[latents, width]` and patches `[patches, width]` to learned rows.
    fn forward(&self, latents: &Tensor, patches: &Tensor, config: &Idefics2Config) -> Result<Tensor> {
        let (head, kv_heads) = (config.head_dim as i32, config.kv_heads as i32);
        let normed = self.norms[0].forward(latents)?;
        let all = concatenate(&[&self.norms[1].forward(patches)?, &normed], 0)?;
        let by_head =
            |part: &Tensor| -> Result<Tensor> { part.reshape(&[1, part.dim(0), -1, head])?.transpose(&[0, 2, 1, 3]) };
        let seen = self.seen.forward(&all)?;
        let keys = by_head(&seen.slice(1, 0, kv_heads * head)?)?;
        let values = by_head(&seen.slice(1, kv_heads * head, 2 * kv_heads * head)?)?;
        let queries = by_head(&self.queries.forward(&normed)?)?;
        let found = queries.fast_attention(&keys, &values, (head as f32).powf(-0.5), &Mask::None, None)?;
        let found = found.transpose(&[0, 2, 1, 3])?.reshape(&[latents.dim(0), -1])?;
        let x = latents.add(&self.output.forward(&found)?)?;
        x.add(&self.mlp.forward(&self.after.forward(&x)?)?)
    }
}
