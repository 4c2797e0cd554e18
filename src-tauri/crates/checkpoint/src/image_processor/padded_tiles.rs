//! DeepSeek-VL2: tiles of a canvas in whose middle the image stands on the mean color, and the same of one tile.

use protocol::ImageDetail;
use serde::Serialize;

use super::any_resolution::best_canvas;
use super::{ImagePlan, View};
use crate::error::{Error, Result};

/// Canvases of a list, in each of which an image keeps its shape (`ImageOps.pad` of Pillow).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PaddedTiles {
    /// Widths and heights of canvases, in tiles.
    pub canvases: Vec<(u32, u32)>,
    /// The side of a tile.
    pub tile: u32,
    /// The side of a patch.
    pub patch: u32,
    /// Patches on a side of a token; the last ones of a row may have fewer.
    pub merge: u32,
}

impl PaddedTiles {
    /// Plans the canvas that fits best of those whose features are not too many.
    pub(super) fn plan(&self, width: u32, height: u32, detail: ImageDetail) -> Result<ImagePlan> {
        let most = detail.most_tokens() as usize;
        let fits = |canvas: &(u32, u32)| self.tokens(*canvas) <= most;
        let fitting = self.canvases.iter().copied().filter(fits);
        let (columns, rows) = best_canvas(self.tile, width, height, fitting).unwrap_or((1, 1));
        let size = contained((width, height), (columns * self.tile, rows * self.tile));
        let whole = contained((width, height), (self.tile, self.tile));
        if [size.0, size.1, whole.0, whole.1].contains(&0) {
            return Err(Error::TooNarrow { width, height });
        }
        let side = self.side();
        let view = View {
            width: self.tile,
            height: self.tile,
            patches: (self.tile / self.patch, self.tile / self.patch),
            tokens: (side, side),
            features: side * side,
        };
        let grid = (rows * side, columns * side);
        Ok(ImagePlan::marked_tiles(view, (rows, columns), size, grid))
    }

    /// Tokens along a side of a tile.
    fn side(&self) -> u32 {
        (self.tile / self.patch).div_ceil(self.merge)
    }

    fn tokens(&self, (columns, rows): (u32, u32)) -> usize {
        let side = self.side();
        (side * (side + 1) + 1 + rows * side * (columns * side + 1)) as usize
    }
}

/// Width and height of an image in a box, in its shape (`ImageOps.contain`).
pub(super) fn contained(image: (u32, u32), (width, height): (u32, u32)) -> (u32, u32) {
    let (w, h) = (f64::from(image.0), f64::from(image.1));
    let (own, wanted) = (w / h, f64::from(width) / f64::from(height));
    if own > wanted {
        (width, (h / w * f64::from(width)).round_ties_even() as u32)
    } else if own < wanted {
        ((w / h * f64::from(height)).round_ties_even() as u32, height)
    } else {
        (width, height)
    }
}
