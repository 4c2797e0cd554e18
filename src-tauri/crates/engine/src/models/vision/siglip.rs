//! SigLIP and SigLIP 2, and what joins them to language parts.

use checkpoint::config::encoder::EncoderActivation;
use checkpoint::config::vision::siglip::{SiglipConfig, SiglipProjector};
use mlx_rs::Dtype;

use super::attention::{AttentionNames, PatchNorms};
use super::block::{Between, BlockNames, NormKind, Stack, TowerMlp};
use super::patches::{load_patch_linear, merge_blocks, patch_rows, PatchShape};
use super::resample::Resampling;
use super::rope::{in_rows, PatchRope, Turning};
use super::{first_that_has, table};
use crate::error::Result;
use crate::layers::{LayerNorm, Linear, RmsNorm};
use crate::parameters::Parameters;
use crate::tensor::Tensor;
use crate::weights::Weights;

/// Where conversions and originals keep the tower.
const PLACES: [&str; 5] = [
    "vision_tower.vision_model",
    "vision_tower",
    "vision_model",
    "visual.vision_model",
    "visual",
];

const ATTENTION: AttentionNames = AttentionNames {
    qkv: &["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
    out: "self_attn.out_proj",
    norms: (PatchNorms::None, ["", ""]),
};

/// Layers as SigLIP names them.
const APART: BlockNames = BlockNames {
    norm: NormKind::Layer,
    norms: ["layer_norm1", "layer_norm2"],
    attention: ATTENTION,
    up: &["mlp.fc1"],
    down: "mlp.fc2",
    scales: None,
};

/// The same with the projections joined (PaddleOCR-VL for MLX).
const JOINED: BlockNames = BlockNames {
    attention: AttentionNames {
        qkv: &["self_attn.qkv"],
        ..ATTENTION
    },
    ..APART
};

/// The epsilon of norms that transformers leaves to torch.
const TORCH_EPS: f32 = 1e-5;

/// A tower with its projector.
pub struct Siglip {
    config: SiglipConfig,
    patch_embedding: Linear,
    /// `[side, side, hidden]`.
    positions: Tensor,
    stack: Stack,
    post_layernorm: LayerNorm,
    projector: Projector,
}

enum Projector {
    Pooled { norm: RmsNorm, projection: Tensor },
    Joined(Linear),
    Network { norm: Option<LayerNorm>, network: TowerMlp },
    NormedNetwork { norm: LayerNorm, network: TowerMlp },
}

impl Siglip {
    /// Builds the tower; every tensor of it is computed when this returns.
    pub fn load(config: &SiglipConfig, weights: &mut Weights<'_>) -> Result<Self> {
        let shape = &config.shape;
        let hidden = shape.hidden as i32;
        let path = first_that_has(weights, &PLACES, "embeddings.patch_embedding.weight");
        let dtype = weights.dtype(&format!("{path}.embeddings.patch_embedding.bias"));
        let layers = match weights.has(&format!("{path}.layers.0.layer_norm1.weight")) {
            true => format!("{path}.layers"),
            false => format!("{path}.encoder.layers"),
        };
        let joined = weights.has(&format!("{layers}.0.self_attn.qkv.weight"));
        let patches = PatchShape::still(shape.patch);
        let embedding = format!("{path}.embeddings.patch_embedding");
        // SigLIP 2 has a projection of rows, which may be quantised; its rows have the channels last.
        let convolution = weights.shape(&format!("{embedding}.weight")).is_some_and(|shape| shape.len() > 2);
        Ok(Self {
            patch_embedding: match convolution {
                true => load_patch_linear(weights, &embedding, patches, hidden)?,
                false => Linear::load(weights, &embedding, patches.numbers(), hidden)?,
            },
            positions: table(weights, &format!("{path}.embeddings.position_embedding"), config.side, hidden)?,
            stack: Stack::load(weights, &layers, if joined { &JOINED } else { &APART }, shape, dtype)?,
            post_layernorm: LayerNorm::load(weights, &format!("{path}.post_layernorm"), hidden, shape.eps)?,
            projector: Projector::load(config, &path, dtype, weights)?,
            config: *config,
        })
    }

    /// The features `[tokens, width]` of a picture `[3, height, width]`, or of rows of patches, of so many rows and columns.
    pub fn encode(&self, pixels: &Tensor, grid: (u32, u32), between: &mut Between<'_>) -> Result<Tensor> {
        let size = (grid.0 as i32, grid.1 as i32);
        let pixels = pixels.astype(self.positions.dtype())?;
        let rows = match self.config.rows {
            true => pixels,
            false => patch_rows(&pixels, self.config.shape.patch as i32)?,
        };
        let resampling = match self.config.projector {
            SiglipProjector::Network { .. } => Resampling::LinearAntialiased,
            _ => Resampling::Linear,
        };
        let positions = resampling.apply(&self.positions, size)?.astype(rows.dtype())?;
        let rope = self.config.theta.map(|theta| {
            let width = self.config.shape.hidden / self.config.shape.heads;
            PatchRope::new(Turning::Alike(theta), width as i32, &in_rows(grid))
        });
        let states = self.patch_embedding.forward(&rows)?.add(&positions)?;
        let states = self.stack.forward(states, rope.as_ref(), between)?;
        self.projector
            .forward(&self.post_layernorm.forward(&states)?, size, &self.config.projector)
    }
}

impl Projector {
    fn load(config: &SiglipConfig, tower: &str, dtype: Dtype, weights: &mut Weights<'_>) -> Result<Self> {
        let (hidden, outputs) = (config.shape.hidden as i32, config.outputs as i32);
        let block = |merge: u32| hidden * (merge * merge) as i32;
        let linears: (&[&str], &str) = (&["linear_1"], "linear_2");
        match config.projector {
            SiglipProjector::Pooled { .. } => {
                let path = "multi_modal_projector";
                // Its factors are stored as their difference from 1, as all of Gemma's.
                let factors = weights.take(&format!("{path}.mm_soft_emb_norm.weight"), &[hidden])?;
                let factors = factors.add(&Tensor::scalar(1.0, factors.dtype())?)?;
                let projection = weights.take(&format!("{path}.mm_input_projection_weight"), &[hidden, outputs])?;
                let norm = RmsNorm::new(factors, config.shape.eps)?;
                weights.materialize(norm.tensors().into_iter().chain([&projection]))?;
                Ok(Self::Pooled { norm, projection })
            }
            SiglipProjector::Joined { merge } => Ok(Self::Joined(Linear::load(
                weights,
                "connector.modality_projection.proj",
                block(merge),
                outputs,
            )?)),
            SiglipProjector::Network {
                merge,
                width,
                normed,
                activation,
            } => {
                let path = "multi_modal_projector";
                let norm = |weights: &mut Weights<'_>| LayerNorm::load(weights, &format!("{path}.layer_norm"), block(merge), TORCH_EPS);
                Ok(Self::Network {
                    norm: normed.then(|| norm(weights)).transpose()?,
                    network: TowerMlp::load(weights, path, linears, (block(merge), width as i32, outputs), activation, dtype)?,
                })
            }
            SiglipProjector::NormedNetwork { merge } => {
                let own = format!("{tower}.projector");
                let path = first_that_has(weights, &[&own, "mlp_AR"], "pre_norm.weight");
                let shape = (block(merge), block(merge), outputs);
                Ok(Self::NormedNetwork {
                    norm: LayerNorm::load(weights, &format!("{path}.pre_norm"), hidden, TORCH_EPS)?,
                    network: TowerMlp::load(weights, &path, linears, shape, EncoderActivation::Gelu, dtype)?,
                })
            }
        }
    }

    fn forward(&self, states: &Tensor, grid: (i32, i32), config: &SiglipProjector) -> Result<Tensor> {
        match (self, *config) {
            (Self::Pooled { norm, projection }, SiglipProjector::Pooled { tokens }) => {
                let (tokens, hidden) = (tokens as i32, states.dim(-1));
                let (down, over) = (grid.0 / tokens, grid.1 / tokens);
                let squares = states.reshape(&[tokens, down, tokens, over, hidden])?;
                let share = Tensor::scalar(1.0 / (down * over) as f32, states.dtype())?;
                let means = squares.sum(3, false)?.sum(1, false)?.mul(&share)?;
                norm.forward(&means.reshape(&[tokens * tokens, hidden])?)?.matmul(projection)
            }
            (Self::Joined(projection), SiglipProjector::Joined { merge }) => projection.forward(&merge_blocks(states, grid, merge as i32)?),
            (Self::Network { norm, network }, SiglipProjector::Network { merge, .. }) => {
                let blocks = merge_blocks(states, grid, merge as i32)?;
                match norm {
                    Some(norm) => network.forward(&norm.forward(&blocks)?),
                    None => network.forward(&blocks),
                }
            }
            (Self::NormedNetwork { norm, network }, SiglipProjector::NormedNetwork { merge }) => {
                network.forward(&merge_blocks(&norm.forward(states)?, grid, merge as i32)?)
            }
            _ => unreachable!("it was loaded by this description"),
        }
    }
}

impl Parameters for Projector {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        match self {
            Self::Pooled { norm, projection } => {
                norm.visit(visitor);
                visitor(projection);
            }
            Self::Joined(projection) => projection.visit(visitor),
            Self::Network { norm, network } => {
                norm.visit(visitor);
                network.visit(visitor);
            }
            Self::NormedNetwork { norm, network } => {
                norm.visit(visitor);
                network.visit(visitor);
            }
        }
    }
}

impl Parameters for Siglip {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        let Self {
            config: _,
            patch_embedding,
            positions,
            stack,
            post_layernorm,
            projector,
        } = self;
        patch_embedding.visit(visitor);
        visitor(positions);
        stack.visit(visitor);
        post_layernorm.visit(visitor);
        projector.visit(visitor);
    }
}
