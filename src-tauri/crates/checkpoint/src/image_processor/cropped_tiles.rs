//! DeepSeek-OCR: tiles of a large image, and the whole in its shape on the mean color of a larger square.

use protocol::ImageDetail;
use serde::Serialize;

use super::padded_tiles::contained;
use super::tiles::{arrangements, closest};
use super::view::merged;
use super::{ImagePlan, JoinedTiles};
use crate::error::{Error, Result};

/// Tiles in the arrangement whose shape is closest to the image's (`dynamic_preprocess` of `modeling_deepseekocr.py`),
/// if it is larger than one of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CroppedTiles {
    /// The side of the square for the whole.
    pub whole: u32,
    /// The side of a tile.
    pub tile: u32,
    /// The most tiles.
    pub most: u32,
    /// The side of a patch.
    pub patch: u32,
    /// Patches on a side of a token.
    pub merge: u32,
}

impl CroppedTiles {
    pub(super) fn plan(&self, width: u32, height: u32, detail: ImageDetail) -> Result<ImagePlan> {
        let inside = contained((width, height), (self.whole, self.whole));
        if inside.0 == 0 || inside.1 == 0 {
            return Err(Error::TooNarrow { width, height });
        }
        let mut whole = merged(self.whole, self.whole, self.patch, self.merge);
        // A mark after each of its rows, and one at the end.
        whole.features = whole.tokens.0 * (whole.tokens.1 + 1) + 1;
        let tile = merged(self.tile, self.tile, self.patch, self.merge);
        let large = width > self.tile || height > self.tile;
        for most in (2..=self.most).rev().filter(|_| large) {
            let (columns, rows) = closest(width, height, arrangements(2, most), (self.tile, self.tile));
            let grid = (rows * tile.tokens.0, columns * tile.tokens.1);
            if grid.0 * (grid.1 + 1) + whole.features > detail.most_tokens() {
                continue;
            }
            let size = (columns * self.tile, rows * self.tile);
            let mut views = vec![tile; (rows * columns) as usize];
            views.push(whole);
            return Ok(ImagePlan {
                resized: size,
                steps: vec![size],
                views,
                tiles: Some((rows, columns)),
                whole: true,
                joined: Some(JoinedTiles {
                    covered: grid,
                    shown: grid,
                }),
            });
        }
        Ok(ImagePlan {
            resized: inside,
            steps: vec![inside],
            views: vec![whole],
            tiles: None,
            whole: false,
            joined: None,
        })
    }
}
