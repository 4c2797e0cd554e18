//! The rules by which families choose the size of an image.

use protocol::ImageDetail;
use serde::Serialize;

use super::overlapping_tiles::fitted;
use super::padded_tiles::contained;
use super::quarters::quarter;
use super::view::{merged, single};
use super::{
    AnyResolution, CornerTiles, Cropped, CroppedTiles, Filter, ImagePlan, ImageSplitting, LfmTiles, NaFlex,
    OverlappingTiles, PaddedTiles, Part, PatchBudget, Quarters, RatioTiles, Slices, SmartResize, StretchedTiles,
    TiledCanvas, View,
};
use crate::error::{Error, Result};

/// Tokens that an image of Gemma 4 may have, and what it has unless a config says otherwise.
const BUDGETS: [u32; 5] = [70, 140, 280, 560, 1120];
const USUAL_BUDGET: u32 = 280;

/// How an image's size is chosen.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Sizing {
    /// Both sides multiples of a factor, within limits of the area (Qwen and families with the same rule).
    SmartResize(SmartResize),
    /// Always the same size, whatever the image's shape (Gemma 3, Gemma 3n).
    Fixed {
        /// Pixels in a row.
        width: u32,
        /// Rows.
        height: u32,
        /// The side of a patch.
        patch: u32,
        /// Tokens on a side.
        tokens: u32,
    },
    /// As large as a budget of tokens allows, small images too (Gemma 4).
    Budget {
        /// The side of a patch.
        patch: u32,
        /// Patches on a side of a token.
        pool: u32,
        /// The most tokens.
        tokens: u32,
    },
    /// At most so large, then up to whole tokens (Pixtral, Mistral 3).
    Longest {
        /// The longest row.
        width: u32,
        /// The most rows.
        height: u32,
        /// The side of a patch.
        patch: u32,
        /// Patches on a side of a token.
        merge: u32,
    },
    /// Tiles of the image brought to a multiple of their side, then the whole (Idefics3, SmolVLM).
    ImageSplitting(ImageSplitting),
    /// Tiles in the arrangement that comes closest to the image's shape, then the whole (InternVL).
    RatioTiles(RatioTiles),
    /// A view of its own shape, or such tiles if it is large (LFM2-VL).
    LfmTiles(LfmTiles),
    /// At most so many patches, then black up to whole tokens (Kimi-VL).
    Padded(Padded),
    /// Tiles of a canvas in whose corner the image stands (Llama 3.2).
    TiledCanvas(TiledCanvas),
    /// A square, with the mean color on both sides of the shorter one before it is resized, which is black in FastVLM
    /// (FastVLM, Bunny).
    Square {
        /// Its side.
        side: u32,
        /// The side of a patch.
        patch: u32,
    },
    /// The longer side to that of a square, in whose middle the image stands on the mean color (Janus).
    Boxed {
        /// The side of the square.
        side: u32,
        /// The shortest side of the image in it.
        least: u32,
        /// The side of a patch.
        patch: u32,
    },
    /// Whole patches, as many as the image has itself within limits (Phi 4).
    NaFlex(NaFlex),
    /// Whole tokens, as many as the image has itself within a budget (Nemotron Nano Omni).
    PatchBudget(PatchBudget),
    /// Slices of about the size of a square, and the whole (MiniCPM-V).
    Slices(Slices),
    /// The middle of the image (LLaVA 1.5).
    Cropped(Cropped),
    /// Tiles of a canvas in whose middle the image stands, and the whole (LLaVA-NeXT, LLaVA-OneVision).
    AnyResolution(AnyResolution),
    /// The image stretched to whole tiles, then the same in one more (Phi 3 Vision).
    StretchedTiles(StretchedTiles),
    /// Tiles of a canvas in whose corner the image stands on white, and the whole canvas (Phi 4 Multimodal).
    CornerTiles(CornerTiles),
    /// Tiles of a canvas in whose middle the image stands on the mean color, and the whole so on one tile
    /// (DeepSeek-VL2).
    PaddedTiles(PaddedTiles),
    /// Tiles of a large image, then the whole on the mean color of a larger square (DeepSeek-OCR).
    CroppedTiles(CroppedTiles),
    /// Tiles of the stretched image that share patches with their neighbors, and the whole (Molmo, Jina VLM).
    OverlappingTiles(OverlappingTiles),
    /// The quarters of the image, each brought to a size of its own, then the whole (Idefics 2).
    Quarters(Quarters),
}

impl Sizing {
    /// True if the full view after the tiles is made of what the first of several steps made.
    pub fn whole_is_of_first_step(&self) -> bool {
        matches!(self, Self::OverlappingTiles(rule) if rule.first.is_some())
    }

    /// True if the full view after the tiles is made from the original, not from the resized image that was cut.
    pub fn whole_is_of_original(&self) -> bool {
        !matches!(
            self,
            Self::ImageSplitting(_) | Self::StretchedTiles(_) | Self::CornerTiles(_)
        )
    }

