//! The towers of Molmo and Jina VLM: states at two depths, which attention from the mean of a block of patches pools.
//! References: mlx-vlm's `molmo/vision.py`, `molmo2/vision.py` and `jina_vlm/jina_vlm.py`.

use checkpoint::vision::{MolmoVisionConfig, TileBlocks, MOLMO_MARGIN, MOLMO_MERGE};
use checkpoint::ImagePlan;
use media::ViewPixels;
use mlx::ops::{concatenate, Mask};
use mlx::parameters::Parameters;
use mlx::tensor::{eval, Tensor};
use mlx::{Dtype, Result};

use super::attention::PatchMask;
use super::llava::{widened, GatedNetwork};
use super::stack::{BlockNames, Stack};
use super::{ImageEmbeddings, LayerHook, ViewInput};
use crate::error::{self, Error};
use crate::layers::{LayerNorm, Linear};
use crate::weights::Weights;

/// The number of a pixel without any color in Jina VLM.
const BLANK: f32 = -1.0;

/// The paths of a tower's parts.
struct Names {
    layers: String,
    block: BlockNames,
    patches: &'static str,
    positions: &'static str,
    queries: &'static str,
    seen: &'static [&'static str],
    output: &'static str,
    /// The projections whose halves are a number and its gate.
    up: &'static [&'static str],
    down: &'static str,
}

impl Names {
    /// Those that the file has.
    fn of(weights: &Weights<'_>) -> Self {
        if weights.has("vl_connector.pooling.q.weight") {
            return Self {
                layers: "vision_model.layers".to_owned(),
                block: BlockNames {
                    norms: ["attn_norm", "ffn_norm"],
                    qkv: &["attn.qkv"],
                    output: "attn.out",
                    network: ["ffn.up", "ffn.down"],
                    ..BlockNames::CLIP
                },
                patches: "vision_model.patch_embed.proj",
                positions: "vision_model.pos_embed",
                queries: "vl_connector.pooling.q",
                seen: &["vl_connector.pooling.kv"],
                output: "vl_connector.pooling.out",
                up: &["vl_connector.projector.gate_up"],
                down: "vl_connector.projector.down",
            };
        }
        let layers = "vision_tower.image_vit.transformer";
        let original = format!("{layers}.resblocks");
        Self {
            layers: match weights.has(&format!("{original}.0.attention_norm.weight")) {
                true => original,
                false => layers.to_owned(),
            },
            block: BlockNames {
                norms: ["attention_norm", "ffn_norm"],
                qkv: &["attention.wq", "attention.wk", "attention.wv"],
                output: "attention.wo",
                network: ["feed_forward.w1", "feed_forward.w2"],
                ..BlockNames::CLIP
            },
            patches: "vision_tower.image_vit.patch_embedding",
            positions: "vision_tower.image_vit.positional_embedding",
            queries: "vision_tower.image_pooling_2d.wq",
            seen: &["vision_tower.image_pooling_2d.wk", "vision_tower.image_pooling_2d.wv"],
            output: "vision_tower.image_pooling_2d.wo",
            up: &["vision_tower.image_projector.w3", "vision_tower.image_projector.w1"],
            down: "vision_tower.image_projector.w2",
        }
    }
}

/// A vision encoder with what pools its states.
#[derive(Parameters)]
pub struct MolmoTower {
    #[parameters(skip)]
    config: MolmoVisionConfig,
    dtype: Dtype,
    patch_embedding: Linear,
    /// The class token with its position, `[1, hidden]`, and the norm before the layers (Molmo).
    class: Option<(Tensor, LayerNorm)>,
    /// Zeros, and what is added to patches beside and partly beside the image, `[3, states]` (Molmo).
    marks: Option<Tensor>,
    /// `[patches, hidden]`.
    positions: Tensor,
    stack: Stack,
    queries: Linear,
    /// Keys and values.
    seen: Linear,
    output: Linear,
    network: GatedNetwork,
}

