//! MoonViT, and what joins it to language parts. References: `modeling_kimi_vl.py` beside the weights of Kimi-VL, and
//! transformers' `modeling_kimi_k25.py`.

use checkpoint::config::encoder::EncoderActivation;
use checkpoint::vision::MoonVitConfig;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::Dtype;

use super::block::Mlp;
use super::patches::{load_patch_linear, PatchOrder, COLOURS};
use super::resample::Resampling;
use super::rope::PatchRotation;
use super::stack::{check_blocks, first_with, join_blocks, load_mlp, row_by_row, BlockNames, Stack, TORCH_EPS};
use super::{ImageEmbeddings, LayerHook, ViewInput};
use crate::error::Result;
use crate::layers::{LayerNorm, Linear};
use crate::weights::Weights;

/// The paths at which originals and conversions keep the layers.
const PLACES: [&str; 2] = ["vision_tower.encoder", "vision_tower"];

/// The projector of Kimi K2.5 and its projections, and Kimi-VL's.
const PROJECTORS: [(&str, [&str; 2]); 2] = [
    ("mm_projector", ["proj.0", "proj.2"]),
    ("multi_modal_projector", ["linear_1", "linear_2"]),
];

/// The base of the rotation's periods.
const THETA: f32 = 10_000.0;

/// Layers of the original files.
const ORIGINAL: BlockNames = BlockNames {
    norms: ["norm0", "norm1"],
    qkv: &["wqkv"],
    output: "wo",
    network: ["mlp.fc0", "mlp.fc1"],
    ..BlockNames::CLIP
};

/// Layers of conversions.
const CONVERTED: BlockNames = BlockNames {
    qkv: &["attn.wqkv"],
    output: "attn.wo",
    ..ORIGINAL
};

/// A vision encoder with its projector.
#[derive(Parameters)]
pub struct MoonVit {
    #[parameters(skip)]
    config: MoonVitConfig,
    dtype: Dtype,
    patch_proj: Linear,
    /// `[rows, columns, hidden]`.
    positions: Tensor,
    stack: Stack,
    final_layernorm: LayerNorm,
    pre_norm: LayerNorm,
    projector: Mlp,
}

impl MoonVit {
    pub(super) fn load(config: &MoonVitConfig, outputs: u32, weights: &mut Weights<'_>) -> Result<Self> {
        let shape = &config.shape;
        let (hidden, side) = (shape.hidden_size as i32, shape.patch_size as i32);
        let path = first_with(weights, &PLACES, "final_layernorm.weight");
        let embed = "vision_tower.patch_embed";
        let dtype = weights.dtype(&format!("{path}.final_layernorm.weight"));
        let (rows, columns) = config.table;
        let table = [rows as i32, columns as i32, hidden];
        let converted = weights.has(&format!("{path}.blocks.0.attn.wqkv.weight"));
        let names = if converted { &CONVERTED } else { &ORIGINAL };
        let order = PatchOrder::PixelByPixel;
        let [first, other] = PROJECTORS;
        let newer = weights.has(&format!("{}.pre_norm.weight", first.0));
        let (projector, projections) = if newer { first } else { other };
        let block = hidden * (config.merge * config.merge) as i32;
        let sizes = (block, block, outputs as i32);
        let activation = (EncoderActivation::Gelu, dtype);
        Ok(Self {
            dtype,
            patch_proj: load_patch_linear(weights, &format!("{embed}.proj"), COLOURS * side * side, hidden, order)?,
            positions: weights.take(&format!("{embed}.pos_emb.weight"), &table)?,
            stack: Stack::load(&format!("{path}.blocks"), names, shape, dtype, weights)?,
            final_layernorm: LayerNorm::load(weights, &format!("{path}.final_layernorm"), hidden, shape.eps)?,
            pre_norm: LayerNorm::load(weights, &format!("{projector}.pre_norm"), hidden, TORCH_EPS)?,
            projector: load_mlp(projector, None, projections, sizes, activation, weights)?,
            config: *config,
        })
    }

    pub(super) fn encode(&self, input: &ViewInput<'_>, hook: &mut LayerHook<'_>) -> Result<ImageEmbeddings> {
        let (grid, merge) = (input.view.patches, self.config.merge);
        check_blocks(input.view, merge)?;
        let rows = input.cut(self.config.shape.patch_size as i32)?.astype(self.dtype)?;
        let positions = Resampling::Cubic.apply(&self.positions, grid)?.astype(self.dtype)?;
        let x = self.patch_proj.forward(&rows)?.add(&positions)?;
        let states = self.stack.forward(x, Some(&self.rotation(grid)), hook)?;
        let normed = self.pre_norm.forward(&self.final_layernorm.forward(&states)?)?;
        let features = self.projector.forward(&join_blocks(&normed, grid, merge)?)?;
        Ok(ImageEmbeddings::of(features))
    }

    /// Neighbors turn by the column and by the row in turn.
    fn rotation(&self, grid: (u32, u32)) -> PatchRotation {
        let width = self.config.shape.head_dim();
        let speeds: Vec<f32> = (0..width / 4)
            .map(|pair| THETA.powf(-4.0 * pair as f32 / width as f32))
            .collect();
        let places = row_by_row(grid);
        let of = |(row, column): &(u32, u32)| {
            let (row, column) = (*row as f32, *column as f32);
            let both = speeds.iter().flat_map(move |speed| [column * speed, row * speed]);
            both.collect::<Vec<_>>()
        };
        let angles: Vec<f32> = places.iter().flat_map(of).collect();
        // Each two numbers are a part of their own.
        PatchRotation::new(&angles, places.len(), width as i32 / 2)
    }
}
