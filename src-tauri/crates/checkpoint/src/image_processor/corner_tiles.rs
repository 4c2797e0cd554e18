//! Phi 4 Multimodal: tiles of a canvas in whose corner the image stands, and the whole canvas in one more.

use protocol::ImageDetail;
use serde::Serialize;

use super::tiles::{arrangements, closest};
use super::view::merged;
use super::ImagePlan;
use crate::error::{Error, Result};

/// Patches along a side of a token.
const MERGE: u32 = 2;

/// The shortest side of an image in its canvas.
const SHORTEST: u32 = 10;

/// As many tiles as the image has itself, or within a limit those whose shape is closest to its own; it is as large as
/// they allow and lies in their corner, with white around (`dynamic_preprocess` of transformers'
/// `image_processing_phi4_multimodal.py`). Tokens that show nothing of it are left out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CornerTiles {
    /// The side of a tile.
    pub tile: u32,
    /// The most tiles.
    pub most: u32,
    /// The side of a patch.
    pub patch: u32,
}

impl CornerTiles {
    /// Plans as many tiles as this detail allows, and at last a part of one.
    pub(super) fn plan(&self, width: u32, height: u32, detail: ImageDetail) -> Result<ImagePlan> {
        let narrow = Error::TooNarrow { width, height };
        let pixels = |count: u32, side: u32| f64::from(count) * f64::from(side);
        let in_tiles = (1..=self.most).rev().map(|most| {
            let (columns, rows) = self.arrangement(width, height, most);
            ((columns, rows), (pixels(columns, self.tile), pixels(rows, self.tile)))
        });
        let in_part = (1..self.tile / self.patch).rev().map(|patches| {
            let side = pixels(patches, self.patch);
            ((1, 1), (side, side))
        });
        let mut least = None;
        for (tiles, within) in in_tiles.chain(in_part) {
            let size = fitted((width, height), within);
            if size.0.min(size.1) < SHORTEST {
                continue;
            }
            let plan = self.in_tiles(tiles, size);
            if plan.tokens() <= detail.most_tokens() as usize {
                return Ok(plan);
            }
            least = Some(plan);
        }
        least.ok_or(narrow)
    }

    /// The size of an image of this size in its canvas within one view of the whole canvas.
    pub(super) fn share(&self, image: (u32, u32), view: (u32, u32)) -> (u32, u32) {
        let share = |image: u32, view: u32| {
            let canvas = image.div_ceil(self.tile).max(1) * self.tile;
            let part = f64::from(image) * f64::from(view) / f64::from(canvas);
            (part.round() as u32).clamp(1, view)
        };
        (share(image.0, view.0), share(image.1, view.1))
    }

    /// Columns and rows of at most so many tiles.
    fn arrangement(&self, width: u32, height: u32, most: u32) -> (u32, u32) {
        let (columns, rows) = (width.div_ceil(self.tile), height.div_ceil(self.tile));
        match columns.saturating_mul(rows) > most {
            true => closest(width, height, arrangements(1, most), (self.tile, self.tile)),
            false => (columns, rows),
        }
    }

    fn in_tiles(&self, (columns, rows): (u32, u32), size: (u32, u32)) -> ImagePlan {
        let view = merged(self.tile, self.tile, self.patch, MERGE);
        let covered = |pixels: u32, tiles: u32| covered_patches(pixels, tiles, self.tile, self.patch).div_ceil(MERGE);
        let grid = (covered(size.1, rows), covered(size.0, columns));
        ImagePlan::marked_tiles(view, (rows, columns), size, grid)
    }
}

/// The patches along a side of a canvas of so many tiles that show something of an image of so many pixels there.
pub fn covered_patches(pixels: u32, tiles: u32, tile: u32, patch: u32) -> u32 {
    let patch = patch.max(1);
    let beside = tiles.saturating_mul(tile).saturating_sub(pixels) / patch;
    tiles.saturating_mul(tile / patch).saturating_sub(beside)
}

/// The largest size of an image of this shape within such a one.
fn fitted((width, height): (u32, u32), within: (f64, f64)) -> (u32, u32) {
    let (w, h) = (f64::from(width), f64::from(height));
    let (across, down) = (within.0 / w, within.1 / h);
    match across < down {
        true => (within.0 as u32, (h * across) as u32),
        false => ((w * down) as u32, within.1 as u32),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use protocol::ImageDetail::{Full, Normal, Quick};

    use super::*;

    const PHI4: CornerTiles = CornerTiles {
        tile: 448,
        most: 36,
        patch: 14,
    };

    #[test]
    fn tokens_are_those_of_the_original_processor() {
        for (size, tiles, resized, tokens) in [
            ((448, 448), (1, 1), (448, 448), 16 * 17 + 273),
            ((100, 60), (1, 1), (448, 268), 10 * 17 + 273),
            ((640, 480), (2, 2), (896, 672), 24 * 33 + 273),
            ((449, 900), (3, 2), (670, 1344), 48 * 25 + 273),
            ((4000, 3000), (3, 4), (1792, 1344), 48 * 65 + 273),
        ] {
            let plan = PHI4.plan(size.0, size.1, Full).unwrap();
            assert_eq!(
                (plan.tiles, plan.resized, plan.tokens()),
                (Some(tiles), resized, tokens),
                "{size:?}"
            );
        }
    }

    #[test]
    fn less_detail_takes_fewer_tiles_and_at_last_a_part_of_one() {
        let tiles = |detail| PHI4.plan(1000, 1000, detail).unwrap().tiles;
        assert_eq!((tiles(Normal), tiles(Quick)), (Some((2, 2)), Some((1, 1))));
        let plan = PHI4.plan(1000, 1000, Quick).unwrap();
        assert_eq!((plan.resized, plan.tokens()), ((392, 392), 14 * 15 + 273));
        assert!(PHI4.plan(1000, 1, Full).is_err());
    }
}