impl MolmoTower {
    pub(super) fn load(config: &MolmoVisionConfig, outputs: u32, weights: &mut Weights<'_>) -> error::Result<Self> {
        let (shape, names) = (&config.shape, Names::of(weights));
        let hidden = shape.hidden_size as i32;
        let dtype = weights.dtype(&format!("{}.0.{}.weight", names.layers, names.block.norms[0]));
        let patches = (config.side * config.side) as i32;
        let before = i32::from(config.class_token);
        let table = weights.take(names.positions, &[before + patches, hidden])?;
        let positions = table.slice(0, before, before + patches)?.contiguous()?;
        let class = match config.class_token {
            true => {
                const PATH: &str = "vision_tower.image_vit";
                let class = weights.take(&format!("{PATH}.class_embedding"), &[hidden])?;
                let class = class.reshape(&[1, hidden])?.add(&table.slice(0, 0, 1)?)?;
                let norm = LayerNorm::load(weights, &format!("{PATH}.pre_ln"), hidden, shape.eps)?;
                Some((class, norm))
            }
            false => None,
        };
        weights.materialize([&positions].into_iter().chain(class.as_ref().map(|(class, _)| class)))?;
        let (states, inner) = (
            hidden * config.taps.len() as i32,
            (config.heads * config.head_dim) as i32,
        );
        let marks = match config.blocks {
            TileBlocks::Marked => {
                let vectors = weights.take("vision_tower.pad_embed", &[2, states])?;
                let none = Tensor::zeros(&[1, states], vectors.dtype())?;
                Some(concatenate(&[&none, &vectors], 0)?)
            }
            _ => None,
        };
        weights.materialize(&marks)?;
        let (pooled, width) = (config.pooled as i32, config.width as i32);
        // One projection of both halves, or one of each.
        let halves = |paths: &[&str], half: i32| -> Vec<(String, i32)> {
            let rows = 2 * half / paths.len() as i32;
            paths.iter().map(|path| ((*path).to_owned(), rows)).collect()
        };
        let up = Linear::load_joined(weights, &halves(names.up, width), pooled)?;
        let down = Linear::load(weights, names.down, width, outputs as i32)?;
        Ok(Self {
            dtype,
            patch_embedding: Linear::load(weights, names.patches, config.patch_numbers as i32, hidden)?,
            class,
            marks,
            positions,
            stack: Stack::load(&names.layers, &names.block, shape, dtype, weights)?,
            queries: Linear::load(weights, names.queries, states, inner)?,
            seen: Linear::load_joined(weights, &halves(names.seen, inner), states)?,
            output: Linear::load(weights, names.output, inner, pooled)?,
            network: GatedNetwork::new(None, up, down, dtype)?,
            config: config.clone(),
        })
    }

    /// Encodes the views of one image, the whole last: its features first, then those of the grid that all tiles make.
    pub(super) fn encode_grids(
        &self,
        views: &[ViewPixels],
        plan: &ImagePlan,
        hook: &mut LayerHook<'_>,
    ) -> error::Result<ImageEmbeddings> {
        let by_tile = self.config.blocks == TileBlocks::OfTile;
        let mut encoded = Vec::with_capacity(views.len());
        for (index, (pixels, view)) in views.iter().zip(&plan.views).enumerate() {
            let states = self.states(&ViewInput { pixels, view }, hook)?;
            let states = match &self.marks {
                Some(marks) => {
                    let kinds = beside(plan, index, self.config.side);
                    let kinds = Tensor::from_i32(&kinds, &[states.dim(0), states.dim(1)]);
                    states.add(&marks.take(&kinds, 0)?)?
                }
                None => states,
            };
            let encoding = if by_tile { self.pooled(&states)? } else { states };
            eval([&encoding])?;
            encoded.push(encoding);
        }
        let whole = encoded.pop();
        let tiles = plan
            .tiles
            .filter(|(rows, columns)| encoded.len() == (rows * columns) as usize && !encoded.is_empty());
        let (Some(whole), Some(tiles)) = (whole, tiles) else {
            return Err(Error::BadRequest("the tiles of an image are no grid".into()));
        };
        let merge = if by_tile { MOLMO_MERGE } else { 1 };
        let grid = kept(&encoded, tiles, self.config.side, merge)?;
        let (whole, grid) = match by_tile {
            true => (whole, grid),
            false => (self.pooled(&whole)?, self.pooled(&grid)?),
        };
        let rows = |grid: &Tensor| grid.reshape(&[grid.dim(0) * grid.dim(1), grid.dim(2)]);
        let found = concatenate(&[&rows(&whole)?, &rows(&grid)?], 0)?;
        Ok(ImageEmbeddings::of(self.network.forward(&found)?))
    }

