//! InternVL: InternViT next to a language part of one of several types, in the form of transformers and in its
//! authors'.

use super::row::{FamilyRow, ProcessorRow, VisionRow};
use super::wrapper::by_language_part;
use crate::config::vision::internvit;
use crate::error::Error;
use crate::image_processor::parts::{room_for_a_token, PATCH, SIDE, TILES};
use crate::image_processor::{Filter, ImageProcessor, Layout, ProcessorConfig, RatioTiles, Sizing, CLIP, IMAGENET};
use crate::image_prompt::{ImagePrompt, ImageRun};

const PROMPT: ImagePrompt = ImagePrompt {
    placeholder: "<IMG_CONTEXT>",
    written: "<IMG_CONTEXT>\n",
    feature: "<IMG_CONTEXT>",
    run: ImageRun::Between("<img>", "</img>"),
    ..ImagePrompt::PLAIN
};

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::vision(
        &["internvl"],
        by_language_part,
        VisionRow {
            encoder: internvit::transformers,
            processor: ProcessorRow::new(&["GotOcr2", "InternVL"], processor),
            prompt: PROMPT,
            fixed: false,
        },
    ),
    FamilyRow::vision(
        &["internvl_chat"],
        by_language_part,
        VisionRow {
            encoder: internvit::chat,
            processor: ProcessorRow::always(&["InternVLChat"], chat_processor),
            prompt: PROMPT,
            fixed: false,
        },
    ),
];

/// InternVL as transformers writes it.
fn processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    let tile = processor.sides("size", 384, SIDE)?;
    let max_tiles = processor.number("max_patches", 12, TILES)?;
    let crops = processor.flag("crop_to_patches", false)?;
    tiles_of(
        processor,
        tile,
        processor.number("min_patches", 1, TILES)?,
        if crops { max_tiles } else { 1 },
        CLIP,
    )
}

/// InternVL as its authors wrote it, whose tiles are described by `config.json`.
fn chat_processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    let side = processor.model_number(&["force_image_size", "vision_config.image_size"], 448, SIDE)?;
    let min_tiles = processor.model_number(&["min_dynamic_patch"], 1, TILES)?;
    let max_tiles = processor.model_number(&["max_dynamic_patch"], 12, TILES)?;
    tiles_of(processor, (side, side), min_tiles, max_tiles, IMAGENET)
}

fn tiles_of(
    processor: &ProcessorConfig,
    tile: (u32, u32),
    min_tiles: u32,
    max_tiles: u32,
    colours: ([f64; 3], [f64; 3]),
) -> Result<ImageProcessor, Error> {
    let patch = processor.model_number(&["vision_config.patch_size"], 14, PATCH)?;
    let ratio = processor.model_fraction("downsample_ratio", 0.5, 0.05..=1.0)?;
    let merge = (1.0 / ratio).round() as u32;
    room_for_a_token(tile.0.min(tile.1), patch * merge)?;
    Ok(ImageProcessor {
        sizing: Sizing::RatioTiles(RatioTiles {
            tile,
            min_tiles,
            max_tiles,
            patch,
            merge,
        }),
        filter: processor.filter(Filter::Bicubic)?,
        scaling: processor.scaling(Some(colours))?,
        layout: Layout::Planes,
    })
}
