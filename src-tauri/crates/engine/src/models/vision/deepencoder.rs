//! The encoder of DeepSeek-OCR: SAM, whose grid goes through CLIP in place of patches; both side by side are projected.
//! Reference: `deepencoder.py` and `modeling_deepseekocr.py` beside the weights.

use checkpoint::vision::DeepEncoderConfig;
use checkpoint::ImagePlan;
use media::ViewPixels;
use mlx::ops::concatenate;
use mlx::parameters::Parameters;
use mlx::tensor::{eval, Tensor};
use mlx::Dtype;

use super::llava::{ended, join_tiles};
use super::resample::Resampling;
use super::sam::Sam;
use super::stack::{BlockNames, Stack};
use super::{ImageEmbeddings, LayerHook, ViewInput};
use crate::error::{self, Error};
use crate::layers::{Embedding, LayerNorm, Linear};
use crate::weights::Weights;

/// The path of CLIP.
const CLIP: &str = "vision_model";

const BLOCK: BlockNames = BlockNames {
    qkv: &["self_attn.qkv_proj"],
    ..BlockNames::CLIP
};

/// A vision encoder with its projector.
#[derive(Parameters)]
pub struct DeepEncoder {
    #[parameters(skip)]
    config: DeepEncoderConfig,
    dtype: Dtype,
    sam: Sam,
    /// The class token with its position, `[1, hidden]`.
    class: Tensor,
    /// `[side, side, hidden]`.
    positions: Tensor,
    norm: LayerNorm,
    stack: Stack,
    projector: Linear,
    /// The mark after each row, `[1, 1, width of the language part]`.
    row_end: Tensor,
    /// The mark after an image, `[1, width of the language part]`.
    end: Tensor,
}

impl DeepEncoder {
    pub(super) fn load(config: &DeepEncoderConfig, outputs: u32, weights: &mut Weights<'_>) -> error::Result<Self> {
        let shape = &config.clip;
        let (hidden, side, outputs) = (shape.hidden_size as i32, config.clip_side as i32, outputs as i32);
        let (embeddings, layers) = (format!("{CLIP}.embeddings"), format!("{CLIP}.transformer.layers"));
        let dtype = weights.dtype(&format!("{layers}.0.layer_norm1.weight"));
        let table = format!("{embeddings}.position_embedding");
        let table = Embedding::load(weights, &table, 1 + side * side, hidden)?.into_numbers()?;
        let class = weights.take(&format!("{embeddings}.class_embedding"), &[hidden])?;
        let class = class.reshape(&[1, hidden])?.add(&table.slice(0, 0, 1)?)?;
        let positions = table
            .slice(0, 1, 1 + side * side)?
            .contiguous()?
            .reshape(&[side, side, hidden])?;
        // The name is misspelled in the original files.
        let names = ["view_separator", "view_seperator"];
        let name = names.into_iter().find(|name| weights.has(name)).unwrap_or(names[0]);
        let end = weights.take(name, &[outputs])?.reshape(&[1, outputs])?;
        let row_end = weights.take("image_newline", &[outputs])?.reshape(&[1, 1, outputs])?;
        weights.materialize([&class, &positions, &end, &row_end])?;
        let both = hidden + config.sam.outputs as i32;
        Ok(Self {
            dtype,
            sam: Sam::load(&config.sam, weights)?,
            class,
            positions,
            norm: LayerNorm::load(weights, &format!("{CLIP}.pre_layrnorm"), hidden, shape.eps)?,
            stack: Stack::load(&layers, &BLOCK, shape, dtype, weights)?,
            projector: Linear::load(weights, "projector.layers", both, outputs)?,
            row_end,
            end,
            config: config.clone(),
        })
    }

    /// Features of one view, row by row.
    fn encode(&self, input: &ViewInput<'_>, hook: &mut LayerHook<'_>) -> error::Result<Tensor> {
        let (rows, columns) = input.view.patches;
        if rows != columns || !rows.is_multiple_of(4) {
            return Err(Error::BadRequest(format!(
                "this model's tower takes no grid of {rows} by {columns} patches"
            )));
        }
        let patches = input.cut(self.config.sam.patch_size as i32)?;
        let grid = self.sam.encode(&patches, rows, hook)?;
        let places = (grid.rows as u32, grid.columns as u32);
        let positions = Resampling::CubicAntialiased.apply(&self.positions, places)?;
        let seen = grid.states.astype(self.dtype)?;
        let x = concatenate(&[&self.class, &seen.add(&positions.astype(self.dtype)?)?], 0)?;
        let x = self.stack.forward(self.norm.forward(&x)?, None, hook)?;
        let both = concatenate(&[&x.slice(0, 1, x.dim(0))?, &seen], 1)?;
        Ok(self.projector.forward(&both)?)
    }

    /// Encodes the views of one image, the whole image last: the grid of its tiles, then that of the whole, row after
    /// row with a mark behind each, and a mark at the end.
    pub(super) fn encode_rows(
        &self,
        views: &[ViewPixels],
        plan: &ImagePlan,
        hook: &mut LayerHook<'_>,
    ) -> error::Result<ImageEmbeddings> {
        let mut encoded = Vec::with_capacity(views.len());
        for (pixels, view) in views.iter().zip(&plan.views) {
            let features = self.encode(&ViewInput { pixels, view }, hook)?;
            eval([&features])?;
            encoded.push((features, view.tokens.0 as i32));
        }
        let Some((whole, side)) = encoded.pop() else {
            return Err(Error::BadRequest("an image has no view".into()));
        };
        let mut parts = Vec::new();
        if let Some((_, side)) = encoded.first() {
            let side = *side;
            let tiles: Vec<Tensor> = encoded.into_iter().map(|(features, _)| features).collect();
            let fits = plan
                .tiles
                .filter(|(rows, columns)| tiles.len() == (rows * columns) as usize);
            let Some((_, columns)) = fits else {
                return Err(Error::BadRequest("the tiles of an image are no grid".into()));
            };
            parts.push(ended(&join_tiles(&tiles, columns as usize, side)?, &self.row_end)?);
        }
        parts.push(ended(&join_tiles(&[whole], 1, side)?, &self.row_end)?);
        parts.push(self.end.clone());
        Ok(ImageEmbeddings::of(concatenate(&parts.iter().collect::<Vec<_>>(), 0)?))
    }
}
