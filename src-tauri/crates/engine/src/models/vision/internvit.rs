//! InternViT, and what joins it to language parts.

use checkpoint::config::encoder::EncoderActivation;
use checkpoint::config::vision::internvit::InternVitConfig;

use super::attention::{AttentionNames, PatchNorms};
use super::block::{Between, BlockNames, NormKind, Stack, TowerMlp};
use super::patches::{load_patch_linear, merge_blocks, patch_rows, PatchShape};
use super::resample::Resampling;
use crate::error::Result;
use crate::layers::{LayerNorm, Linear};
use crate::ops::concatenate;
use crate::parameters::Parameters;
use crate::tensor::Tensor;
use crate::weights::Weights;

/// The epsilon of norms that the original code leaves to torch.
const TORCH_EPS: f32 = 1e-5;

/// What tensors are called.
struct Names {
    class: &'static str,
    patches: &'static str,
    positions: &'static str,
    layers: &'static str,
    block: BlockNames,
    /// The projector: its path, its norm and its two projections.
    projector: [&'static str; 4],
}

/// The original code's.
const ORIGINAL: Names = Names {
    class: "vision_model.embeddings.class_embedding",
    patches: "vision_model.embeddings.patch_embedding",
    positions: "vision_model.embeddings.position_embedding",
    layers: "vision_model.encoder.layers",
    block: BlockNames {
        norm: NormKind::Layer,
        norms: ["norm1", "norm2"],
        attention: AttentionNames {
            qkv: &["attn.qkv"],
            out: "attn.proj",
            norms: (PatchNorms::None, ["attn.q_norm", "attn.k_norm"]),
        },
        up: &["mlp.fc1"],
        down: "mlp.fc2",
        scales: Some(["ls1", "ls2"]),
    },
    projector: ["mlp1", "0", "1", "3"],
};

/// Those of transformers' own class.
const TRANSFORMERS: Names = Names {
    class: "vision_tower.embeddings.cls_token",
    patches: "vision_tower.embeddings.patch_embeddings.projection",
    positions: "vision_tower.embeddings.position_embeddings",
    layers: "vision_tower.encoder.layer",
    block: BlockNames {
        norms: ["layernorm_before", "layernorm_after"],
        attention: AttentionNames {
            qkv: &["attention.q_proj", "attention.k_proj", "attention.v_proj"],
            out: "attention.projection_layer",
            norms: (PatchNorms::None, ["attention.q_norm", "attention.k_norm"]),
        },
        scales: Some(["lambda_1", "lambda_2"]),
        ..ORIGINAL.block
    },
    projector: ["multi_modal_projector", "layer_norm", "linear_1", "linear_2"],
};

/// A tower with its projector.
pub struct InternVit {
    config: InternVitConfig,
    patch_embedding: Linear,
    /// The class token with its position, `[1, hidden]`.
    class: Tensor,
    /// `[side, side, hidden]`.
    positions: Tensor,
    stack: Stack,
    norm: LayerNorm,
    projector: TowerMlp,
}

impl InternVit {
    /// Builds the tower; every tensor of it is computed when this returns.
    pub fn load(config: &InternVitConfig, weights: &mut Weights<'_>) -> Result<Self> {
        let shape = &config.shape;
        let (hidden, side) = (shape.hidden as i32, config.side as i32);
        let names = if config.transformers { TRANSFORMERS } else { ORIGINAL };
        let attention = names.block.attention;
        let block = BlockNames {
            norm: if config.rms { NormKind::Rms } else { NormKind::Layer },
            attention: AttentionNames {
                norms: (if config.qk_norm { PatchNorms::Whole } else { PatchNorms::None }, attention.norms.1),
                ..attention
            },
            ..names.block
        };
        let positions = weights.take(names.positions, &[1, side * side + 1, hidden])?;
        let class = weights.take(names.class, &[1, 1, hidden])?;
        let class = class.add(&positions.slice(1, 0, 1)?)?.reshape(&[1, hidden])?;
        let positions = positions.slice(1, 1, side * side + 1)?.reshape(&[side, side, hidden])?.contiguous()?;
        weights.materialize([&class, &positions])?;
        let (block_width, outputs) = (hidden * (config.merge * config.merge) as i32, config.outputs as i32);
        let [path, norm, up, down] = names.projector;
        Ok(Self {
            patch_embedding: load_patch_linear(weights, names.patches, PatchShape::still(shape.patch), hidden)?,
            stack: Stack::load(weights, names.layers, &block, shape, positions.dtype())?,
            norm: LayerNorm::load(weights, &format!("{path}.{norm}"), block_width, TORCH_EPS)?,
            projector: TowerMlp::load(
                weights,
                path,
                (&[up], down),
                (block_width, outputs, outputs),
                EncoderActivation::Gelu,
                positions.dtype(),
            )?,
            class,
            positions,
            config: *config,
        })
    }

    /// The features `[tokens, width]` of a tile `[3, height, width]`.
    pub fn encode(&self, pixels: &Tensor, grid: (u32, u32), between: &mut Between<'_>) -> Result<Tensor> {
        let size = (grid.0 as i32, grid.1 as i32);
        let rows = self.patch_embedding.forward(&patch_rows(pixels, self.config.shape.patch as i32)?)?;
        let positions = Resampling::Cubic.apply(&self.positions, size)?.astype(rows.dtype())?;
        let states = concatenate(&[&self.class, &rows.add(&positions)?], 0)?;
        let states = self.stack.forward(states, None, between)?;
        let patches = states.slice(0, 1, states.dim(0))?;
        let blocks = merge_blocks(&patches, size, self.config.merge as i32)?;
        self.projector.forward(&self.norm.forward(&blocks)?)
    }
}

impl Parameters for InternVit {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        let Self {
            config: _,
            patch_embedding,
            class,
            positions,
            stack,
            norm,
            projector,
        } = self;
        patch_embedding.visit(visitor);
        visitor(class);
        visitor(positions);
        stack.visit(visitor);
        norm.visit(visitor);
        projector.visit(visitor);
    }
}
