//! Pixtral's vision encoder, and what joins it to language parts. References: transformers' `modeling_pixtral.py` and
//! `modeling_mistral3.py`.

use checkpoint::vision::{PatchMerger, PixtralConfig};
use checkpoint::View;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::Dtype;

use super::block::Mlp;
use super::patches::{load_patch_linear, PatchOrder, COLOURS};
use super::rope::PatchRotation;
use super::stack::{check_blocks, first_with, load_mlp, row_by_row, BlockNames, Stack};
use super::{ImageEmbeddings, LayerHook, ViewInput};
use crate::error::Result;
use crate::layers::{Linear, RmsNorm};
use crate::weights::Weights;

/// The paths at which conversions and originals keep the vision encoder.
const PLACES: [&str; 2] = ["vision_tower.vision_model", "vision_tower"];

const PROJECTOR: &str = "multi_modal_projector";

const BLOCK: BlockNames = BlockNames {
    rms: true,
    norms: ["attention_norm", "ffn_norm"],
    qkv: &["attention.q_proj", "attention.k_proj", "attention.v_proj"],
    output: "attention.o_proj",
    gate: Some("feed_forward.gate_proj"),
    network: ["feed_forward.up_proj", "feed_forward.down_proj"],
    ..BlockNames::CLIP
};

/// A vision encoder with its projector.
#[derive(Parameters)]
pub struct Pixtral {
    #[parameters(skip)]
    config: PixtralConfig,
    dtype: Dtype,
    patch_conv: Linear,
    ln_pre: RmsNorm,
    stack: Stack,
    merger: Option<Merger>,
    projector: Mlp,
}

#[derive(Parameters)]
struct Merger {
    merge: u32,
    norm: RmsNorm,
    merging_layer: Linear,
}

impl Pixtral {
    pub(super) fn load(config: &PixtralConfig, outputs: u32, weights: &mut Weights<'_>) -> Result<Self> {
        let shape = &config.shape;
        let (hidden, outputs, side) = (shape.hidden_size as i32, outputs as i32, shape.patch_size as i32);
        let path = first_with(weights, &PLACES, "ln_pre.weight");
        let dtype = weights.dtype(&format!("{path}.ln_pre.weight"));
        let conv = format!("{path}.patch_conv");
        let merger = config
            .merger
            .map(|merger| Merger::load(&merger, hidden, weights))
            .transpose()?;
        let (sizes, names) = ((hidden, outputs, outputs), ["linear_1", "linear_2"]);
        Ok(Self {
            dtype,
            patch_conv: load_patch_linear(weights, &conv, COLOURS * side * side, hidden, PatchOrder::PixelByPixel)?,
            ln_pre: RmsNorm::load(weights, &format!("{path}.ln_pre"), hidden, shape.eps)?,
            stack: Stack::load(&format!("{path}.transformer.layers"), &BLOCK, shape, dtype, weights)?,
            merger,
            projector: load_mlp(PROJECTOR, None, names, sizes, (config.activation, dtype), weights)?,
            config: *config,
        })
    }

    pub(super) fn encode(&self, input: &ViewInput<'_>, hook: &mut LayerHook<'_>) -> Result<ImageEmbeddings> {
        let side = self.config.shape.patch_size as i32;
        let rows = input.cut(side)?.astype(self.dtype)?;
        let x = self.ln_pre.forward(&self.patch_conv.forward(&rows)?)?;
        let rotation = self.rotation(input.view.patches);
        let states = self.stack.forward(x, Some(&rotation), hook)?;
        let states = match &self.merger {
            Some(merger) => merger.forward(&states, input.view)?,
            None => states,
        };
        Ok(ImageEmbeddings::of(self.projector.forward(&states)?))
    }

    /// Rows turn by every second period from the first, columns by the others.
    fn rotation(&self, grid: (u32, u32)) -> PatchRotation {
        let (width, theta) = (self.config.shape.head_dim(), self.config.theta);
        let speeds = (0..width / 2).map(|pair| theta.powf(-2.0 * pair as f32 / width as f32));
        let (of_rows, of_columns): (Vec<_>, Vec<_>) = speeds.enumerate().partition(|(pair, _)| pair % 2 == 0);
        let places = row_by_row(grid);
        let angles = places.iter().flat_map(|(row, column)| {
            let by_row = of_rows.iter().map(move |(_, speed)| *row as f32 * speed);
            by_row.chain(of_columns.iter().map(move |(_, speed)| *column as f32 * speed))
        });
        PatchRotation::new(&angles.collect::<Vec<_>>(), places.len(), 1)
    }
}

impl Merger {
    fn load(config: &PatchMerger, hidden: i32, weights: &mut Weights<'_>) -> Result<Self> {
        let (norm, path) = (
            format!("{PROJECTOR}.norm"),
            format!("{PROJECTOR}.patch_merger.merging_layer"),
        );
        Ok(Self {
            merge: config.merge,
            norm: RmsNorm::load(weights, &norm, hidden, config.eps)?,
            merging_layer: Linear::load(weights, &path, hidden * (config.merge * config.merge) as i32, hidden)?,
        })
    }

    /// A row for each block of patches, whose numbers lie channel by channel.
    fn forward(&self, states: &Tensor, view: &View) -> Result<Tensor> {
        check_blocks(view, self.merge)?;
        let (merge, hidden) = (self.merge as i32, states.dim(-1));
        let (down, across) = (view.patches.0 as i32 / merge, view.patches.1 as i32 / merge);
        let normed = self.norm.forward(states)?;
        let blocks = normed.reshape(&[down, merge, across, merge, hidden])?;
        let blocks = blocks.transpose(&[0, 2, 4, 1, 3])?;
        let joined = blocks.reshape(&[down * across, hidden * merge * merge])?;
        Ok(self.merging_layer.forward(&joined)?)
    }
}
