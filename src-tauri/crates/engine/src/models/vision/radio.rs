//! RADIO, and what joins it to Nemotron-H (Nemotron Nano Omni). Reference: mlx-vlm's `nemotron_h_nano_omni/vision.py`.

use checkpoint::config::encoder::EncoderActivation;
use checkpoint::vision::RadioConfig;
use mlx::ops::concatenate;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;

use super::block::Mlp;
use super::patches::COLOURS;
use super::resample::Resampling;
use super::stack::{check_blocks, first_with, join_blocks, load_mlp, BlockNames, Stack, TORCH_EPS};
use super::{ImageEmbeddings, LayerHook, ViewInput};
use crate::error::{Error, Result};
use crate::layers::{LayerNorm, Linear, RmsNorm};
use crate::weights::Weights;

/// The path of the encoder.
const PATH: &str = "vision_model.radio_model.model";

/// The paths of the norm after the encoder, which only some models have.
const NORMS: [&str; 2] = ["vision_final_layernorm", "vision_projector.vision_final_layernorm"];

/// The paths of the projector in conversions and in original files.
const PROJECTORS: [&str; 2] = ["mlp1.layers", "mlp1"];

/// The most class tokens and registers.
const MOST_TOKENS: i32 = 256;

/// Layers by timm's names.
const BLOCK: BlockNames = BlockNames {
    norms: ["norm1", "norm2"],
    qkv: &["attn.qkv"],
    output: "attn.proj",
    ..BlockNames::CLIP
};

/// A vision encoder with its projector.
#[derive(Parameters)]
pub struct Radio {
    #[parameters(skip)]
    config: RadioConfig,
    patch_embedding: Linear,
    /// Class tokens and registers, `[tokens, hidden]`.
    tokens: Tensor,
    /// `[side, side, hidden]`.
    positions: Tensor,
    stack: Stack,
    norm: Option<LayerNorm>,
    block_norm: RmsNorm,
    projector: Mlp,
}

impl Radio {
    pub(super) fn load(config: &RadioConfig, outputs: u32, weights: &mut Weights<'_>) -> Result<Self> {
        let shape = &config.shape;
        let (hidden, outputs) = (shape.hidden_size as i32, outputs as i32);
        let (side, pixels) = (config.side as i32, shape.patch_size as i32);
        let (patches, token) = (format!("{PATH}.patch_generator"), "cls_token.token");
        let name = format!("{patches}.{token}");
        let count = match weights.shape(&name) {
            Some(&[count, width]) if width == hidden && (1..=MOST_TOKENS).contains(&count) => count,
            Some(found) => {
                return Err(Error::WrongShape {
                    name,
                    expected: format!("some tokens of {hidden} numbers"),
                    found: found.to_vec(),
                })
            }
            None => return Err(Error::MissingTensor(name)),
        };
        let tokens = weights.take(&name, &[count, hidden])?;
        let table = weights.take(&format!("{patches}.pos_embed"), &[1, side * side, hidden])?;
        let positions = table.reshape(&[side, side, hidden])?;
        weights.materialize([&tokens, &positions])?;
        let dtype = tokens.dtype();
        let joined = hidden * (config.merge * config.merge) as i32;
        let projector = first_with(weights, &PROJECTORS, "0.weight");
        let (sizes, squared) = (
            (joined, config.width as i32, outputs),
            (EncoderActivation::SquaredRelu, dtype),
        );
        let norm = first_with(weights, &NORMS, "weight");
        let normed = weights.has(&format!("{norm}.weight"));
        Ok(Self {
            patch_embedding: Linear::load(
                weights,
                &format!("{patches}.embedder"),
                COLOURS * pixels * pixels,
                hidden,
            )?,
            stack: Stack::load(&format!("{PATH}.blocks"), &BLOCK, shape, dtype, weights)?,
            norm: normed
                .then(|| LayerNorm::load(weights, &norm, hidden, shape.eps))
                .transpose()?,
            block_norm: RmsNorm::load(weights, &format!("{projector}.0"), joined, TORCH_EPS)?,
            projector: load_mlp(&projector, None, ["1", "3"], sizes, squared, weights)?,
            tokens,
            positions,
            config: *config,
        })
    }

    pub(super) fn encode(&self, input: &ViewInput<'_>, hook: &mut LayerHook<'_>) -> Result<ImageEmbeddings> {
        let (grid, dtype) = (input.view.patches, self.tokens.dtype());
        check_blocks(input.view, self.config.merge)?;
        let side = self.config.shape.patch_size as i32;
        let rows = input.rows(COLOURS * side * side)?.astype(dtype)?;
        let positions = self.places(grid)?.astype(dtype)?;
        let patches = self.patch_embedding.forward(&rows)?.add(&positions)?;
        let x = concatenate(&[&self.tokens, &patches], 0)?;
        let x = self.stack.forward(x, None, hook)?;
        let x = x.slice(0, self.tokens.dim(0), x.dim(0))?;
        let x = match &self.norm {
            Some(norm) => norm.forward(&x)?,
            None => x,
        };
        let blocks = self.block_norm.forward(&join_blocks(&x, grid, self.config.merge)?)?;
        Ok(ImageEmbeddings::of(self.projector.forward(&blocks)?))
    }

    /// The learned positions of a grid `[rows · columns, hidden]`: the corner of the table, brought to the square of its
    /// longer side.
    fn places(&self, (rows, columns): (u32, u32)) -> mlx::Result<Tensor> {
        let (square, hidden) = (rows.max(columns), self.positions.dim(2));
        let table = Resampling::Linear.apply(&self.positions, (square, square))?;
        let (side, down, across) = (square as i32, rows as i32, columns as i32);
        table
            .reshape(&[side, side, hidden])?
            .slice(0, 0, down)?
            .slice(1, 0, across)?
            .reshape(&[down * across, hidden])
    }
}
