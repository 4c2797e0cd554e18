//! SigLIP on the tiles of an image, of which those at its end show it in part, and on the whole (Phi 4 Multimodal).
//! Reference: transformers' `modeling_phi4_multimodal.py`.

use checkpoint::config::encoder::EncoderActivation;
use checkpoint::image_processor::covered_patches;
use checkpoint::vision::{Phi4VisionConfig, PHI4_MERGE};
use checkpoint::ImagePlan;
use media::ViewPixels;
use mlx::ops::{concatenate, join};
use mlx::parameters::Parameters;
use mlx::tensor::{eval, Tensor};
use mlx::Dtype;

use super::attention::PatchMask;
use super::block::Mlp;
use super::llava::ended;
use super::patches::{load_patch_linear, PatchOrder, COLOURS};
use super::stack::{load_mlp, BlockNames, Stack};
use super::{ImageEmbeddings, LayerHook, ViewInput};
use crate::error::{self, Error};
use crate::layers::{Embedding, Linear};
use crate::weights::Weights;

/// The path of the encoder and of what follows it.
const PATH: &str = "vision_tower";

/// The last place on the way along a side, which is 1 long.
const LAST: f32 = 1.0 - 1e-6;

/// A vision encoder with its projector.
#[derive(Parameters)]
pub struct Phi4Tower {
    #[parameters(skip)]
    config: Phi4VisionConfig,
    dtype: Dtype,
    patch_embedding: Linear,
    /// `[patches, hidden]`.
    positions: Tensor,
    stack: Stack,
    /// The mark after each row of a grid, `[1, 1, hidden]`.
    row_end: Tensor,
    /// The mark between the grid of all tiles and that of the whole, `[1, hidden]`.
    between: Tensor,
    network: Mlp,
}

impl Phi4Tower {
    pub(super) fn load(config: &Phi4VisionConfig, outputs: u32, weights: &mut Weights<'_>) -> error::Result<Self> {
        let (shape, outputs) = (&config.shape, outputs as i32);
        let (hidden, patch) = (shape.hidden_size as i32, shape.patch_size as i32);
        let patches = (config.side * config.side) as i32;
        let at = |name: &str| format!("{PATH}.{name}");
        let (embeddings, layers) = (at("img_processor.embeddings"), at("img_processor.encoder.layers"));
        let dtype = weights.dtype(&format!("{layers}.0.layer_norm1.weight"));
        let table = format!("{embeddings}.position_embedding");
        let positions = Embedding::load(weights, &table, patches, hidden)?.into_numbers()?;
        let row_end = weights
            .take(&at("sub_GN"), &[1, 1, 1, hidden])?
            .reshape(&[1, 1, hidden])?;
        let between = weights.take(&at("glb_GN"), &[1, 1, hidden])?.reshape(&[1, hidden])?;
        weights.materialize([&positions, &row_end, &between])?;
        let (embedding, numbers) = (format!("{embeddings}.patch_embedding"), COLOURS * patch * patch);
        let (sizes, gelu) = ((hidden, outputs, outputs), (EncoderActivation::Gelu, dtype));
        Ok(Self {
            dtype,
            patch_embedding: load_patch_linear(weights, &embedding, numbers, hidden, PatchOrder::PixelByPixel)?,
            positions,
            stack: Stack::load(&layers, &BlockNames::CLIP, shape, dtype, weights)?,
            row_end,
            between,
            network: load_mlp(&at("img_projection"), None, ["0", "2"], sizes, gelu, weights)?,
            config: *config,
        })
    }

