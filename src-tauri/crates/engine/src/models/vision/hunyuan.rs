//! HunyuanOCR's vision encoder. References: the model's own code as vLLM (`hunyuan_vision.py`) and mlx-vlm have it, and
//! transformers' `modeling_hunyuan_vl.py`, which stretches positions by another tenth of a cell. Nobody has compared
//! them on the published weights.

use checkpoint::config::encoder::EncoderActivation;
use checkpoint::vision::HunyuanVisionConfig;
use checkpoint::View;
use mlx::ops::concatenate;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::Dtype;

use super::patches::{load_block_linear, load_patch_linear, PatchOrder, COLOURS};
use super::resample::Resampling;
use super::stack::{check_blocks, first_with, join_blocks, load_table_after, BlockNames, Stack};
use super::{ImageEmbeddings, LayerHook, ViewInput};
use crate::error::Result;
use crate::layers::{Linear, Pointwise, RmsNorm};
use crate::weights::Weights;

/// Layers as transformers 5 writes them.
const RENAMED: BlockNames = BlockNames {
    output: "self_attn.o_proj",
    ..BlockNames::CLIP
};

/// The same as the original and conversions name them.
const BLOCK: BlockNames = BlockNames {
    norms: ["input_layernorm", "post_attention_layernorm"],
    network: ["mlp.dense_h_to_4h", "mlp.dense_4h_to_h"],
    ..RENAMED
};

/// A vision encoder with its merger.
#[derive(Parameters)]
pub struct HunyuanTower {
    #[parameters(skip)]
    config: HunyuanVisionConfig,
    dtype: Dtype,
    patch_embedding: Linear,
    /// `[side, side, hidden]`.
    positions: Tensor,
    stack: Stack,
    merger: Merger,
}

/// The part that makes one token of the patches of a block, and tokens around and between.
#[derive(Parameters)]
struct Merger {
    before_rms: RmsNorm,
    /// The first convolution, a product with the patches of a block.
    first: Linear,
    activation: Pointwise,
    /// The second, of single places.
    second: Linear,
    mlp: Linear,
    /// After each row `[1, 1, 4 · hidden]`.
    newline: Tensor,
    /// Before and after all `[1, width of the language part]`.
    ends: [Tensor; 2],
    after_rms: RmsNorm,
}

impl HunyuanTower {
    pub(super) fn load(config: &HunyuanVisionConfig, outputs: u32, weights: &mut Weights<'_>) -> Result<Self> {
        const PATH: &str = "vision_tower";
        let shape = &config.shape;
        let (hidden, side) = (shape.hidden_size as i32, shape.patch_size as i32);
        let layers = format!("{PATH}.layers");
        let original = weights.has(&format!("{layers}.0.input_layernorm.weight"));
        let block = if original { &BLOCK } else { &RENAMED };
        let dtype = weights.dtype(&format!("{layers}.0.{}.weight", block.norms[0]));
        let [conv, table] = ["patch", "position"].map(|of| format!("{PATH}.embeddings.{of}_embedding"));
        let inputs = COLOURS * side * side;
        Ok(Self {
            dtype,
            patch_embedding: load_patch_linear(weights, &conv, inputs, hidden, PatchOrder::ColourByColour)?,
            // The first row is that of a class token that no image has.
            positions: load_table_after(1, &table, config.side, hidden, weights)?,
            stack: Stack::load(&layers, block, shape, dtype, weights)?,
            merger: Merger::load(config, outputs as i32, dtype, weights)?,
            config: *config,
        })
    }

    pub(super) fn encode(&self, input: &ViewInput<'_>, hook: &mut LayerHook<'_>) -> Result<ImageEmbeddings> {
        let (config, side) = (&self.config, self.config.shape.patch_size as i32);
        check_blocks(input.view, config.merge)?;
        let rows = input.rows(COLOURS * side * side)?.astype(self.dtype)?;
        let positions = Resampling::LinearWidened
            .apply(&self.positions, input.view.patches)?
            .astype(self.dtype)?;
        let x = self.patch_embedding.forward(&rows)?.add(&positions)?;
        let x = self.stack.forward(x, None, hook)?;
        Ok(ImageEmbeddings::of(self.merger.forward(
            &x,
            input.view,
            config.merge,
        )?))
    }
}

impl Merger {
    fn load(config: &HunyuanVisionConfig, outputs: i32, dtype: Dtype, weights: &mut Weights<'_>) -> Result<Self> {
        const PLACES: [&str; 2] = ["vision_tower.perceive", "vision_tower.patch_merger"];
        let path = first_with(weights, &PLACES, "before_rms.weight");
        let (hidden, eps, merge) = (config.shape.hidden_size as i32, config.shape.eps, config.merge as i32);
        let convs = match weights.has(&format!("{path}.proj.0.weight")) {
            true => ["proj.0", "proj.2"],
            false => ["proj_conv", "proj_out"],
        };
        let [first, second] = convs.map(|name| format!("{path}.{name}"));
        let mut vector = |name: &str, width: i32| weights.take(&format!("{path}.{name}"), &[width]);
        let newline = vector("image_newline", 4 * hidden)?.reshape(&[1, 1, 4 * hidden])?;
        let ends = [
            vector("image_begin", outputs)?.reshape(&[1, outputs])?,
            vector("image_end", outputs)?.reshape(&[1, outputs])?,
        ];
        weights.materialize(ends.iter().chain([&newline]))?;
        Ok(Self {
            before_rms: RmsNorm::load(weights, &format!("{path}.before_rms"), hidden, eps)?,
            first: load_block_linear(weights, &first, (hidden, 2 * hidden), merge)?,
            activation: Pointwise::new(EncoderActivation::Gelu, dtype)?,
            second: load_block_linear(weights, &second, (2 * hidden, 4 * hidden), 1)?,
            mlp: Linear::load(weights, &format!("{path}.mlp"), 4 * hidden, outputs)?,
            newline,
            ends,
            after_rms: RmsNorm::load(weights, &format!("{path}.after_rms"), outputs, eps)?,
        })
    }

    /// `[patches, hidden]`, row after row, to the features of all tokens.
    fn forward(&self, x: &Tensor, view: &View, merge: u32) -> mlx::Result<Tensor> {
        let blocks = join_blocks(&self.before_rms.forward(x)?, view.patches, merge)?;
        let merged = self.activation.forward(&self.first.forward(&blocks)?)?;
        let merged = self.second.forward(&merged)?;
        let (rows, columns) = ((view.patches.0 / merge) as i32, (view.patches.1 / merge) as i32);
        let width = merged.dim(1);
        let merged = merged.reshape(&[rows, columns, width])?;
        let newlines = concatenate(&vec![&self.newline; rows as usize], 0)?;
        let lines = concatenate(&[&merged, &newlines], 1)?;
        let tokens = self.mlp.forward(&lines.reshape(&[rows * (columns + 1), width])?)?;
        let [begin, end] = &self.ends;
        self.after_rms.forward(&concatenate(&[begin, &tokens, end], 0)?)
    }
}
