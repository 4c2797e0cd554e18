//! Rules of LLaVA and its successors: one square of an image, or tiles of a size from a list and the whole beside them.

use protocol::ImageDetail;
use serde::Serialize;

use super::view::{merged, single};
use super::{ImagePlan, JoinedTiles, MAX_PIXELS};
use crate::error::{Error, Result};

/// The shorter side to a size, then the middle (CLIP).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cropped {
    /// The length of the shorter side after resizing, at least that of the crop's sides.
    pub shortest: u32,
    /// Width and height of the middle.
    pub crop: (u32, u32),
    /// The side of a patch.
    pub patch: u32,
}

impl Cropped {
    pub(super) fn plan(&self, width: u32, height: u32) -> Result<ImagePlan> {
        let long = |side: u32, short: u32| {
            let pixels = u64::from(self.shortest) * u64::from(side) / u64::from(short.max(1));
            u32::try_from(pixels).unwrap_or(u32::MAX)
        };
        let size = match width <= height {
            true => (self.shortest, long(height, width)),
            false => (long(width, height), self.shortest),
        };
        // All of the image is brought to that size, of which the middle is nearly nothing.
        if u64::from(size.0) * u64::from(size.1) > MAX_PIXELS {
            return Err(Error::TooNarrow { width, height });
        }
        Ok(ImagePlan {
            resized: size,
            steps: vec![size],
            ..single(merged(self.crop.0, self.crop.1, self.patch, 1))
        })
    }
}

/// Tiles of a canvas in whose middle the image stands, then the whole, squeezed into one more (LLaVA-NeXT,
/// LLaVA-OneVision: `select_best_resolution` of transformers' `image_processing_utils.py`). The tower's features of all
/// tiles are one grid, of which what the image does not cover is left out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AnyResolution {
    /// Widths and heights of canvases, in tiles.
    pub canvases: Vec<(u32, u32)>,
    /// The side of a tile.
    pub tile: u32,
    /// The side of a patch.
    pub patch: u32,
    /// To how many tiles' features a larger grid is brought (the number in `anyres_max_9`).
    pub most_tiles: Option<u32>,
}

impl AnyResolution {
    /// Plans the canvas that fits best of those whose features are not too many. If all have more, the whole image
    /// stands alone, as these models read several images.
    pub(super) fn plan(&self, width: u32, height: u32, detail: ImageDetail) -> ImagePlan {
        let most = detail.most_tokens() as usize;
        let planned = |canvas: &(u32, u32)| self.on_canvas(width, height, *canvas);
        let fits = |canvas: &(u32, u32)| planned(canvas).tokens() <= most;
        match best_canvas(self.tile, width, height, self.canvases.iter().copied().filter(fits)) {
            Some(canvas) => planned(&canvas),
            None => self.alone(),
        }
    }

    fn on_canvas(&self, width: u32, height: u32, (columns, rows): (u32, u32)) -> ImagePlan {
        let (across, down) = (columns * self.tile, rows * self.tile);
        let (w, h) = (f64::from(width), f64::from(height));
        let (by_width, by_height) = (f64::from(across) / w, f64::from(down) / h);
        let size = match by_width < by_height {
            true => (across, ((h * by_width).ceil() as u32).min(down)),
            false => (((w * by_height).ceil() as u32).min(across), down),
        };
        let view = merged(self.tile, self.tile, self.patch, 1);
        let covered = covered((w, h), (rows * view.tokens.0, columns * view.tokens.1));
        ImagePlan {
            resized: size,
            steps: vec![size],
            views: vec![view; (rows * columns + 1) as usize],
            tiles: Some((rows, columns)),
            whole: true,
            joined: Some(JoinedTiles {
                covered,
                shown: self.shown(covered, view.features),
            }),
        }
    }

    /// Rows and columns that a grid is brought to, given the features of a tile.
    fn shown(&self, (rows, columns): (u32, u32), tile: u32) -> (u32, u32) {
        let Some(most) = self.most_tiles else {
            return (rows, columns);
        };
        let (down, across) = (f64::from(rows), f64::from(columns));
        let ratio = (down * across / (f64::from(most) * f64::from(tile))).sqrt();
        match ratio > 1.1 {
            true => ((down / ratio).floor() as u32, (across / ratio).floor() as u32),
            false => (rows, columns),
        }
    }

    fn alone(&self) -> ImagePlan {
        let mut view = merged(self.tile, self.tile, self.patch, 1);
        view.features += 1;
        single(view)
    }
}

/// Rows and columns of a grid that an image of this shape covers, standing in its middle (`unpad_image`).
fn covered((width, height): (f64, f64), (rows, columns): (u32, u32)) -> (u32, u32) {
    let (down, across) = (f64::from(rows), f64::from(columns));
    // To seven digits, so that what is whole but for a rounding is whole.
    let whole = |number: f64| ((number * 1e7).round_ties_even() / 1e7) as u32;
    let without = |all: u32, some: u32| all - all.saturating_sub(some) / 2 * 2;
    match width / height > across / down {
        true => (without(rows, whole(height * (across / width))), columns),
        false => (rows, without(columns, whole(width * (down / height)))),
    }
}

/// The canvas on which most of the image's pixels are left, of those of so many tiles; of equal ones the one that it
/// covers most.
pub(super) fn best_canvas(
    tile: u32,
    width: u32,
    height: u32,
    canvases: impl Iterator<Item = (u32, u32)>,
) -> Option<(u32, u32)> {
    let (mut best, mut most, mut least) = (None, 0, u64::MAX);
    for (columns, rows) in canvases {
        let (across, down) = (columns * tile, rows * tile);
        let scale = (f64::from(across) / f64::from(width)).min(f64::from(down) / f64::from(height));
        let sized = |side: u32| (f64::from(side) * scale) as u64;
        let covered = (sized(width) * sized(height)).min(u64::from(width) * u64::from(height));
        let wasted = (u64::from(across) * u64::from(down)).saturating_sub(covered);
        if covered > most || (covered == most && wasted < least) {
            (best, most, least) = (Some((columns, rows)), covered, wasted);
        }
    }
    best
}