    /// Encodes the views of one image, the whole last: the features of the grid that all tiles make, as far as they show
    /// the image, then those of the whole, with a mark after each row and one between both.
    pub(super) fn encode_tiles(
        &self,
        views: &[ViewPixels],
        plan: &ImagePlan,
        hook: &mut LayerHook<'_>,
    ) -> error::Result<ImageEmbeddings> {
        let side = self.config.side;
        let tiles = plan
            .tiles
            .filter(|(rows, columns)| rows * columns > 0 && views.len() == (rows * columns + 1) as usize);
        let (Some((rows, columns)), Some(view)) = (tiles, plan.views.first()) else {
            return Err(Error::BadRequest("the tiles of an image are no grid".into()));
        };
        let covered =
            |pixels: u32, tiles: u32| covered_patches(pixels, tiles, view.width, self.config.shape.patch_size);
        let covered = (covered(plan.resized.1, rows), covered(plan.resized.0, columns));
        let mut encoded = Vec::with_capacity(views.len());
        for (index, (pixels, view)) in (0..).zip(views.iter().zip(&plan.views)) {
            let own = |covered: u32, tile: u32| covered.saturating_sub(tile * side).min(side);
            let shown = match index < rows * columns {
                true => (own(covered.0, index / columns), own(covered.1, index % columns)),
                false => (side, side),
            };
            let features = self.pooled(&ViewInput { pixels, view }, shown, hook)?;
            eval([&features])?;
            encoded.push(features);
        }
        let whole = encoded.pop();
        let rows = encoded.chunks(columns as usize).map(|row| join(row, 1));
        let grid = join(&rows.collect::<mlx::Result<Vec<_>>>()?, 0)?;
        let mut parts = vec![ended(&grid, &self.row_end)?, self.between.clone()];
        if let Some(whole) = whole {
            parts.push(ended(&whole, &self.row_end)?);
        }
        let features = concatenate(&parts.iter().collect::<Vec<_>>(), 0)?;
        Ok(ImageEmbeddings::of(self.network.forward(&features)?))
    }

    /// The means of the states of blocks of patches, as a grid `[rows, columns, hidden]` of those that show something:
    /// so many rows and columns of patches do. Patches beside them in the same block are a part of its mean; nothing
    /// looks at them.
    fn pooled(
        &self,
        input: &ViewInput<'_>,
        (rows, columns): (u32, u32),
        hook: &mut LayerHook<'_>,
    ) -> error::Result<Tensor> {
        let (side, merge) = (self.config.side, PHI4_MERGE);
        if input.view.patches != (side, side) || rows == 0 || columns == 0 {
            return Err(Error::BadRequest(format!(
                "this model's tower takes no {rows} by {columns} of {:?} patches",
                input.view.patches
            )));
        }
        let (down, across) = (rows.next_multiple_of(merge), columns.next_multiple_of(merge));
        let grid = (0..down).flat_map(|row| (0..across).map(move |column| (row, column)));
        let (shown, beside): (Vec<_>, Vec<_>) = grid.partition(|(row, column)| *row < rows && *column < columns);
        let seen = shown.len() as i32;
        let all = || shown.iter().chain(&beside);
        let numbers = |numbers: Vec<u32>| {
            let numbers: Vec<i32> = numbers.into_iter().map(|number| number as i32).collect();
            Tensor::from_i32(&numbers, &[numbers.len() as i32])
        };
        let patches = numbers(all().map(|(row, column)| row * side + column).collect());
        let place = |(row, column): &(u32, u32)| match *row < rows && *column < columns {
            true => near(*row, rows, side) * side + near(*column, columns, side),
            false => 0,
        };
        let places = numbers(all().map(place).collect());
        let mut order = vec![0; shown.len() + beside.len()];
        for (index, (row, column)) in (0..).zip(all()) {
            order[(row * across + column) as usize] = index;
        }
        let rows = input.cut(self.config.shape.patch_size as i32)?.astype(self.dtype)?;
        let x = self.patch_embedding.forward(&rows.take(&patches, 0)?)?;
        let x = x.add(&self.positions.take(&places, 0)?)?;
        let mask = PatchMask::First(seen);
        let states = self.stack.forward_masked(x, None, &mask, |_, _| Ok(()), hook)?;
        let (width, side) = (states.dim(1), merge as i32);
        let (down, across) = (down as i32 / side, across as i32 / side);
        let blocks = states
            .take(&numbers(order), 0)?
            .reshape(&[down, side, across, side, width])?
            .transpose(&[0, 2, 1, 3, 4])?
            .reshape(&[down, across, side * side, width])?;
        let share = Tensor::scalar(1.0 / (side * side) as f32, self.dtype)?;
        Ok(blocks.sum(2, false)?.mul(&share)?)
    }
}

/// The place in a table of so many for the patch of this index along a side that so many show.
fn near(index: u32, shown: u32, side: u32) -> u32 {
    let way = (index as f32 * (1.0 / shown as f32)).min(LAST);
    (way * side as f32) as u32
}
