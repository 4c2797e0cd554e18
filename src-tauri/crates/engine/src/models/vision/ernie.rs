//! The vision encoder of ERNIE 4.5 VL and its resampler. Reference: transformers' `modeling_ernie4_5_vl_moe.py`.

use checkpoint::config::encoder::EncoderActivation;
use checkpoint::vision::ErnieVisionConfig;
use mlx::ops::concatenate;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use super::block::Mlp;
use super::patches::{load_patch_linear, PatchOrder, COLOURS};
use super::rope::{angles, in_squares, PatchRotation};
use super::stack::{check_blocks, first_with, load_mlp, BlockNames, Stack};
use super::{ImageEmbeddings, LayerHook, ViewInput};
use crate::error;
use crate::layers::{LayerNorm, Linear, RmsNorm};
use crate::weights::Weights;

/// The base of the rotation's periods.
const THETA: f32 = 10_000.0;

/// The paths at which conversions and original files keep the vision encoder.
const PLACES: [&str; 2] = ["vision_tower", "vision_model"];

/// The projections and the norm of a network of the resampler, in conversions, in original files and in those of
/// transformers.
const NETWORKS: [[&str; 3]; 3] = [
    ["layers.0", "layers.2", "layers.3"],
    ["0", "2", "3"],
    ["fc1", "fc2", "ln"],
];

const BLOCK: BlockNames = BlockNames {
    norms: ["norm1", "norm2"],
    qkv: &["attn.qkv"],
    output: "attn.proj",
    ..BlockNames::CLIP
};

/// The vision encoder.
#[derive(Parameters)]
pub struct ErnieTower {
    #[parameters(skip)]
    config: ErnieVisionConfig,
    dtype: Dtype,
    patch_proj: Linear,
    stack: Stack,
    last_norm: LayerNorm,
    /// For the patches of a block.
    spatial: Resampler,
    /// For both frames of a pair.
    temporal: Option<Resampler>,
    projection: Linear,
    after_norm: RmsNorm,
}

/// A network of the resampler.
#[derive(Parameters)]
struct Resampler {
    network: Mlp,
    norm: LayerNorm,
}

impl Resampler {
    fn load(
        path: &str,
        (inputs, width): (i32, i32),
        eps: f32,
        dtype: Dtype,
        weights: &mut Weights<'_>,
    ) -> error::Result<Self> {
        let there = |names: &&[&str; 3]| weights.has(&format!("{path}.{}.weight", names[0]));
        let [up, down, norm] = *NETWORKS.iter().find(there).unwrap_or(&NETWORKS[0]);
        let kind = (EncoderActivation::Gelu, dtype);
        Ok(Self {
            network: load_mlp(path, None, [up, down], (inputs, width, width), kind, weights)?,
            norm: LayerNorm::load(weights, &format!("{path}.{norm}"), width, eps)?,
        })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.norm.forward(&self.network.forward(x)?)
    }
}

impl ErnieTower {
    pub(super) fn load(config: &ErnieVisionConfig, outputs: u32, weights: &mut Weights<'_>) -> error::Result<Self> {
        let shape = &config.shape;
        let (hidden, side, square) = (
            shape.hidden_size as i32,
            shape.patch_size as i32,
            config.square() as i32,
        );
        let path = first_with(weights, &PLACES, "patch_embed.proj.weight");
        let dtype = weights.dtype(&format!("{path}.blocks.0.norm1.weight"));
        let order = PatchOrder::ColourByColour;
        let patches = format!("{path}.patch_embed.proj");
        let mut resampler = |name: &str, inputs: i32| {
            let path = format!("resampler_model.{name}");
            Resampler::load(&path, (inputs, square), shape.eps, dtype, weights)
        };
        let spatial = resampler("spatial_linear", square)?;
        let joins = config.joins_frames;
        let temporal = joins.then(|| resampler("temporal_linear", 2 * square)).transpose()?;
        let tower = Self {
            patch_proj: load_patch_linear(weights, &patches, COLOURS * side * side, hidden, order)?,
            stack: Stack::load(&format!("{path}.blocks"), &BLOCK, shape, dtype, weights)?,
            last_norm: LayerNorm::load(weights, &format!("{path}.ln"), hidden, shape.eps)?,
            projection: Linear::load(weights, "resampler_model.mlp", square, outputs as i32)?,
            after_norm: RmsNorm::load(weights, "resampler_model.after_norm", outputs as i32, config.text_eps)?,
            spatial,
            temporal,
            dtype,
            config: config.clone(),
        };
        Ok(tower)
    }

    pub(super) fn encode(&self, input: &ViewInput<'_>, hook: &mut LayerHook<'_>) -> error::Result<ImageEmbeddings> {
        let (shape, merge) = (&self.config.shape, self.config.merge);
        let (rows, columns) = input.view.patches;
        check_blocks(input.view, merge)?;
        let inputs = COLOURS * (shape.patch_size * shape.patch_size) as i32;
        let patches = input.rows(inputs)?.astype(self.dtype)?;
        let pairs = angles(&in_squares(rows, columns, merge), shape.head_dim() / 2, THETA, false);
        let rotation = PatchRotation::new(&pairs, (rows * columns) as usize, 1);
        let x = self
            .stack
            .forward(self.patch_proj.forward(&patches)?, Some(&rotation), hook)?;
        let blocks = self
            .last_norm
            .forward(&x)?
            .reshape(&[-1, self.config.square() as i32])?;
        let mut tokens = self.spatial.forward(&blocks)?;
        if let Some(temporal) = &self.temporal {
            tokens = temporal.forward(&concatenate(&[&tokens, &tokens], 1)?)?;
        }
        let projected = self.projection.forward(&tokens)?;
        Ok(ImageEmbeddings::of(self.after_norm.forward(&projected)?))
    }
}