    /// The states of the patches of one view after some of the layers side by side, `[side, side, width]`.
    fn states(&self, input: &ViewInput<'_>, hook: &mut LayerHook<'_>) -> error::Result<Tensor> {
        let (config, grid) = (&self.config, input.view.patches);
        if grid != (config.side, config.side) {
            return Err(Error::BadRequest(format!(
                "this model's tower takes no grid of {} by {} patches",
                grid.0, grid.1
            )));
        }
        let rows = input.cut(config.shape.patch_size as i32)?.astype(self.dtype)?;
        let rows = filled(&rows, config.patch_numbers as i32)?;
        let patches = self.patch_embedding.forward(&rows)?.add(&self.positions)?;
        let x = match &self.class {
            Some((class, norm)) => norm.forward(&concatenate(&[class, &patches], 0)?)?,
            None => patches,
        };
        let mut states = vec![None; config.taps.len()];
        let mut keep = |layer: u32, x: &Tensor| {
            let wanted = states.iter_mut().zip(&config.taps).filter(|(_, tap)| **tap == layer);
            wanted.for_each(|(state, _)| *state = Some(x.clone()));
        };
        let all = [(1, x.dim(0))];
        let on_the_way = |layer: usize, x: &Tensor| {
            keep(layer as u32, x);
            Ok(())
        };
        let windows = PatchMask::Windows(&all);
        let last = self.stack.forward_masked(x, None, &windows, on_the_way, hook)?;
        keep(config.shape.layers, &last);
        let states: Vec<&Tensor> = states.iter().flatten().collect();
        let joined = concatenate(&states, 1)?;
        let joined = joined.slice(0, i32::from(config.class_token), joined.dim(0))?;
        let side = config.side as i32;
        let shape = [side, side, joined.dim(1)];
        let blank = config.blocks == TileBlocks::OfTile && input.pixels.values.iter().all(|number| *number == BLANK);
        Ok(match blank {
            true => Tensor::zeros(&shape, joined.dtype())?,
            false => joined.reshape(&shape)?,
        })
    }

    /// The finds of attention in each block of a grid of states `[rows, columns, width]`, as a grid of blocks. The
    /// query is the mean of the block.
    fn pooled(&self, grid: &Tensor) -> Result<Tensor> {
        let (config, merge) = (&self.config, MOLMO_MERGE);
        let (rows, columns, width) = (grid.dim(0) as u32, grid.dim(1) as u32, grid.dim(2));
        let padded = (rows.next_multiple_of(merge), columns.next_multiple_of(merge));
        let states = grid.reshape(&[(rows * columns) as i32, width])?;
        let states = widened(&states, (rows, columns), padded)?;
        let (down, across, side) = ((padded.0 / merge) as i32, (padded.1 / merge) as i32, merge as i32);
        let (blocks, places) = (down * across, side * side);
        let blocked = states
            .reshape(&[down, side, across, side, width])?
            .transpose(&[0, 2, 1, 3, 4])?
            .reshape(&[blocks, places, width])?;
        let inside = |(block, place): (i32, i32)| {
            let row = block / across * side + place / side;
            let column = block % across * side + place % side;
            !config.masked || ((row as u32) < rows && (column as u32) < columns)
        };
        let marks: Vec<bool> = (0..blocks)
            .flat_map(|block| (0..places).map(move |place| (block, place)))
            .map(inside)
            .collect();
        let shares: Vec<f32> = marks
            .chunks(places as usize)
            .map(|marks| 1.0 / marks.iter().filter(|mark| **mark).count().max(1) as f32)
            .collect();
        let shares = Tensor::from_f32(&shares, &[blocks, 1]).astype(self.dtype)?;
        let means = blocked.sum(1, false)?.mul(&shares)?;
        let (heads, head) = (config.heads as i32, config.head_dim as i32);
        let seen = self.seen.forward(&blocked.reshape(&[blocks * places, width])?)?;
        let by_head = |part: &Tensor, count: i32| -> Result<Tensor> {
            part.reshape(&[blocks, count, heads, head])?.transpose(&[0, 2, 1, 3])
        };
        let keys = by_head(&seen.slice(1, 0, heads * head)?, places)?;
        let values = by_head(&seen.slice(1, heads * head, 2 * heads * head)?, places)?;
        let queries = by_head(&self.queries.forward(&means)?, 1)?;
        let mask = match marks.iter().all(|mark| *mark) {
            true => Mask::None,
            false => {
                let numbers: Vec<f32> = marks.iter().map(|mark| if *mark { 0.0 } else { -1e9 }).collect();
                Mask::Array(Tensor::from_f32(&numbers, &[blocks, 1, 1, places]).astype(self.dtype)?)
            }
        };
        let found = queries.fast_attention(&keys, &values, (head as f32).powf(-0.5), &mask, None)?;
        let found = found.transpose(&[0, 2, 1, 3])?.reshape(&[blocks, heads * head])?;
        let pooled = self.output.forward(&found)?;
        pooled.reshape(&[down, across, pooled.dim(1)])
    }
}

