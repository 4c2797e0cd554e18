//! Rules that cut an image into tiles.

use protocol::ImageDetail;
use serde::Serialize;

use super::view::{merged, single};
use super::{ImagePlan, View};

/// No side is brought to more pixels by Idefics3 than this.
const MAX_SIDE: f64 = 4096.0;

/// Idefics3 and SmolVLM (`do_image_splitting`): the longer side to a size, both up to multiples of the tile, tiles,
/// then the whole in one more.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ImageSplitting {
    /// The length of the longer side after resizing.
    pub longest: u32,
    /// The side of a tile.
    pub tile: u32,
    /// True if there are tiles; otherwise the full image alone.
    pub splitting: bool,
    /// The side of a patch.
    pub patch: u32,
    /// Patches on a side of a token.
    pub merge: u32,
}

impl ImageSplitting {
    pub(super) fn plan(&self, width: u32, height: u32, detail: ImageDetail) -> ImagePlan {
        let mut longest = self.longest;
        loop {
            let plan = self.with_longest(width, height, longest);
            // Fewer tiles on a side, until one alone is left.
            if plan.tokens() <= detail.most_tokens() as usize || longest <= self.tile {
                return plan;
            }
            longest = (longest - 1) / self.tile * self.tile;
        }
    }

    fn with_longest(&self, width: u32, height: u32, longest: u32) -> ImagePlan {
        let tile = f64::from(self.tile);
        let view = merged(self.tile, self.tile, self.patch, self.merge);
        let first = below(to_longest(width, height, f64::from(longest)));
        let first_size = (first.0 as u32, first.1 as u32);
        if !self.splitting {
            return ImagePlan {
                steps: vec![first_size, (self.tile, self.tile)],
                ..single(view)
            };
        }
        let ratio = first.0 / first.1;
        let up = |pixels: f64| (pixels / tile).ceil() * tile;
        let (across, down) = match first.0 >= first.1 {
            true => (up(first.0), up((up(first.0) / ratio).trunc())),
            false => (up((up(first.1) * ratio).trunc()), up(first.1)),
        };
        let size = (across.max(tile) as u32, down.max(tile) as u32);
        let (rows, columns) = (size.1 / self.tile, size.0 / self.tile);
        let tiled = rows * columns > 1;
        ImagePlan {
            resized: size,
            steps: vec![first_size, size],
            views: vec![view; if tiled { (rows * columns + 1) as usize } else { 1 }],
            tiles: tiled.then_some((rows, columns)),
            whole: tiled,
            joined: None,
        }
    }
}

/// The longer side to `longest`, the other one even.
fn to_longest(width: u32, height: u32, longest: f64) -> (f64, f64) {
    let ratio = f64::from(width) / f64::from(height);
    let even = |pixels: f64| if pixels % 2.0 == 0.0 { pixels } else { pixels + 1.0 };
    match width >= height {
        true => (longest, even((longest / ratio).trunc()).max(1.0)),
        false => (even((longest * ratio).trunc()).max(1.0), longest),
    }
}

fn below((width, height): (f64, f64)) -> (f64, f64) {
    let ratio = width / height;
    if width >= height && width > MAX_SIDE {
        (MAX_SIDE, (MAX_SIDE / ratio).trunc().max(1.0))
    } else if height > width && height > MAX_SIDE {
        ((MAX_SIDE * ratio).trunc().max(1.0), MAX_SIDE)
    } else {
        (width, height)
    }
}

/// InternVL, Aya Vision and Command A Vision: tiles in an arrangement of many, then the whole in one more.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RatioTiles {
    /// Width and height of a tile.
    pub tile: (u32, u32),
    /// The fewest tiles.
    pub min_tiles: u32,
    /// The most tiles; 1: the whole alone.
    pub max_tiles: u32,
    /// The side of a patch.
    pub patch: u32,
    /// Patches on a side of a token.
    pub merge: u32,
    /// Which arrangement.
    pub choice: TileChoice,
}

/// How an arrangement of tiles is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TileChoice {
    /// The one whose shape is closest to the image's.
    ClosestShape,
    /// The one into which the image fits with the least enlargement, else with the least reduction (Command A Vision).
    LeastEnlarged,
}

