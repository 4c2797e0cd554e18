//! MiniCPM-V's tower, and what joins it to the language part. Reference: transformers' `modeling_minicpmv4_6.py`.

use checkpoint::config::encoder::EncoderActivation;
use checkpoint::vision::{MiniCpmVisionConfig, MINICPM_MERGE};
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use super::attention::{Attention, HeadNorms, PatchMask, Projections};
use super::block::Mlp;
use super::linear::ClippedLinear;
use super::patches::{load_patch_linear, PatchOrder, COLOURS};
use super::resample::Resampling;
use super::stack::{check_blocks, first_with, join_blocks, load_mlp, load_table, BlockNames, Stack};
use super::{ImageEmbeddings, LayerHook, ViewInput};
use crate::error;
use crate::layers::{LayerNorm, Linear};
use crate::weights::Weights;

/// The paths at which conversions and originals keep what merges patches between two layers.
const MERGERS: [&str; 2] = ["vit_merger", "vision_tower.vit_merger"];

const NETWORK: [&str; 2] = ["linear_1", "linear_2"];

/// Added to the variance by the norm before the last network.
const EPS: f32 = 1e-6;

/// A vision encoder with its projector.
#[derive(Parameters)]
pub struct MiniCpmTower {
    #[parameters(skip)]
    config: MiniCpmVisionConfig,
    dtype: Dtype,
    patch_embedding: Linear,
    /// `[side, side, hidden]`.
    positions: Tensor,
    stack: Stack,
    merger: WindowMerger,
    post_layernorm: LayerNorm,
    /// Of what the patches of a block hold side by side.
    pre_norm: LayerNorm,
    projector: Mlp,
}

/// Patches that look at those of their block, and then become one.
#[derive(Parameters)]
struct WindowMerger {
    layer_norm1: LayerNorm,
    attention: Attention,
    pre_norm: LayerNorm,
    network: Mlp,
    /// One over the number of patches.
    share: Tensor,
}

impl MiniCpmTower {
    pub(super) fn load(config: &MiniCpmVisionConfig, outputs: u32, weights: &mut Weights<'_>) -> error::Result<Self> {
        let shape = &config.shape;
        let (hidden, side) = (shape.hidden_size as i32, shape.patch_size as i32);
        let layers = "vision_tower.encoder.layers";
        let dtype = weights.dtype(&format!("{layers}.0.layer_norm1.weight"));
        let block = hidden * (MINICPM_MERGE * MINICPM_MERGE) as i32;
        let (embeddings, order) = ("vision_tower.embeddings", PatchOrder::PixelByPixel);
        let patches = format!("{embeddings}.patch_embedding");
        let positions = format!("{embeddings}.position_embedding");
        let gelu = (EncoderActivation::Gelu, dtype);
        Ok(Self {
            dtype,
            patch_embedding: load_patch_linear(weights, &patches, COLOURS * side * side, hidden, order)?,
            positions: load_table(&positions, config.side, hidden, weights)?,
            stack: Stack::load(layers, &BlockNames::CLIP, shape, dtype, weights)?,
            merger: WindowMerger::load(config, dtype, weights)?,
            post_layernorm: LayerNorm::load(weights, "vision_tower.post_layernorm", hidden, shape.eps)?,
            pre_norm: LayerNorm::load(weights, "merger.mlp.0.pre_norm", block, EPS)?,
            projector: load_mlp(
                "merger.mlp.0",
                None,
                NETWORK,
                (block, block, outputs as i32),
                gelu,
                weights,
            )?,
            config: *config,
        })
    }

    pub(super) fn encode(&self, input: &ViewInput<'_>, hook: &mut LayerHook<'_>) -> error::Result<ImageEmbeddings> {
        let (config, grid) = (&self.config, input.view.patches);
        check_blocks(input.view, MINICPM_MERGE * MINICPM_MERGE)?;
        let rows = input.cut(config.shape.patch_size as i32)?.astype(self.dtype)?;
        let positions = Resampling::Nearest.apply(&self.positions, grid)?.astype(self.dtype)?;
        let x = self.patch_embedding.forward(&rows)?.add(&positions)?;
        let (before, layers) = (config.before as usize, config.shape.layers as usize);
        let x = self.stack.forward_part(0..before, x, hook)?;
        let x = self.merger.forward(&x, grid)?;
        let x = self.stack.forward_part(before..layers, x, hook)?;
        let merged = (grid.0 / MINICPM_MERGE, grid.1 / MINICPM_MERGE);
        let blocks = join_blocks(&self.post_layernorm.forward(&x)?, merged, MINICPM_MERGE)?;
        let features = self.projector.forward(&self.pre_norm.forward(&blocks)?)?;
        Ok(ImageEmbeddings::of(features))
    }
}

impl WindowMerger {
    fn load(config: &MiniCpmVisionConfig, dtype: Dtype, weights: &mut Weights<'_>) -> error::Result<Self> {
        let shape = &config.shape;
        let path = first_with(weights, &MERGERS, "layer_norm1.weight");
        let at = |name: &str| format!("{path}.{name}");
        let patches = (MINICPM_MERGE * MINICPM_MERGE) as i32;
        let (hidden, width) = (shape.hidden_size as i32, shape.head_dim() as i32);
        let parts = ["q_proj", "k_proj", "v_proj"].map(|name| (at(&format!("self_attn.{name}")), hidden));
        let sizes = (patches * hidden, patches * shape.intermediate_size as i32, hidden);
        let gelu = (EncoderActivation::GeluTanh, dtype);
        let merger = Self {
            layer_norm1: LayerNorm::load(weights, &at("layer_norm1"), hidden, shape.eps)?,
            attention: Attention {
                heads: shape.heads as i32,
                width,
                scale: (width as f32).powf(-0.5),
                projections: Projections::Joined(Linear::load_joined(weights, &parts, hidden)?),
                norms: HeadNorms::None,
                output: ClippedLinear::plain(weights, &at("self_attn.out_proj"), hidden, hidden)?,
            },
            pre_norm: LayerNorm::load(weights, &at("pre_norm"), patches * hidden, shape.eps)?,
            network: load_mlp(&path, None, NETWORK, sizes, gelu, weights)?,
            share: Tensor::scalar(1.0 / patches as f32, dtype)?,
        };
        weights.materialize(merger.tensors())?;
        Ok(merger)
    }

    /// States of a grid `[rows · columns, hidden]` to one row for each block.
    fn forward(&self, x: &Tensor, grid: (u32, u32)) -> Result<Tensor> {
        let (hidden, patches) = (x.dim(1), (MINICPM_MERGE * MINICPM_MERGE) as i32);
        let windows = join_blocks(x, grid, MINICPM_MERGE)?.reshape(&[-1, hidden])?;
        let blocks = windows.dim(0) / patches;
        let looked = self.attention.forward(
            &self.layer_norm1.forward(&windows)?,
            None,
            &PatchMask::Windows(&[(blocks, patches)]),
        )?;
        let windows = windows.add(&looked)?;
        let mean = windows
            .reshape(&[blocks, patches, hidden])?
            .sum(1, false)?
            .mul(&self.share)?;
        let joined = windows.reshape(&[blocks, patches * hidden])?;
        self.network.forward(&self.pre_norm.forward(&joined)?)?.add(&mean)
    }
}
