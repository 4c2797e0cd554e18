//! SigLIP and SigLIP 2, and what joins them to language parts. References: transformers' `modeling_siglip.py`,
//! `modeling_siglip2.py`, `modeling_gemma3.py`, `modeling_idefics3.py`, `modeling_lfm2_vl.py` and
//! `modeling_paddleocr_vl.py`.

use checkpoint::config::encoder::EncoderActivation;
use checkpoint::vision::{SiglipConfig, SiglipProjector};
use checkpoint::View;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use super::block::Mlp;
use super::patches::{load_patch_linear, PatchOrder, COLOURS};
use super::resample::Resampling;
use super::rope::{angles, PatchRotation};
use super::stack::{
    check_blocks, first_with, join_blocks, load_mlp, load_table, network_names, row_by_row, BlockNames, Stack,
    TORCH_EPS,
};
use super::{ImageEmbeddings, LayerHook, ViewInput};
use crate::error;
use crate::layers::{LayerNorm, Linear, RmsNorm};
use crate::weights::Weights;

/// The paths at which conversions and originals keep the vision encoder.
const PLACES: [&str; 4] = [
    "vision_tower.vision_tower.vision_model",
    "vision_tower.vision_model",
    "vision_tower",
    "vision_model",
];

/// Layers with the projections joined (conversions of PaddleOCR-VL).
const JOINED: BlockNames = BlockNames {
    qkv: &["self_attn.qkv"],
    ..BlockNames::CLIP
};

/// A vision encoder with its projector.
#[derive(Parameters)]
pub struct Siglip {
    #[parameters(skip)]
    config: SiglipConfig,
    dtype: Dtype,
    patch_embedding: Linear,
    /// `[side, side, hidden]`.
    positions: Tensor,
    stack: Stack,
    post_layernorm: Option<LayerNorm>,
    projector: Projector,
}

#[derive(Parameters)]
enum Projector {
    Pooled { norm: RmsNorm, projection: Tensor },
    Joined(Linear),
    Network { norm: Option<LayerNorm>, network: Mlp },
    NormedNetwork { norm: LayerNorm, network: Mlp },
}

impl Siglip {
    pub(super) fn load(config: &SiglipConfig, outputs: u32, weights: &mut Weights<'_>) -> error::Result<Self> {
        let shape = &config.shape;
        let (hidden, side) = (shape.hidden_size as i32, shape.patch_size as i32);
        let path = first_with(weights, &PLACES, "embeddings.patch_embedding.weight");
        let embedding = format!("{path}.embeddings.patch_embedding");
        // Rows of SigLIP 2 come pixel by pixel, and so do those that planes are cut into; PaddleOCR's come color by
        // color.
        let order = match config.theta {
            Some(_) => PatchOrder::ColourByColour,
            None => PatchOrder::PixelByPixel,
        };
        let layers = match weights.has(&format!("{path}.layers.0.layer_norm1.weight")) {
            true => format!("{path}.layers"),
            false => format!("{path}.encoder.layers"),
        };
        let joined = weights.has(&format!("{layers}.0.self_attn.qkv.weight"));
        let names = if joined { &JOINED } else { &BlockNames::CLIP };
        let positions = format!("{path}.embeddings.position_embedding");
        let dtype = weights.dtype(&format!("{layers}.0.layer_norm1.weight"));
        let post_layernorm = match config.bare {
            true => None,
            false => Some(LayerNorm::load(
                weights,
                &format!("{path}.post_layernorm"),
                hidden,
                shape.eps,
            )?),
        };
        Ok(Self {
            dtype,
            patch_embedding: load_patch_linear(weights, &embedding, COLOURS * side * side, hidden, order)?,
            positions: load_table(&positions, config.side, hidden, weights)?,
            stack: Stack::load(&layers, names, shape, dtype, weights)?,
            post_layernorm,
            projector: Projector::load(config, outputs as i32, dtype, weights)?,
            config: *config,
        })
    }

    pub(super) fn encode(&self, input: &ViewInput<'_>, hook: &mut LayerHook<'_>) -> error::Result<ImageEmbeddings> {
        let (config, side) = (&self.config, self.config.shape.patch_size as i32);
        check_blocks(input.view, block(config, input.view))?;
        let rows = match config.rows {
            true => input.rows(COLOURS * side * side)?,
            false => input.cut(side)?,
        };
        let resampling = match config.projector {
            SiglipProjector::Network { .. } => Resampling::LinearAntialiased,
            _ => Resampling::Linear,
        };
        let positions = resampling
            .apply(&self.positions, input.view.patches)?
            .astype(self.dtype)?;
        let rotation = config.theta.map(|theta| {
            let places = row_by_row(input.view.patches);
            let angles = angles(&places, config.shape.head_dim() / 2, theta, false);
            PatchRotation::new(&angles, places.len(), 1)
        });
        let x = self
            .patch_embedding
            .forward(&rows.astype(self.dtype)?)?
            .add(&positions)?;
        let x = self.stack.forward(x, rotation.as_ref(), hook)?;
        let states = self
            .post_layernorm
            .as_ref()
            .map_or(Ok(x.clone()), |norm| norm.forward(&x))?;
        let features = self.projector.forward(&states, input.view.patches, &config.projector)?;
        Ok(ImageEmbeddings::of(features))
    }
}

