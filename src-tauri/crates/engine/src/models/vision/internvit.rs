//! InternViT, and what joins it to language parts. References: transformers' `modeling_internvl.py` and the original
//! repositories' `modeling_intern_vit.py`.

use checkpoint::config::encoder::EncoderActivation;
use checkpoint::config::vision::InternVitConfig;
use checkpoint::View;
use media::ViewPixels;
use mlx::ops::concatenate;
use mlx::parameters::parameters;
use mlx::tensor::Tensor;

use super::block::Mlp;
use super::patches::{cut, load_patch_linear, PatchOrder, COLOURS};
use super::resample::Resampling;
use super::stack::{check_blocks, join_blocks, load_mlp, BlockNames, Stack, TORCH_EPS};
use super::{planes_of, ImageEmbeddings, LayerHook};
use crate::error::Result;
use crate::layers::{LayerNorm, Linear};
use crate::weights::Weights;

/// The names of the tensors.
struct Names {
    class: &'static str,
    patches: &'static str,
    positions: &'static str,
    layers: &'static str,
    block: BlockNames,
    /// The norms of queries and keys, if there are any.
    qk_norms: [&'static str; 2],
    projector: &'static str,
    norm: &'static str,
    network: [&'static str; 2],
}

/// The original code's.
const ORIGINAL: Names = Names {
    class: "vision_model.embeddings.class_embedding",
    patches: "vision_model.embeddings.patch_embedding",
    positions: "vision_model.embeddings.position_embedding",
    layers: "vision_model.encoder.layers",
    block: BlockNames {
        rms: false,
        norms: ["norm1", "norm2"],
        qkv: &["attn.qkv"],
        output: "attn.proj",
        qk_norms: None,
        scales: Some(["ls1", "ls2"]),
        gates: None,
        gate: None,
        network: ["mlp.fc1", "mlp.fc2"],
    },
    qk_norms: ["attn.q_norm", "attn.k_norm"],
    projector: "mlp1",
    norm: "mlp1.0",
    network: ["1", "3"],
};

/// Those of transformers' own class.
const TRANSFORMERS: Names = Names {
    class: "vision_tower.embeddings.cls_token",
    patches: "vision_tower.embeddings.patch_embeddings.projection",
    positions: "vision_tower.embeddings.position_embeddings",
    layers: "vision_tower.encoder.layer",
    block: BlockNames {
        norms: ["layernorm_before", "layernorm_after"],
        qkv: &["attention.q_proj", "attention.k_proj", "attention.v_proj"],
        output: "attention.projection_layer",
        scales: Some(["lambda_1", "lambda_2"]),
        ..ORIGINAL.block
    },
    qk_norms: ["attention.q_norm", "attention.k_norm"],
    projector: "multi_modal_projector",
    norm: "multi_modal_projector.layer_norm",
    network: ["linear_1", "linear_2"],
};

/// A vision encoder with its projector.
pub struct InternVit {
    config: InternVitConfig,
    patch_embedding: Linear,
    /// The class token with its position, `[1, hidden]`.
    class: Tensor,
    /// `[side, side, hidden]`.
    positions: Tensor,
    stack: Stack,
    norm: LayerNorm,
    projector: Mlp,
}

impl InternVit {
    pub(super) fn load(config: &InternVitConfig, outputs: u32, weights: &mut Weights<'_>) -> Result<Self> {
        let shape = &config.shape;
        let (hidden, outputs) = (shape.hidden_size as i32, outputs as i32);
        let (side, pixels) = (config.side as i32, shape.patch_size as i32);
        let names = if config.transformers { TRANSFORMERS } else { ORIGINAL };
        let block = BlockNames {
            rms: config.rms,
            qk_norms: config.qk_norm.then_some((names.qk_norms, true)),
            ..names.block
        };
        let positions = weights.take(names.positions, &[1, side * side + 1, hidden])?;
        let class = weights
            .take(names.class, &[1, 1, hidden])?
            .add(&positions.slice(1, 0, 1)?)?;
        let class = class.reshape(&[1, hidden])?;
        let positions = positions
            .slice(1, 1, side * side + 1)?
            .contiguous()?
            .reshape(&[side, side, hidden])?;
        weights.materialize([&class, &positions])?;
        let dtype = positions.dtype();
        let joined = hidden * (config.merge * config.merge) as i32;
        let inputs = COLOURS * pixels * pixels;
        Ok(Self {
            patch_embedding: load_patch_linear(weights, names.patches, inputs, hidden, PatchOrder::PixelByPixel)?,
            stack: Stack::load(names.layers, &block, shape, dtype, weights)?,
            norm: LayerNorm::load(weights, names.norm, joined, TORCH_EPS)?,
            projector: load_mlp(
                names.projector,
                None,
                names.network,
                (joined, outputs, outputs),
                (EncoderActivation::Gelu, dtype),
                weights,
            )?,
            class,
            positions,
            config: *config,
        })
    }

    pub(super) fn encode(&self, pixels: &ViewPixels, view: &View, hook: &mut LayerHook<'_>) -> Result<ImageEmbeddings> {
        check_blocks(view, self.config.merge)?;
        let (side, dtype) = (self.config.shape.patch_size as i32, self.positions.dtype());
        let rows = cut(&planes_of(pixels, view, side)?, side)?.astype(dtype)?;
        let positions = Resampling::Cubic.apply(&self.positions, view.patches)?.astype(dtype)?;
        let patches = self.patch_embedding.forward(&rows)?.add(&positions)?;
        let x = self
            .stack
            .forward(concatenate(&[&self.class, &patches], 0)?, None, hook)?;
        let blocks = join_blocks(&x.slice(0, 1, x.dim(0))?, view.patches, self.config.merge)?;
        Ok(ImageEmbeddings::of(
            self.projector.forward(&self.norm.forward(&blocks)?)?,
        ))
    }
}

parameters!(InternVit {
    config: _,
    patch_embedding,
    class,
    positions,
    stack,
    norm,
    projector,
});