impl RatioTiles {
    pub(super) fn plan(&self, width: u32, height: u32, detail: ImageDetail) -> ImagePlan {
        let view = merged(self.tile.0, self.tile.1, self.patch, self.merge);
        let limit = tile_limit(detail, view.features, view.features);
        let (fewest, most) = (self.min_tiles.min(limit), self.max_tiles.min(limit));
        let (columns, rows) = match most {
            0 | 1 => (1, 1),
            _ => match self.choice {
                TileChoice::ClosestShape => closest(width, height, arrangements(fewest, most), self.tile),
                TileChoice::LeastEnlarged => least_enlarged(width, height, &arrangements(1, most), self.tile),
            },
        };
        if rows * columns == 1 {
            return single(view);
        }
        let size = (columns * self.tile.0, rows * self.tile.1);
        ImagePlan {
            resized: size,
            steps: vec![size],
            views: vec![view; (rows * columns + 1) as usize],
            tiles: Some((rows, columns)),
            whole: true,
            joined: None,
        }
    }
}

/// The most tiles of an image at this detail, given the features of a tile and of the full image.
fn tile_limit(detail: ImageDetail, tile: u32, whole: u32) -> u32 {
    (detail.most_tokens().saturating_sub(whole) / tile.max(1)).max(1)
}

/// Columns and rows of all arrangements within the limits, by their number of tiles, narrow ones first.
pub(super) fn arrangements(fewest: u32, most: u32) -> Vec<(u32, u32)> {
    let all = (1..=most).flat_map(|columns| (1..=most).map(move |rows| (columns, rows)));
    let mut found: Vec<_> = all
        .filter(|(columns, rows)| (fewest..=most).contains(&(columns * rows)))
        .collect();
    found.sort_by_key(|(columns, rows)| columns * rows);
    found
}

/// Columns and rows into which the image fits with the least enlargement; if it fits into none, those that shrink it
/// least. Of equal ones the smallest.
fn least_enlarged(width: u32, height: u32, arrangements: &[(u32, u32)], tile: (u32, u32)) -> (u32, u32) {
    let scale = |(columns, rows): (u32, u32)| {
        let across = f64::from(columns * tile.0) / f64::from(width);
        across.min(f64::from(rows * tile.1) / f64::from(height))
    };
    let better = |best: (u32, u32), other: (u32, u32)| match (scale(best) >= 1.0, scale(other) >= 1.0) {
        (true, true) => scale(other) < scale(best),
        (false, _) => scale(other) > scale(best),
        (true, false) => false,
    };
    let all = arrangements.iter().copied();
    let best = all.reduce(|best, other| if better(best, other) { other } else { best });
    best.unwrap_or((1, 1))
}

/// Columns and rows closest to the image's shape; of equal ones the larger, if the image has half of its pixels.
pub(super) fn closest(width: u32, height: u32, arrangements: Vec<(u32, u32)>, tile: (u32, u32)) -> (u32, u32) {
    let ratio = f64::from(width) / f64::from(height);
    let area = f64::from(width) * f64::from(height);
    let (mut best, mut least) = ((1, 1), f64::INFINITY);
    for (columns, rows) in arrangements {
        let distance = (ratio - f64::from(columns) / f64::from(rows)).abs();
        let covered = f64::from(tile.0) * f64::from(tile.1) * f64::from(columns) * f64::from(rows);
        if distance < least || (distance == least && area > 0.5 * covered) {
            (best, least) = ((columns, rows), distance);
        }
    }
    best
}

/// LFM2-VL: a view of whole tokens within a budget; tiles before it if the image is much larger.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LfmTiles {
    /// The side of a tile.
    pub tile: u32,
    /// The fewest tiles.
    pub min_tiles: u32,
    /// The most tiles; 1: none.
    pub max_tiles: u32,
    /// True if the view follows the tiles.
    pub thumbnail: bool,
    /// The fewest tokens of the view.
    pub min_tokens: u32,
    /// The most tokens of the view.
    pub max_tokens: u32,
    /// By how much an image may be larger than the view before it is cut.
    pub tolerance: f64,
    /// The side of a patch.
    pub patch: u32,
    /// Patches on a side of a token.
    pub merge: u32,
}

impl LfmTiles {
    pub(super) fn plan(&self, width: u32, height: u32, detail: ImageDetail) -> ImagePlan {
        let whole = self.whole(width, height, self.max_tokens.min(detail.most_tokens()));
        let tile = merged(self.tile, self.tile, self.patch, self.merge);
        let limit = tile_limit(detail, tile.features, whole.features);
        let (fewest, most) = (self.min_tiles.min(limit), self.max_tiles.min(limit));
        let (columns, rows) = match self.is_large(width, height) && most > 1 {
            true => closest(width, height, arrangements(fewest, most), (self.tile, self.tile)),
            false => return single(whole),
        };
        let size = (columns * self.tile, rows * self.tile);
        let mut views = vec![tile; (rows * columns) as usize];
        let thumbnail = self.thumbnail && rows * columns > 1;
        if thumbnail {
            views.push(whole);
        }
        ImagePlan {
            resized: size,
            steps: vec![size],
            views,
            tiles: (rows * columns > 1).then_some((rows, columns)),
            whole: thumbnail,
            joined: None,
        }
    }