    /// True if images become squares before they are resized.
    pub fn is_squared(&self) -> bool {
        matches!(self, Self::Square { .. })
    }

    /// True if the middle of the resized image is that of what the tower sees; otherwise their corners are the same.
    pub fn is_centered(&self) -> bool {
        if let Self::OverlappingTiles(rule) = self {
            return rule.padded;
        }
        matches!(
            self,
            Self::Cropped(_)
                | Self::AnyResolution(_)
                | Self::Boxed { .. }
                | Self::PaddedTiles(_)
                | Self::CroppedTiles(_)
        )
    }

    /// True if the mean color lies around images, and not black.
    pub fn is_on_mean(&self) -> bool {
        matches!(
            self,
            Self::Square { .. } | Self::Boxed { .. } | Self::PaddedTiles(_) | Self::CroppedTiles(_)
        )
    }

    /// True if white lies around images.
    pub fn is_on_white(&self) -> bool {
        matches!(self, Self::CornerTiles(_))
    }

    /// The filter by which the view of the whole is resized, if others are by this one.
    pub fn whole_filter(&self, usual: Filter) -> Filter {
        match self {
            Self::CornerTiles(_) => Filter::Bicubic,
            _ => usual,
        }
    }

    /// Pixels from one tile of this side to the next.
    pub fn stride(&self, tile: u32) -> u32 {
        match self {
            Self::OverlappingTiles(rule) => rule.stride(),
            _ => tile,
        }
    }

    /// The part of an image of this size that the view of this index shows, if it is brought to its size by itself.
    pub fn part(&self, index: usize, image: (u32, u32)) -> Option<Part> {
        match self {
            Self::Quarters(_) => Some(quarter(index as u32, image)),
            _ => None,
        }
    }

    /// Pixels before an image in the middle of what has so many more than it.
    pub fn before(&self, room: u32) -> u32 {
        match self {
            // A half goes to the even number, as Python rounds.
            Self::PaddedTiles(_) | Self::CroppedTiles(_) => room / 2 + ((room % 2) & (room / 2 % 2)),
            Self::CornerTiles(_) => 0,
            _ => room / 2,
        }
    }

    /// The size that an image of this size is brought to for the view of the whole.
    pub fn whole_size(&self, image: (u32, u32), view: (u32, u32)) -> (u32, u32) {
        match self {
            Self::PaddedTiles(_) | Self::CroppedTiles(_) => contained(image, view),
            Self::OverlappingTiles(rule) if rule.padded => fitted(image, view),
            Self::CornerTiles(rule) => rule.share(image, view),
            _ => view,
        }
    }

    pub(super) fn plan(&self, width: u32, height: u32, detail: ImageDetail) -> Result<ImagePlan> {
        match self {
            Self::SmartResize(rule) => rule.plan(width, height, detail),
            Self::Fixed {
                width,
                height,
                patch,
                tokens,
            } => Ok(single(View {
                width: *width,
                height: *height,
                patches: (height / patch, width / patch),
                tokens: (*tokens, *tokens),
                features: tokens * tokens,
            })),
            Self::Budget { patch, pool, tokens } => budget(width, height, *patch, *pool, allowed(*tokens, detail)),
            Self::Longest {
                width: w,
                height: h,
                patch,
                merge,
            } => Ok(longest((width, height), (*w, *h), *patch, *merge, detail)),
            Self::ImageSplitting(rule) => Ok(rule.plan(width, height, detail)),
            Self::RatioTiles(tiles) => Ok(tiles.plan(width, height, detail)),
            Self::LfmTiles(tiles) => Ok(tiles.plan(width, height, detail)),
            Self::Padded(rule) => Ok(rule.plan(width, height, detail)),
            Self::TiledCanvas(rule) => Ok(rule.plan(width, height, detail)),
            Self::Square { side, patch } => Ok(single(merged(*side, *side, *patch, 1))),
            Self::Boxed { side, least, patch } => Ok(boxed((width, height), *side, *least, *patch)),
            Self::NaFlex(rule) => Ok(rule.plan(width, height, detail)),
            Self::PatchBudget(rule) => rule.plan(width, height, detail),
            Self::Slices(rule) => Ok(rule.plan(width, height, detail)),
            Self::Cropped(rule) => rule.plan(width, height),
            Self::AnyResolution(rule) => Ok(rule.plan(width, height, detail)),
            Self::StretchedTiles(rule) => rule.plan(width, height, detail),
            Self::CornerTiles(rule) => rule.plan(width, height, detail),
            Self::PaddedTiles(rule) => rule.plan(width, height, detail),
            Self::CroppedTiles(rule) => rule.plan(width, height, detail),
            Self::OverlappingTiles(rule) => rule.plan(width, height, detail),
            Self::Quarters(rule) => rule.plan(width, height, detail),
        }
    }
}

