//! InternViT, and what joins it to language parts. References: transformers' `modeling_internvl.py` and the original
//! repositories' `modeling_intern_vit.py`.

use checkpoint::config::encoder::EncoderActivation;
use checkpoint::vision::InternVitConfig;
use mlx::ops::concatenate;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;

use super::block::Mlp;
use super::patches::{load_patch_linear, PatchOrder, COLOURS};
use super::resample::Resampling;
use super::stack::{check_blocks, join_blocks, load_mlp, BlockNames, Stack, TORCH_EPS};
use super::{ImageEmbeddings, LayerHook, ViewInput};
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
        norms: ["norm1", "norm2"],
        qkv: &["attn.qkv"],
        output: "attn.proj",
        scales: Some(["ls1", "ls2"]),
        ..BlockNames::CLIP
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
#[derive(Parameters)]
pub struct InternVit {
    #[parameters(skip)]
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
        let class = weights.take(names.class, &[1, 1, hidden])?;
        let class = class.add(&positions.slice(1, 0, 1)?)?.reshape(&[1, hidden])?;
        let positions = positions.slice(1, 1, side * side + 1)?.contiguous()?;
        let positions = positions.reshape(&[side, side, hidden])?;
        weights.materialize([&class, &positions])?;
        let dtype = positions.dtype();
        let joined = hidden * (config.merge * config.merge) as i32;
        let (inputs, sizes) = (COLOURS * pixels * pixels, (joined, outputs, outputs));
        let gelu = (EncoderActivation::Gelu, dtype);
        Ok(Self {
            patch_embedding: load_patch_linear(weights, names.patches, inputs, hidden, PatchOrder::PixelByPixel)?,
            stack: Stack::load(names.layers, &block, shape, dtype, weights)?,
            norm: LayerNorm::load(weights, names.norm, joined, TORCH_EPS)?,
            projector: load_mlp(names.projector, None, names.network, sizes, gelu, weights)?,
            class,
            positions,
            config: *config,
        })
    }

    pub(super) fn encode(&self, input: &ViewInput<'_>, hook: &mut LayerHook<'_>) -> Result<ImageEmbeddings> {
        check_blocks(input.view, self.config.merge)?;
        let (side, dtype) = (self.config.shape.patch_size as i32, self.positions.dtype());
        let rows = input.cut(side)?.astype(dtype)?;
        let positions = Resampling::Cubic
            .apply(&self.positions, input.view.patches)?
            .astype(dtype)?;
        let patches = self.patch_embedding.forward(&rows)?.add(&positions)?;
        let x = concatenate(&[&self.class, &patches], 0)?;
        let x = self.stack.forward(x, None, hook)?;
        let blocks = join_blocks(&x.slice(0, 1, x.dim(0))?, input.view.patches, self.config.merge)?;
        let normed = self.norm.forward(&blocks)?;
        Ok(ImageEmbeddings::of(self.projector.forward(&normed)?))
    }
}
