//! The vision encoder of Llama 3.2 Vision: the tiles of an image go through it together, and those that it does not
//! have too, because patches see what only fills up. References: the models' original code (`encoder_utils.py`,
//! `multimodal/model.py`) and transformers' `modeling_mllama.py`, which since its fifth version takes the states on the
//! way one layer too late.

use checkpoint::vision::{MllamaVisionConfig, TowerShape};
use checkpoint::ImagePlan;
use media::ViewPixels;
use mlx::ops::{concatenate, stack};
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use super::attention::PatchMask;
use super::patches::{load_patch_linear, PatchOrder, COLOURS};
use super::stack::{first_with, BlockNames, Stack};
use super::{ImageEmbeddings, LayerHook, ViewInput};
use crate::error::{self, Error};
use crate::layers::{Embedding, LayerNorm, Linear};
use crate::weights::Weights;

/// The paths at which conversions and originals keep the vision encoder.
const PLACES: [&str; 2] = ["vision_tower", "vision_model"];

/// The layers of the first stack.
const PLAIN: BlockNames = BlockNames {
    norms: ["input_layernorm", "post_attention_layernorm"],
    output: "self_attn.o_proj",
    ..BlockNames::CLIP
};

/// Those of the second one.
const GATED: BlockNames = BlockNames {
    gates: Some(["gate_attn", "gate_ffn"]),
    ..PLAIN
};

/// A table with a row for each arrangement of tiles, and the factor of what it holds.
#[derive(Parameters)]
struct ArrangementTable {
    table: Embedding,
    /// `[1]`.
    gate: Tensor,
}

impl ArrangementTable {
    fn load(
        config: &MllamaVisionConfig,
        path: &str,
        table: &str,
        width: u32,
        weights: &mut Weights<'_>,
    ) -> error::Result<Self> {
        let rows = 1 + config.arrangements.len() as i32;
        let gate = weights.take(&format!("{path}.gate"), &[1])?.tanh()?;
        weights.materialize([&gate])?;
        Ok(Self {
            table: Embedding::load(weights, &format!("{path}.{table}"), rows, (config.tiles * width) as i32)?,
            gate,
        })
    }

    /// The embedding of an arrangement, times the gate, in this shape.
    fn of(&self, arrangement: i32, shape: &[i32]) -> Result<Tensor> {
        let row = self.table.forward(&Tensor::from_i32(&[arrangement], &[1]))?;
        row.reshape(shape)?.mul(&self.gate)
    }
}

/// A vision encoder with its projector.
#[derive(Parameters)]
pub struct Mllama {
    #[parameters(skip)]
    config: MllamaVisionConfig,
    dtype: Dtype,
    patch_embedding: Linear,
    /// `[1, 1, hidden]`.
    class: Tensor,
    /// The share of the positions within a tile that those of the arrangement leave, `[states of a tile, hidden]`.
    positions: Tensor,
    tile_positions: ArrangementTable,
    before: ArrangementTable,
    after: ArrangementTable,
    layernorm_pre: LayerNorm,
    layernorm_post: LayerNorm,
    local: Stack,
    global: Stack,
    projector: Linear,
}