/// An image as it is, or smaller if it has too many patches, with black to its right and below (`navit_resize` in
/// transformers' `image_processing_kimi_k25.py`).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Padded {
    /// The side of a patch.
    pub patch: u32,
    /// Patches on a side of a token.
    pub merge: u32,
    /// The most patches.
    pub patches: u32,
    /// The most patches along a side.
    pub side: u32,
}

impl Padded {
    fn plan(&self, width: u32, height: u32, detail: ImageDetail) -> ImagePlan {
        let (patch, unit) = (self.patch, self.patch * self.merge);
        let most = self
            .patches
            .min(detail.most_tokens().saturating_mul(self.merge * self.merge));
        let count = f64::from((width / patch).max(1)) * f64::from((height / patch).max(1));
        let longest = self.side * patch;
        let along = |side: u32| f64::from(longest) / f64::from(side);
        let scale = (f64::from(most) / count).sqrt().min(along(width)).min(along(height));
        let scale = scale.min(1.0);
        let sized = |side: u32| ((f64::from(side) * scale) as u32).clamp(1, longest);
        let size = (sized(width), sized(height));
        let padded = |side: u32| side.div_ceil(unit) * unit;
        let (across, down) = (padded(size.0), padded(size.1));
        let tokens = (down / unit, across / unit);
        ImagePlan {
            resized: size,
            steps: vec![size],
            views: vec![View {
                width: across,
                height: down,
                patches: (down / patch, across / patch),
                tokens,
                features: tokens.0 * tokens.1,
            }],
            tiles: None,
            whole: false,
            joined: None,
        }
    }
}

/// The budget at this detail: the config's own, or the largest below the limit. Full detail means the largest that
/// Gemma 4 was trained with, unless the config asks for an unusual one.
fn allowed(tokens: u32, detail: ImageDetail) -> u32 {
    let most = detail.most_tokens();
    match detail {
        ImageDetail::Full if tokens == USUAL_BUDGET => BUDGETS[BUDGETS.len() - 1],
        _ if tokens <= most => tokens,
        _ => BUDGETS
            .into_iter()
            .rev()
            .find(|budget| *budget <= most)
            .unwrap_or(BUDGETS[0]),
    }
}

fn budget(width: u32, height: u32, patch: u32, pool: u32, tokens: u32) -> Result<ImagePlan> {
    let side = patch * pool;
    let (w, h) = (f64::from(width), f64::from(height));
    let target = f64::from(tokens * pool * pool) * f64::from(patch * patch);
    let factor = (target / (h * w)).sqrt();
    let fit = |ideal: f64| ((ideal / f64::from(side)).floor() as u32).saturating_mul(side);
    let (mut across, mut down) = (fit(factor * w), fit(factor * h));
    let most = tokens * side;
    match (across, down) {
        (0, 0) => return Err(Error::TooNarrow { width, height }),
        (_, 0) => (across, down) = ((width / height).saturating_mul(side).min(most), side),
        (0, _) => (across, down) = (side, (height / width).saturating_mul(side).min(most)),
        _ => {}
    }
    Ok(single(merged(across, down, patch, pool)))
}

fn boxed((width, height): (u32, u32), side: u32, least: u32, patch: u32) -> ImagePlan {
    let longer = f64::from(width.max(height));
    let sized = |pixels: u32| ((f64::from(pixels) / longer * f64::from(side)) as u32).max(least);
    let size = (sized(width), sized(height));
    ImagePlan {
        resized: size,
        steps: vec![size],
        ..single(merged(side, side, patch, 1))
    }
}

fn longest(size: (u32, u32), mut most: (u32, u32), patch: u32, merge: u32, detail: ImageDetail) -> ImagePlan {
    let side = patch * merge;
    let (w, h) = (f64::from(size.0), f64::from(size.1));
    loop {
        let ratio = (h / f64::from(most.1)).max(w / f64::from(most.0));
        let (across, down) = match ratio > 1.0 {
            true => ((w / ratio).floor(), (h / ratio).floor()),
            false => (w, h),
        };
        let up = |pixels: f64| (pixels.max(1.0) as u32).div_ceil(side) * side;
        let view = merged(up(across), up(down), patch, merge);
        // Rows and columns shrink with the limit until they fit.
        let shrink = (f64::from(detail.most_tokens()) / f64::from(view.features)).sqrt();
        if shrink >= 1.0 || most.0.max(most.1) <= side {
            return single(view);
        }
        let now = (across.max(1.0), down.max(1.0));
        let less = |limit: u32, now: f64| ((f64::from(limit).min(now) * shrink) as u32).clamp(1, limit.max(2) - 1);
        most = (less(most.0, now.0.max(now.1)), less(most.1, now.0.max(now.1)));
    }
}
