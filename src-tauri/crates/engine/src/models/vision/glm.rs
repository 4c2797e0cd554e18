//! The towers of GLM-4.1V and GLM-OCR.

use checkpoint::config::encoder::EncoderActivation;
use checkpoint::config::vision::glm::GlmVisionConfig;

use super::attention::{AttentionNames, PatchNorms};
use super::block::{Between, BlockNames, NormKind, Stack, TowerMlp};
use super::patches::{load_patch_linear, PatchShape};
use super::resample::Resampling;
use super::rope::{in_blocks, PatchRope, Turning};
use super::{first_that_has, table};
use crate::error::Result;
use crate::layers::{LayerNorm, Linear, RmsNorm, UnaryActivation};
use crate::parameters::Parameters;
use crate::tensor::Tensor;
use crate::weights::Weights;

/// Where conversions and originals keep the tower.
const PLACES: [&str; 2] = ["vision_tower", "visual"];

/// The epsilon of norms that transformers leaves to torch.
const TORCH_EPS: f32 = 1e-5;

/// The base of the rotary positions in transformers' class.
const THETA: f32 = 10_000.0;

const BLOCK: BlockNames = BlockNames {
    norm: NormKind::Rms,
    norms: ["norm1", "norm2"],
    attention: AttentionNames {
        qkv: &["attn.qkv"],
        out: "attn.proj",
        norms: (PatchNorms::None, ["", ""]),
    },
    up: &["mlp.gate_proj", "mlp.up_proj"],
    down: "mlp.down_proj",
    scales: None,
};

/// The same with normed heads.
const NORMED: BlockNames = BlockNames {
    attention: AttentionNames {
        norms: (PatchNorms::PerHead, ["attn.q_norm", "attn.k_norm"]),
        ..BLOCK.attention
    },
    ..BLOCK
};

/// A tower with its merger.
pub struct GlmVision {
    config: GlmVisionConfig,
    patch_embed: Linear,
    learned: Option<Learned>,
    stack: Stack,
    post_layernorm: RmsNorm,
    merger: Merger,
}

/// A norm, then learned positions.
struct Learned {
    post_conv_layernorm: RmsNorm,
    /// `[side, side, hidden]`.
    positions: Tensor,
}

struct Merger {
    /// All numbers of a block to the width of the language part.
    downsample: Linear,
    proj: Linear,
    post_projection_norm: LayerNorm,
    activation: UnaryActivation,
    network: TowerMlp,
}

impl GlmVision {
    /// Builds the tower; every tensor of it is computed when this returns.
    pub fn load(config: &GlmVisionConfig, weights: &mut Weights<'_>) -> Result<Self> {
        let shape = &config.shape;
        let (hidden, outputs, merge) = (shape.hidden as i32, config.outputs as i32, config.merge as i32);
        let path = first_that_has(weights, &PLACES, "post_layernorm.weight");
        let at = |name: &str| format!("{path}.{name}");
        let dtype = weights.dtype(&at("post_layernorm.weight"));
        let patches = PatchShape {
            frames: config.frames as i32,
            ..PatchShape::still(shape.patch)
        };
        let block = PatchShape {
            channels: hidden,
            frames: 1,
            side: merge,
        };
        let learned = match config.learned {
            Some(side) => Some(Learned {
                post_conv_layernorm: RmsNorm::load(weights, &at("post_conv_layernorm"), hidden, shape.eps)?,
                positions: table(weights, &at("embeddings.position_embedding"), side, hidden)?,
            }),
            None => None,
        };
        let inside = config.merger_width as i32;
        Ok(Self {
            patch_embed: load_patch_linear(weights, &at("patch_embed.proj"), patches, hidden)?,
            learned,
            stack: Stack::load(weights, &at("blocks"), if config.qk_norm { &NORMED } else { &BLOCK }, shape, dtype)?,
            post_layernorm: RmsNorm::load(weights, &at("post_layernorm"), hidden, shape.eps)?,
            merger: Merger {
                downsample: load_patch_linear(weights, &at("downsample"), block, outputs)?,
                proj: Linear::load(weights, &at("merger.proj"), outputs, outputs)?,
                post_projection_norm: LayerNorm::load(weights, &at("merger.post_projection_norm"), outputs, TORCH_EPS)?,
                activation: UnaryActivation::new(EncoderActivation::Gelu, dtype)?,
                network: TowerMlp::load(
                    weights,
                    &at("merger"),
                    (&["gate_proj", "up_proj"], "down_proj"),
                    (outputs, inside, outputs),
                    shape.activation,
                    dtype,
                )?,
            },
            config: *config,
        })
    }

    /// The features `[tokens, width]` of rows of patches, those of each block next to each other.
    pub fn encode(&self, rows: &Tensor, grid: (u32, u32), between: &mut Between<'_>) -> Result<Tensor> {
        let (shape, merge) = (&self.config.shape, self.config.merge);
        let places = in_blocks(grid, merge);
        let mut states = self.patch_embed.forward(rows)?;
        if let Some(learned) = &self.learned {
            let positions = Resampling::Cubic.apply(&learned.positions, (grid.0 as i32, grid.1 as i32))?;
            let order: Vec<i32> = places.iter().map(|(row, column)| (row * grid.1 + column) as i32).collect();
            let positions = positions.take(&Tensor::from_i32(&order, &[order.len() as i32]), 0)?;
            let normed = learned.post_conv_layernorm.forward(&states)?;
            states = normed.add(&positions.astype(normed.dtype())?)?;
        }
        let rope = PatchRope::new(Turning::Alike(THETA), (shape.hidden / shape.heads) as i32, &places);
        let states = self.stack.forward(states, Some(&rope), between)?;
        self.merger
            .forward(&self.post_layernorm.forward(&states)?, (merge * merge) as i32)
    }
}

impl Merger {
    /// `[patches, hidden]` to a row for each block of so many.
    fn forward(&self, states: &Tensor, block: i32) -> Result<Tensor> {
        let hidden = states.dim(-1);
        // The convolution's numbers lie channel by channel.
        let blocks = states.reshape(&[-1, block, hidden])?.swapaxes(1, 2)?.reshape(&[-1, hidden * block])?;
        let joined = self.proj.forward(&self.downsample.forward(&blocks)?)?;
        self.network
            .forward(&self.activation.forward(&self.post_projection_norm.forward(&joined)?)?)
    }
}

impl Parameters for Merger {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        let Self {
            downsample,
            proj,
            post_projection_norm,
            activation,
            network,
        } = self;
        downsample.visit(visitor);
        proj.visit(visitor);
        post_projection_norm.visit(visitor);
        activation.visit(visitor);
        network.visit(visitor);
    }
}

impl Parameters for GlmVision {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        let Self {
            config: _,
            patch_embed,
            learned,
            stack,
            post_layernorm,
            merger,
        } = self;
        patch_embed.visit(visitor);
        if let Some(Learned {
            post_conv_layernorm,
            positions,
        }) = learned
        {
            post_conv_layernorm.visit(visitor);
            visitor(positions);
        }
        stack.visit(visitor);
        post_layernorm.visit(visitor);
        merger.visit(visitor);
    }
}