impl Mllama {
    pub(super) fn load(config: &MllamaVisionConfig, outputs: u32, weights: &mut Weights<'_>) -> error::Result<Self> {
        let shape = &config.shape;
        let (hidden, pixels) = (shape.hidden_size, shape.patch_size as i32);
        let width = hidden as i32;
        let path = first_with(weights, &PLACES, "patch_embedding.weight");
        let at = |name: &str| format!("{path}.{name}");
        let states = config.states_of_tile();
        let dtype = weights.dtype(&at("layernorm_pre.weight"));
        let (patches, inputs) = (at("patch_embedding"), COLOURS * pixels * pixels);
        let patch_embedding = load_patch_linear(weights, &patches, inputs, width, PatchOrder::PixelByPixel)?;
        let gated = at("gated_positional_embedding");
        let tile_positions = ArrangementTable::load(config, &gated, "tile_embedding", states * hidden, weights)?;
        let rest = Tensor::scalar(1.0, dtype)?.sub(&tile_positions.gate)?;
        let positions = weights.take(&format!("{gated}.embedding"), &[states as i32, width])?;
        let positions = positions.mul(&rest)?;
        let class = weights
            .take(&at("class_embedding"), &[width])?
            .reshape(&[1, 1, width])?;
        weights.materialize([&positions, &class])?;
        let tiles = |name: &str, weights: &mut Weights<'_>| {
            ArrangementTable::load(config, &at(name), "embedding", hidden, weights)
        };
        let global = TowerShape {
            layers: config.global_layers,
            ..*shape
        };
        let inputs = width * (1 + config.intermediate.len() as i32);
        Ok(Self {
            patch_embedding,
            class,
            positions,
            tile_positions,
            before: tiles("pre_tile_positional_embedding", weights)?,
            after: tiles("post_tile_positional_embedding", weights)?,
            layernorm_pre: LayerNorm::load(weights, &at("layernorm_pre"), width, shape.eps)?,
            layernorm_post: LayerNorm::load(weights, &at("layernorm_post"), width, shape.eps)?,
            local: Stack::load(&at("transformer.layers"), &PLAIN, shape, dtype, weights)?,
            global: Stack::load(&at("global_transformer.layers"), &GATED, &global, dtype, weights)?,
            projector: Linear::load(weights, "multi_modal_projector", inputs, outputs as i32)?,
            dtype,
            config: config.clone(),
        })
    }

    /// Encodes all tiles of an image: the features are states `[tiles · states of a tile, width of the language part]`.
    pub(super) fn encode(
        &self,
        tiles: &[ViewPixels],
        plan: &ImagePlan,
        hook: &mut LayerHook<'_>,
    ) -> error::Result<ImageEmbeddings> {
        let config = &self.config;
        let (most, width) = (config.tiles as i32, config.shape.hidden_size as i32);
        let states = config.states_of_tile() as i32;
        let count = tiles.len() as i32;
        let wanted = plan.tiles.unwrap_or((1, 1));
        let arrangement = config.arrangements.iter().position(|known| *known == wanted);
        let arrangement = match arrangement {
            Some(index) if wanted.0 * wanted.1 == count as u32 => 1 + index as i32,
            _ => {
                return Err(Error::BadRequest(format!(
                    "this model's tower takes no {count} tiles in {} rows and {} columns",
                    wanted.0, wanted.1
                )))
            }
        };
        let x = self.embed(tiles, plan, arrangement)?;
        // Rows of tiles that are there, then those that fill up: full tiles, and the rows missing in each to a multiple
        // of 8.
        let (real, filling) = (count * states, config.rows_of_tile() as i32 - states);
        let x = x.reshape(&[most * states, width])?;
        let x = concatenate(&[&x, &Tensor::zeros(&[most * filling, width], x.dtype())?], 0)?;
        let mask = PatchMask::Padded(real);
        let mut intermediate = Vec::with_capacity(config.intermediate.len());
        let mut keep = |layer: usize, x: &Tensor| {
            if config.intermediate.contains(&(layer as u32)) {
                intermediate.push(x.slice(0, 0, real)?);
            }
            Ok(())
        };
        let x = self.local.forward_masked(x, None, &mask, &mut keep, hook)?;
        let x = self.layernorm_post.forward(&x)?;
        let of_tiles = |rows: i32| (0..most).flat_map(move |tile| std::iter::repeat_n(tile, rows as usize));
        let tile_of_row: Vec<i32> = of_tiles(states).chain(of_tiles(filling)).collect();
        let after = self.after.of(arrangement, &[most, width])?;
        let x = x.add(&after.take(&Tensor::from_i32(&tile_of_row, &[tile_of_row.len() as i32]), 0)?)?;
        let x = self.global.forward_masked(x, None, &mask, |_, _| Ok(()), hook)?;
        let mut parts = vec![x.slice(0, 0, real)?];
        if !intermediate.is_empty() {
            // The numbers of a place from all layers are adjacent.
            let beside = stack(&intermediate.iter().collect::<Vec<_>>(), 2)?;
            parts.push(beside.reshape(&[real, width * intermediate.len() as i32])?);
        }
        let joined = concatenate(&parts.iter().collect::<Vec<_>>(), 1)?;
        Ok(ImageEmbeddings::of(self.projector.forward(&joined)?))
    }

    /// The input of the first layer, `[most tiles, states of a tile, hidden]`: a missing tile is black.
    fn embed(&self, tiles: &[ViewPixels], plan: &ImagePlan, arrangement: i32) -> error::Result<Tensor> {
        let config = &self.config;
        let (most, width) = (config.tiles as i32, config.shape.hidden_size as i32);
        let side = config.shape.patch_size as i32;
        let states = config.states_of_tile() as i32;
        let mut rows = Vec::with_capacity(config.tiles as usize);
        for (pixels, view) in tiles.iter().zip(&plan.views) {
            if view.patches != (config.side, config.side) {
                return Err(Error::BadRequest(format!(
                    "this model's tower takes tiles of {0} by {0} patches",
                    config.side
                )));
            }
            let patches = ViewInput { pixels, view }.cut(side)?.astype(self.dtype)?;
            rows.push(self.patch_embedding.forward(&patches)?);
        }
        let missing = most - tiles.len() as i32;
        rows.push(Tensor::zeros(&[missing * (states - 1), width], self.dtype)?);
        let patches = concatenate(&rows.iter().collect::<Vec<_>>(), 0)?.reshape(&[most, states - 1, width])?;
        let patches = patches.add(&self.before.of(arrangement, &[most, 1, width])?)?;
        let class = self.class.broadcast(&[most, 1, width])?;
        let x = concatenate(&[&class, &patches], 1)?.add(&self.positions)?;
        let x = x.add(&self.tile_positions.of(arrangement, &[most, states, width])?)?;
        Ok(self.layernorm_pre.forward(&x)?)
    }
}
