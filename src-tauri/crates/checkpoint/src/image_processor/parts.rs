//! Parts of which families describe their processors.

use super::processor_config::{ProcessorConfig, HALF};
use super::{Enlarging, Features, Filter, ImageProcessor, Layout, Sizing, SmartResize};
use crate::error::{Error, Result};

/// Mean and deviation of models that take −1 to 1.
pub(crate) const CENTRED: ([f64; 3], [f64; 3]) = (HALF, HALF);
/// Limits of sides, pixels and counts; what lies outside is no processor's.
pub(crate) const SIDE: std::ops::RangeInclusive<u32> = 32..=4096;
pub(crate) const LONGEST: std::ops::RangeInclusive<u32> = 32..=8192;
pub(crate) const PATCH: std::ops::RangeInclusive<u32> = 2..=128;
pub(crate) const MERGE: std::ops::RangeInclusive<u32> = 1..=16;
pub(crate) const FRAMES: std::ops::RangeInclusive<u32> = 1..=8;
pub(crate) const PIXELS: std::ops::RangeInclusive<u32> = 1..=u32::MAX;
pub(crate) const TILES: std::ops::RangeInclusive<u32> = 1..=64;

/// Families whose image is resized by `smart_resize`, to patches in rows and columns.
pub(crate) fn patches(
    processor: &ProcessorConfig,
    patch: u32,
    frames: u32,
    (least, most): (u32, u32),
    adapt: impl Fn(SmartResize) -> SmartResize,
    blocks: bool,
    colours: ([f64; 3], [f64; 3]),
) -> Result<ImageProcessor> {
    let patch = processor.number("patch_size", patch, PATCH)?;
    let merge = processor.number("merge_size", 2, MERGE)?;
    // The older names beat `size`, whose edges are areas in spite of their name.
    let within = |field, edge, default| -> Result<u32> {
        let size = processor.within("size", &[edge, field], PIXELS)?;
        processor.number(field, size.unwrap_or(default), PIXELS)
    };
    let rule = SmartResize {
        patch,
        merge,
        frames: 1,
        min_pixels: within("min_pixels", "shortest_edge", least)?,
        max_pixels: within("max_pixels", "longest_edge", most)?,
        enlarging: Enlarging::None,
        features: Features::Grid,
    };
    Ok(ImageProcessor {
        sizing: Sizing::SmartResize(adapt(rule)),
        filter: processor.filter(Filter::Bicubic)?,
        scaling: processor.scaling(Some(colours))?,
        layout: Layout::Patches {
            side: patch,
            block: if blocks { merge } else { 1 },
            frames: processor.number("temporal_patch_size", frames, FRAMES)?,
            colour_by_colour: true,
        },
    })
}

pub(crate) fn pixel_by_pixel(side: u32) -> Layout {
    Layout::Patches {
        side,
        block: 1,
        frames: 1,
        colour_by_colour: false,
    }
}

pub(crate) fn room_for_a_token(tile: u32, token: u32) -> Result<()> {
    match tile < token {
        true => Err(Error::InvalidProcessor {
            field: "size",
            reason: format!("a tile of {tile} pixels has no room for a token of {token}"),
        }),
        false => Ok(()),
    }
}

/// Every image at one size, pooled to a square of tokens; `patch` is told from width and tokens along a side.
pub(crate) fn one_size(
    processor: &ProcessorConfig,
    side: u32,
    patch: impl FnOnce(u32, u32) -> u32,
    filter: Filter,
    colours: Option<([f64; 3], [f64; 3])>,
) -> Result<ImageProcessor> {
    let (width, height) = processor.sides("size", side, SIDE)?;
    let tokens = processor.model_number(&["mm_tokens_per_image", "vision_soft_tokens_per_image"], 256, 1..=4096)?;
    let tokens = tokens.isqrt();
    let patch = patch(width, tokens);
    room_for_a_token(width.min(height), patch)?;
    Ok(ImageProcessor {
        sizing: Sizing::Fixed {
            width,
            height,
            patch,
            tokens,
        },
        filter: processor.filter(filter)?,
        scaling: processor.scaling(colours)?,
        layout: Layout::Planes,
    })
}