/// Patches along a side of what becomes one token.
fn block(config: &SiglipConfig, view: &View) -> u32 {
    match config.projector {
        SiglipProjector::Pooled { tokens } => (view.patches.0 / tokens).max(1),
        SiglipProjector::Joined { merge }
        | SiglipProjector::Network { merge, .. }
        | SiglipProjector::NormedNetwork { merge } => merge,
    }
}

impl Projector {
    fn load(config: &SiglipConfig, outputs: i32, dtype: Dtype, weights: &mut Weights<'_>) -> error::Result<Self> {
        const PATH: &str = "multi_modal_projector";
        const NETWORK: [&str; 2] = ["linear_1", "linear_2"];
        let hidden = config.shape.hidden_size as i32;
        let block = |merge: u32| hidden * (merge * merge) as i32;
        match config.projector {
            SiglipProjector::Pooled { .. } => {
                // Stored as the difference from 1, as all of Gemma's norms.
                let factors = weights.take(&format!("{PATH}.mm_soft_emb_norm.weight"), &[hidden])?;
                let factors = factors.add(&Tensor::scalar(1.0, factors.dtype())?)?;
                let projection = weights.take(&format!("{PATH}.mm_input_projection_weight"), &[hidden, outputs])?;
                let norm = RmsNorm::new(factors, config.shape.eps);
                weights.materialize(norm.tensors().into_iter().chain([&projection]))?;
                Ok(Self::Pooled { norm, projection })
            }
            SiglipProjector::Joined { merge } => {
                let projection = Linear::load(weights, "connector.modality_projection.proj", block(merge), outputs)?;
                Ok(Self::Joined(projection))
            }
            SiglipProjector::Network {
                merge,
                width,
                normed,
                activation,
            } => {
                let norm = || LayerNorm::load(weights, &format!("{PATH}.layer_norm"), block(merge), TORCH_EPS);
                let norm = normed.then(norm).transpose()?;
                let shape = (block(merge), width as i32, outputs);
                let (path, names) = network_names(weights);
                let network = load_mlp(path, None, names, shape, (activation, dtype), weights)?;
                Ok(Self::Network { norm, network })
            }
            SiglipProjector::NormedNetwork { merge } => {
                let path = first_with(weights, &["vision_tower.projector", "mlp_AR"], "pre_norm.weight");
                let shape = (block(merge), block(merge), outputs);
                Ok(Self::NormedNetwork {
                    norm: LayerNorm::load(weights, &format!("{path}.pre_norm"), hidden, TORCH_EPS)?,
                    network: load_mlp(&path, None, NETWORK, shape, (EncoderActivation::Gelu, dtype), weights)?,
                })
            }
        }
    }

    fn forward(&self, states: &Tensor, grid: (u32, u32), config: &SiglipProjector) -> Result<Tensor> {
        match (self, *config) {
            (Self::Pooled { norm, projection }, SiglipProjector::Pooled { tokens }) => {
                let (tokens, hidden) = (tokens as i32, states.dim(-1));
                let (down, across) = (grid.0 as i32 / tokens, grid.1 as i32 / tokens);
                let squares = states.reshape(&[tokens, down, tokens, across, hidden])?;
                let share = Tensor::scalar(1.0 / (down * across) as f32, states.dtype())?;
                let means = squares.sum(3, false)?.sum(1, false)?.mul(&share)?;
                norm.forward(&means.reshape(&[tokens * tokens, hidden])?)?
                    .matmul(projection)
            }
            (Self::Joined(projection), SiglipProjector::Joined { merge }) => {
                projection.forward(&join_blocks(states, grid, merge)?)
            }
            (Self::Network { norm, network }, SiglipProjector::Network { merge, .. }) => {
                let blocks = join_blocks(states, grid, merge)?;
                let normed = norm.as_ref().map(|norm| norm.forward(&blocks)).transpose()?;
                network.forward(normed.as_ref().unwrap_or(&blocks))
            }
            (Self::NormedNetwork { norm, network }, SiglipProjector::NormedNetwork { merge }) => {
                network.forward(&join_blocks(&norm.forward(states)?, grid, merge)?)
            }
            _ => unreachable!("it was loaded by this description"),
        }
    }
}
