//! Phi 3 Vision: an image stretched to whole tiles, and the same in one more.

use protocol::ImageDetail;
use serde::Serialize;

use super::view::merged;
use super::ImagePlan;
use crate::error::{Error, Result};

/// As many tiles as the longer side may have, the other side stretched to whole ones (`_calc_hd_transform_size` of
/// mlx-vlm's `processing_phi3_v.py`).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StretchedTiles {
    /// The side of a tile.
    pub tile: u32,
    /// The most tiles.
    pub most: u32,
    /// The side of a patch.
    pub patch: u32,
    /// Patches on a side of a token.
    pub merge: u32,
}

impl StretchedTiles {
    /// Plans as many tiles as this detail allows, at least one.
    pub(super) fn plan(&self, width: u32, height: u32, detail: ImageDetail) -> Result<ImagePlan> {
        let mut least = None;
        for most in (1..=self.most).rev() {
            let Some((rows, columns)) = self.arrangement(width, height, most) else {
                break;
            };
            let plan = self.in_tiles(rows, columns);
            if plan.tokens() <= detail.most_tokens() as usize {
                return Ok(plan);
            }
            least = Some(plan);
        }
        least.ok_or(Error::TooNarrow { width, height })
    }

    /// Rows and columns of at most so many tiles; none if the shorter side would be less than a pixel.
    fn arrangement(&self, width: u32, height: u32, most: u32) -> Option<(u32, u32)> {
        let (long, short) = (width.max(height), width.min(height));
        let ratio = f64::from(long) / f64::from(short);
        let down = |across: u32| (f64::from(across) / ratio).ceil() as u32;
        let fits = |across: &u32| across.saturating_mul(down(*across)) <= most;
        let across = (1..=most).take_while(fits).last()?;
        let pixels = (f64::from(across * self.tile) / ratio) as u32;
        let down = pixels.div_ceil(self.tile);
        match (down, width < height) {
            (0, _) => None,
            (_, true) => Some((across, down)),
            (_, false) => Some((down, across)),
        }
    }

    fn in_tiles(&self, rows: u32, columns: u32) -> ImagePlan {
        let size = (columns * self.tile, rows * self.tile);
        let view = merged(self.tile, self.tile, self.patch, self.merge);
        let grid = (rows * view.tokens.0, columns * view.tokens.1);
        ImagePlan::marked_tiles(view, (rows, columns), size, grid)
    }
}
