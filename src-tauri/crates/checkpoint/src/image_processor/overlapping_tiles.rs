//! Molmo and Jina VLM: tiles of the stretched image, or of a canvas in whose middle it stands, that share patches with
//! their neighbors, and the whole on one more.

use protocol::ImageDetail;
use serde::Serialize;

use super::{ImagePlan, SmartResize, View};
use crate::error::{Error, Result};

/// The image stretched to the arrangement of tiles that enlarges it least (`build_overlapping_crops` of mlx-vlm's
/// `molmo2/processing.py`). The patches that two tiles share are seen by both, and each keeps its half of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OverlappingTiles {
    /// The side of a tile.
    pub tile: u32,
    /// The side of a patch.
    pub patch: u32,
    /// Patches on a side of a token.
    pub merge: u32,
    /// Patches on each side of a tile that its neighbor there keeps.
    pub margin: u32,
    /// The most tiles.
    pub most: u32,
    /// True if blocks of patches that become tokens lie in each tile by itself, and not in the grid of all.
    pub by_tile: bool,
    /// True if the image keeps its shape and stands in the middle of a canvas (Molmo).
    pub padded: bool,
    /// The size that an image is brought to before anything else (Jina VLM).
    pub first: Option<SmartResize>,
}

impl OverlappingTiles {
    /// Pixels from one tile to the next.
    pub(super) fn stride(&self) -> u32 {
        self.tile - 2 * self.margin * self.patch
    }

    /// Plans as many tiles as this detail allows, at least one.
    pub(super) fn plan(&self, width: u32, height: u32, detail: ImageDetail) -> Result<ImagePlan> {
        let first = self.first.as_ref().map(|rule| rule.size(width, height)).transpose()?;
        let first = first.filter(|size| *size != (width, height));
        let (width, height) = first.unwrap_or((width, height));
        let mut least = None;
        for most in (1..=self.most).rev() {
            let (rows, columns) = self.arrangement(width, height, most);
            let mut plan = self.in_tiles(rows, columns);
            if self.padded {
                plan.resized = fitted((width, height), plan.resized);
                plan.steps = vec![plan.resized];
            }
            if plan.resized.0.min(plan.resized.1) == 0 {
                break;
            }
            plan.steps.splice(0..0, first);
            if plan.tokens() <= detail.most_tokens() as usize {
                return Ok(plan);
            }
            least = Some(plan);
        }
        least.ok_or(Error::TooNarrow { width, height })
    }

    /// Rows and columns of at most so many tiles: of those that need not shrink the image the one that enlarges it
    /// least, and else the one that shrinks it least (`select_tiling`, in its 32 bit floats). Margins do not count.
    fn arrangement(&self, width: u32, height: u32, most: u32) -> (u32, u32) {
        let margins = self.tile - self.stride();
        let inside = |side: u32| (i64::from(side) - i64::from(margins)) as f32;
        let (width, height) = (inside(width), inside(height));
        let mut tilings: Vec<(u32, u32)> = (1..=most)
            .flat_map(|rows| (1..=most / rows).map(move |columns| (rows, columns)))
            .collect();
        tilings.sort_by_key(|(rows, columns)| (rows * columns, *rows));
        let along = |tiles: u32, side: f32| (tiles * self.stride()) as f32 / side;
        let scale = |(rows, columns): &(u32, u32)| along(*rows, height).min(along(*columns, width));
        let best = |better: &dyn Fn(f32, f32) -> bool, of: &dyn Fn(f32) -> f32| {
            let mut best = tilings[0];
            for tiling in &tilings[1..] {
                if better(of(scale(tiling)), of(scale(&best))) {
                    best = *tiling;
                }
            }
            best
        };
        match tilings.iter().all(|tiling| scale(tiling) < 1.0) {
            true => best(&|a, b| a > b, &|scale| scale),
            false => best(&|a, b| a < b, &|scale| if scale < 1.0 { 1e9 } else { scale }),
        }
    }

    fn in_tiles(&self, rows: u32, columns: u32) -> ImagePlan {
        let patches = self.tile / self.patch;
        let (stride, margins) = (self.stride(), self.tile - self.stride());
        let size = (columns * stride + margins, rows * stride + margins);
        // Patches that a tile keeps, of so many along a side.
        let kept = |tile: u32, tiles: u32| {
            let given = u32::from(tile > 0) + u32::from(tile + 1 < tiles);
            patches - given * self.margin
        };
        let blocks = |tiles: u32| match self.by_tile {
            true => (0..tiles).map(|tile| kept(tile, tiles).div_ceil(self.merge)).sum(),
            false => (0..tiles)
                .map(|tile| kept(tile, tiles))
                .sum::<u32>()
                .div_ceil(self.merge),
        };
        let view = |tokens: (u32, u32)| View {
            width: self.tile,
            height: self.tile,
            patches: (patches, patches),
            tokens,
            features: tokens.0 * tokens.1,
        };
        // The features of all tiles, which make one grid, are counted at the first.
        let mut views = vec![view((0, 0)); (rows * columns) as usize];
        views[0] = view((blocks(rows), blocks(columns)));
        views.push(view((blocks(1), blocks(1))));
        ImagePlan {
            resized: size,
            steps: vec![size],
            views,
            tiles: Some((rows, columns)),
            whole: true,
            joined: None,
        }
    }
}

/// The size of an image in the middle of a canvas (`resize_and_pad` of mlx-vlm's `molmo/processing_molmo.py`, in its 32
/// bit floats).
pub(super) fn fitted((width, height): (u32, u32), canvas: (u32, u32)) -> (u32, u32) {
    let (width, height) = (width as f32, height as f32);
    let scale = (canvas.0 as f32 / width).min(canvas.1 as f32 / height);
    ((width * scale) as u32, (height * scale) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_as_many_as_the_image_needs() {
        let rule = OverlappingTiles {
            tile: 378,
            patch: 14,
            merge: 2,
            margin: 4,
            most: 8,
            by_tile: false,
            padded: false,
            first: None,
        };
        let tiles = |width, height, detail| rule.plan(width, height, detail).ok().and_then(|plan| plan.tiles);
        assert_eq!(tiles(100, 100, ImageDetail::Full), Some((1, 1)));
        assert_eq!(tiles(1920, 1080, ImageDetail::Full), Some((2, 4)));
        assert_eq!(tiles(640, 480, ImageDetail::Full), Some((2, 2)));
        let plan = rule.in_tiles(2, 3);
        // 46 by 65 patches, and 27 by 27.
        assert_eq!((plan.resized, plan.tokens()), ((910, 644), 23 * 33 + 14 * 14));
        let apart = OverlappingTiles {
            by_tile: true,
            ..rule.clone()
        };
        // 12 blocks of each outer tile, 10 of the one between them.
        assert_eq!(apart.in_tiles(2, 3).tokens(), 24 * 34 + 14 * 14);
        let quick = rule.plan(1920, 1080, ImageDetail::Quick).map(|plan| plan.tokens());
        assert!(quick.is_ok_and(|tokens| tokens <= 512));
    }
}