/// Rows of patches with their last number again and again, up to so many: a table whose rows were filled up to be
/// packed has them.
fn filled(rows: &Tensor, numbers: i32) -> Result<Tensor> {
    let own = rows.dim(1);
    if own == numbers {
        return Ok(rows.clone());
    }
    let zeros = Tensor::zeros(&[rows.dim(0), numbers - own], rows.dtype())?;
    concatenate(&[rows, &zeros.add(&rows.slice(1, own - 1, own)?)?], 1)
}

/// For each patch of a view 0 if the image covers it, 1 if it lies beside the image and 2 if it does in part. The
/// models were trained with the marks of the next tile in the place of each one's: the whole, which is the first to
/// them, has those of the first tile, and the last tile the last kind alone.
fn beside(plan: &ImagePlan, index: usize, side: u32) -> Vec<i32> {
    let patches = (side * side) as usize;
    let (rows, columns) = plan.tiles.unwrap_or((1, 1));
    let tiles = rows * columns;
    let next = match index as u32 {
        whole if whole == tiles => 0,
        tile => tile + 1,
    };
    let Some(view) = plan.views.first().filter(|_| next < tiles) else {
        return vec![2; patches];
    };
    let patch = i64::from(view.width / side.max(1));
    let stride = i64::from(view.width) - 2 * i64::from(MOLMO_MARGIN) * patch;
    // How much of a patch at this place of a canvas lies on the image: all, none or a part.
    let along = |tile: u32, tiles: u32, place: u32, image: u32| {
        let canvas = i64::from(tiles - 1) * stride + i64::from(view.width);
        let start = (canvas - i64::from(image)) / 2;
        let end = start + i64::from(image);
        let first = i64::from(tile) * stride + i64::from(place) * patch;
        match (
            first >= start && first + patch <= end,
            first + patch <= start || first >= end,
        ) {
            (true, _) => 0,
            (_, true) => 1,
            _ => 2,
        }
    };
    let (row, column) = (next / columns.max(1), next % columns.max(1));
    (0..side)
        .flat_map(|down| (0..side).map(move |across| (down, across)))
        .map(|(down, across)| {
            let kinds = [
                along(row, rows, down, plan.resized.1),
                along(column, columns, across, plan.resized.0),
            ];
            match kinds {
                [0, 0] => 0,
                [1, _] | [_, 1] => 1,
                _ => 2,
            }
        })
        .collect()
}

/// The blocks that each of overlapping tiles keeps, as one grid. `side` patches lie along a tile, `merge`
/// along a block.
fn kept(tiles: &[Tensor], (rows, columns): (u32, u32), side: u32, merge: u32) -> Result<Tensor> {
    let part = |tile: &Tensor, axis: usize, index: u32, count: u32| {
        let (before, after) = (u32::from(index > 0), u32::from(index + 1 < count));
        let first = before * MOLMO_MARGIN / merge;
        let length = (side - (before + after) * MOLMO_MARGIN).div_ceil(merge);
        tile.slice(axis, first as i32, (first + length) as i32)
    };
    let mut lines = Vec::with_capacity(rows as usize);
    for (row, line) in (0..rows).zip(tiles.chunks(columns as usize)) {
        let parts = (0..columns)
            .zip(line)
            .map(|(column, tile)| part(&part(tile, 0, row, rows)?, 1, column, columns))
            .collect::<Result<Vec<_>>>()?;
        lines.push(concatenate(&parts.iter().collect::<Vec<_>>(), 1)?);
    }
    concatenate(&lines.iter().collect::<Vec<_>>(), 0)
}