    fn is_large(&self, width: u32, height: u32) -> bool {
        let factor = f64::from(self.patch * self.merge);
        let round = |pixels: u32| ((f64::from(pixels) / factor).round_ties_even() * factor).max(f64::from(self.patch));
        round(width) * round(height) > f64::from(self.max_tokens) * factor * factor * self.tolerance
    }

    fn whole(&self, width: u32, height: u32, most: u32) -> View {
        let factor = f64::from(self.patch * self.merge);
        let (w, h) = (f64::from(width), f64::from(height));
        let pixels = |tokens: u32| f64::from(tokens) * factor * factor;
        let round = |pixels: f64| ((pixels / factor).round_ties_even() * factor).max(factor);
        let (mut across, mut down) = (round(w), round(h));
        if across * down > pixels(most) {
            let beta = (h * w / pixels(most)).sqrt();
            let fit = |side: f64| ((side / beta / factor).floor() * factor).max(factor);
            (across, down) = (fit(w), fit(h));
        } else if across * down < pixels(self.min_tokens.min(most)) {
            let beta = (pixels(self.min_tokens.min(most)) / (h * w)).sqrt();
            let fit = |side: f64| (side * beta / factor).ceil() * factor;
            (across, down) = (fit(w), fit(h));
        }
        // An image that is all length would be longer than any budget.
        let longest = f64::from(most) * factor;
        merged(
            across.min(longest) as u32,
            down.min(longest) as u32,
            self.patch,
            self.merge,
        )
    }
}

/// Llama 3.2: the smallest canvas of tiles that the image fits into, black where it does not cover it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TiledCanvas {
    /// The side of a tile.
    pub tile: u32,
    /// The most tiles.
    pub max_tiles: u32,
    /// The side of a patch.
    pub patch: u32,
}

impl TiledCanvas {
    pub(super) fn plan(&self, width: u32, height: u32, detail: ImageDetail) -> ImagePlan {
        let most = if detail == ImageDetail::Quick {
            1
        } else {
            self.max_tiles
        };
        let (rows, columns) = self.arrangement(width, height, most);
        let (across, down) = (f64::from(columns * self.tile), f64::from(rows * self.tile));
        let (w, h, tile) = (f64::from(width), f64::from(height), f64::from(self.tile));
        let (target_w, target_h) = (w.clamp(tile, across), h.clamp(tile, down));
        let (by_h, by_w) = (target_h / h, target_w / w);
        let size = match by_w < by_h {
            true => (target_w, (h * by_w).floor().max(1.0).min(target_h)),
            false => ((w * by_h).floor().max(1.0).min(target_w), target_h),
        };
        let size = (size.0 as u32, size.1 as u32);
        let grid = self.tile / self.patch;
        let view = View {
            width: self.tile,
            height: self.tile,
            patches: (grid, grid),
            tokens: (grid, grid),
            features: 0,
        };
        ImagePlan {
            resized: size,
            steps: vec![size],
            views: vec![view; (rows * columns) as usize],
            tiles: Some((rows, columns)),
            whole: false,
            joined: None,
        }
    }

    /// Rows and columns of the canvas that enlarges the image least, else the one that shrinks it least; of equal
    /// ones the smaller.
    fn arrangement(&self, width: u32, height: u32, most: u32) -> (u32, u32) {
        let all: Vec<(u32, u32)> = (1..=most)
            .flat_map(|rows| (1..=most / rows).map(move |columns| (rows, columns)))
            .collect();
        let scale = |(rows, columns): (u32, u32)| {
            let by_h = f64::from(rows * self.tile) / f64::from(height);
            let by_w = f64::from(columns * self.tile) / f64::from(width);
            by_h.min(by_w)
        };
        let scales = || all.iter().map(|arrangement| scale(*arrangement));
        let enlarging = scales().filter(|scale| *scale >= 1.0).fold(f64::INFINITY, f64::min);
        let chosen = match enlarging.is_finite() {
            true => enlarging,
            false => scales().fold(0.0, f64::max),
        };
        let equal = all.iter().copied().filter(|arrangement| scale(*arrangement) == chosen);
        equal.min_by_key(|(rows, columns)| rows * columns).unwrap_or((1, 1))
    }
}
