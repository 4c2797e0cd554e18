//! The tower of Llama 3.2 Vision: all tiles of an image in one stack, then in a second one whose parts are gated; the
//! language part looks at its last states and at some on the way. Names and defaults are those of transformers'
//! `MllamaVisionConfig`.

use super::shape::{activation, square, TowerShape};
use super::{check_layers, check_width, VisionConfig};
use crate::config::activation::EncoderActivation;
use crate::config::limits::check_range;
use crate::config::Fields;
use crate::error::{unusable, Error};
use crate::memory::VisionCost;

/// A tower and what joins it to the language part.
#[derive(Debug, Clone, PartialEq)]
pub struct MllamaVisionConfig {
    /// The first stack.
    pub shape: TowerShape,
    /// How many layers the second one has.
    pub global_layers: u32,
    /// Patches along a side of a tile.
    pub side: u32,
    /// The most tiles of an image; one with fewer goes through the tower with as many.
    pub tiles: u32,
    /// Rows and columns of tiles in the order of their embeddings, of which the first stands for no image.
    pub arrangements: Vec<(u32, u32)>,
    /// Before which layers of the first stack the language part looks at the states.
    pub intermediate: Vec<u32>,
}

/// More tiles than any image has.
const MOST_TILES: u32 = 16;

/// The layers of the first stack before which states are looked at, unless the config says so.
const INTERMEDIATE: [u32; 5] = [3, 7, 15, 23, 30];

/// The most tiles of an image.
fn tiles(vision: Fields<'_>) -> Result<u32, Error> {
    check_range(
        "max_num_tiles",
        vision.number("max_num_tiles")?.unwrap_or(4),
        1..=MOST_TILES,
    )
}

pub(crate) fn parse(vision: Fields<'_>, _: Fields<'_>) -> Result<VisionConfig, Error> {
    const INDICES: &str = "intermediate_layers_indices";
    let shape = TowerShape {
        hidden_size: vision.number("hidden_size")?.unwrap_or(1280),
        layers: vision.number("num_hidden_layers")?.unwrap_or(32),
        heads: vision.first(&["attention_heads", "num_attention_heads"])?.unwrap_or(16),
        intermediate_size: vision.number("intermediate_size")?.unwrap_or(5120),
        patch_size: square(vision, "patch_size")?.unwrap_or(14),
        eps: vision.number("norm_eps")?.unwrap_or(1e-5),
        activation: activation(vision, "hidden_act", EncoderActivation::Gelu)?,
    }
    .check()?;
    let intermediate: Vec<u32> = match vision.numbers(INDICES)? {
        Some(layers) => layers.into_iter().map(|layer| layer as u32).collect(),
        None => INTERMEDIATE.to_vec(),
    };
    // States are collected on the way through the layers.
    if !intermediate.is_sorted_by(|a, b| a < b) || intermediate.iter().any(|layer| *layer >= shape.layers) {
        let reason = format!("{intermediate:?} are not rising numbers below {}", shape.layers);
        return unusable(INDICES, reason);
    }
    check_width(INDICES, u64::from(shape.hidden_size) * (1 + intermediate.len() as u64))?;
    let (tiles, side) = (tiles(vision)?, shape.side(vision, 448)?);
    check_width("max_num_tiles", u64::from(tiles) * u64::from(side * side + 1))?;
    Ok(VisionConfig::Mllama(MllamaVisionConfig {
        shape,
        global_layers: check_layers(vision.number("num_global_layers")?.unwrap_or(8))?,
        side,
        tiles,
        // The processor's own order, by which it numbers them whatever the config lists.
        arrangements: (1..=tiles)
            .flat_map(|rows| (1..=tiles / rows).map(move |columns| (rows, columns)))
            .collect(),
        intermediate,
    }))
}

impl MllamaVisionConfig {
    /// States of a tile: those of its patches, and one of its class token.
    pub fn states_of_tile(&self) -> u32 {
        self.side * self.side + 1
    }

    /// Rows of a tile on its way through the tower: its states, filled up.
    pub fn rows_of_tile(&self) -> u32 {
        self.states_of_tile().next_multiple_of(8)
    }

    /// The most states of an image, told from the whole config; of published models if it says nothing that makes
    /// sense.
    pub(crate) fn states(top: Fields<'_>) -> u32 {
        const PUBLISHED: u32 = 4 * 1601;
        let vision = top.object("vision_config").ok().flatten();
        match vision.map(|vision| parse(vision, top)) {
            Some(Ok(VisionConfig::Mllama(tower))) => tower.tiles * tower.states_of_tile(),
            _ => PUBLISHED,
        }
    }
}

impl MllamaVisionConfig {
    /// Tables with a row for each arrangement of tiles, and a projection of all states that the language part reads;
    /// its width is taken to be about three times that of the encoder.
    pub(super) fn cost(&self) -> VisionCost {
        let cost = self.shape.cost(2, self.side, 1);
        let table = u64::from(self.tiles) * cost.hidden * (u64::from(self.states_of_tile()) + 2);
        let joined = cost.hidden * (1 + self.intermediate.len() as u64);
        VisionCost {
            layers: cost.layers + u64::from(self.global_layers),
            others: cost.others + table * (1 + self.arrangements.len() as u64) + joined * 3 * cost.hidden,
            together: Some(u64::from(self.tiles) * u64::from(self.rows_of_tile())),
            ..cost
        }
    }
}
