//! The vision encoders of GLM-4.1V and GLM-OCR. References: transformers' `modeling_glm4v.py` and
//! `modeling_glm_ocr.py`.

use checkpoint::config::encoder::EncoderActivation;
use checkpoint::vision::GlmVisionConfig;
use mlx::ops::ids_tensor;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use super::block::Mlp;
use super::patches::{load_block_linear, load_patch_linear, PatchOrder, COLOURS};
use super::resample::Resampling;
use super::rope::{angles, in_squares, PatchRotation};
use super::stack::{check_blocks, load_mlp, load_table, BlockNames, Stack, TORCH_EPS};
use super::{check_outputs, ImageEmbeddings, LayerHook, ViewInput};
use crate::error;
use crate::layers::{LayerNorm, Linear, Pointwise, RmsNorm};
use crate::weights::Weights;

/// The base of the rotation's periods.
const THETA: f32 = 10_000.0;

const BLOCK: BlockNames = BlockNames {
    rms: true,
    norms: ["norm1", "norm2"],
    qkv: &["attn.qkv"],
    output: "attn.proj",
    gate: Some("mlp.gate_proj"),
    network: ["mlp.up_proj", "mlp.down_proj"],
    ..BlockNames::CLIP
};

/// The same with normed heads.
const NORMED: BlockNames = BlockNames {
    qk_norms: Some((["attn.q_norm", "attn.k_norm"], false)),
    ..BLOCK
};

/// A vision encoder with its merger.
#[derive(Parameters)]
pub struct GlmTower {
    #[parameters(skip)]
    config: GlmVisionConfig,
    dtype: Dtype,
    patch_proj: Linear,
    learned: Option<Learned>,
    stack: Stack,
    post_layernorm: RmsNorm,
    merger: Merger,
}

/// A norm, then learned positions.
#[derive(Parameters)]
struct Learned {
    post_conv_layernorm: RmsNorm,
    /// `[side, side, hidden]`.
    positions: Tensor,
}

/// The part that makes one token of the patches of a block.
#[derive(Parameters)]
struct Merger {
    downsample: Linear,
    proj: Linear,
    post_projection_norm: LayerNorm,
    activation: Pointwise,
    network: Mlp,
}

impl GlmTower {
    pub(super) fn load(config: &GlmVisionConfig, text_width: u32, weights: &mut Weights<'_>) -> error::Result<Self> {
        const PATCHES: &str = "vision_tower.patch_embed.proj";
        check_outputs(config.out_hidden_size, text_width)?;
        let shape = &config.shape;
        let (hidden, side) = (shape.hidden_size as i32, shape.patch_size as i32);
        let norm = |path: &str, weights: &mut Weights<'_>| RmsNorm::load(weights, path, hidden, shape.eps);
        let dtype = weights.dtype("vision_tower.post_layernorm.weight");
        let inputs = COLOURS * config.frames as i32 * side * side;
        let block = if config.qk_norm { &NORMED } else { &BLOCK };
        let learned = |side: u32, weights: &mut Weights<'_>| {
            Ok::<_, error::Error>(Learned {
                post_conv_layernorm: norm("vision_tower.post_conv_layernorm", weights)?,
                positions: load_table("vision_tower.embeddings.position_embedding", side, hidden, weights)?,
            })
        };
        Ok(Self {
            dtype,
            patch_proj: load_patch_linear(weights, PATCHES, inputs, hidden, PatchOrder::ColourByColour)?,
            learned: config.learned.map(|side| learned(side, weights)).transpose()?,
            stack: Stack::load("vision_tower.blocks", block, shape, dtype, weights)?,
            post_layernorm: norm("vision_tower.post_layernorm", weights)?,
            merger: Merger::load(config, dtype, weights)?,
            config: *config,
        })
    }

    pub(super) fn encode(&self, input: &ViewInput<'_>, hook: &mut LayerHook<'_>) -> error::Result<ImageEmbeddings> {
        let (config, (rows, columns)) = (&self.config, input.view.patches);
        check_blocks(input.view, config.merge)?;
        let inputs = COLOURS * (config.frames * config.shape.patch_size * config.shape.patch_size) as i32;
        let patches = input.rows(inputs)?.astype(self.dtype)?;
        let mut x = self.patch_proj.forward(&patches)?;
        let places = in_squares(rows, columns, config.merge);
        if let Some(learned) = &self.learned {
            let order: Vec<u32> = places.iter().map(|(row, column)| row * columns + column).collect();
            let positions = Resampling::Cubic
                .apply(&learned.positions, input.view.patches)?
                .astype(self.dtype)?;
            let positions = positions.take(&ids_tensor(&order), 0)?;
            x = learned.post_conv_layernorm.forward(&x)?.add(&positions)?;
        }
        let angles = angles(&places, config.shape.head_dim() / 2, THETA, false);
        let rotation = PatchRotation::new(&angles, places.len(), 1);
        let x = self.stack.forward(x, Some(&rotation), hook)?;
        let states = self.post_layernorm.forward(&x)?;
        Ok(ImageEmbeddings::of(self.merger.forward(&states, config.merge)?))
    }
}

impl Merger {
    fn load(config: &GlmVisionConfig, dtype: Dtype, weights: &mut Weights<'_>) -> error::Result<Self> {
        const PATH: &str = "vision_tower.merger";
        let (outputs, merge) = (config.out_hidden_size as i32, config.merge as i32);
        let (norm, names) = (format!("{PATH}.post_projection_norm"), ["up_proj", "down_proj"]);
        let (pooled, fed) = (
            (config.shape.hidden_size as i32, outputs),
            (outputs, config.merger_width as i32, outputs),
        );
        let activation = (config.shape.activation, dtype);
        Ok(Self {
            downsample: load_block_linear(weights, "vision_tower.downsample", pooled, merge)?,
            proj: Linear::load(weights, &format!("{PATH}.proj"), outputs, outputs)?,
            post_projection_norm: LayerNorm::load(weights, &norm, outputs, TORCH_EPS)?,
            activation: Pointwise::new(EncoderActivation::Gelu, dtype)?,
            network: load_mlp(PATH, Some("gate_proj"), names, fed, activation, weights)?,
        })
    }

    /// `[patches, hidden]`, those of a block next to each other, to `[tokens, width of the language part]`.
    fn forward(&self, x: &Tensor, merge: u32) -> Result<Tensor> {
        let blocks = x.reshape(&[-1, x.dim(1) * (merge * merge) as i32])?;
        let joined = self.proj.forward(&self.downsample.forward(&blocks)?)?;
        let gelu = self.activation.forward(&self.post_projection_norm.forward(&joined)?)?;
        self.network.forward(&gelu)
    }
}
