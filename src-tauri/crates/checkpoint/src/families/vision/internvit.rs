//! InternVL: InternViT (a class token before the patches, learned positions, and factors of what each half of a layer
//! adds) next to a language part of one of several types, in the form of transformers and in its authors'.

use super::shape::{patches_along, square, TowerShape};
use super::VisionConfig;
use crate::config::activation::EncoderActivation;
use crate::config::Fields;
use crate::error::{unusable, Error};
use crate::families::row::{FamilyRow, ProcessorRow, VisionRow};
use crate::families::wrapper::by_language_part;
use crate::image_processor::parts::{room_for_a_token, PATCH, SIDE, TILES};
use crate::image_processor::{
    Filter, ImageProcessor, Layout, ProcessorConfig, RatioTiles, Sizing, TileChoice, CLIP, IMAGENET,
};
use crate::image_prompt::{ImagePrompt, ImageRun};
use crate::memory::VisionCost;

const PROMPT: ImagePrompt = ImagePrompt {
    written: "<IMG_CONTEXT>\n",
    run: ImageRun::Between("<img>", "</img>"),
    ..ImagePrompt::new("<IMG_CONTEXT>")
};

/// The rows of the family.
pub(in crate::families) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::vision(
        "InternVL in the form of transformers",
        &["internvl"],
        by_language_part,
        VisionRow {
            encoder: transformers,
            processor: ProcessorRow::new(&["GotOcr2", "InternVL"], processor),
            prompt: PROMPT,
        },
    ),
    FamilyRow::vision(
        "InternVL",
        &["internvl_chat"],
        by_language_part,
        VisionRow {
            encoder: chat,
            processor: ProcessorRow::always(&["InternVLChat"], chat_processor),
            prompt: PROMPT,
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
            choice: TileChoice::ClosestShape,
        }),
        filter: processor.filter(Filter::Bicubic)?,
        scaling: processor.scaling(Some(colours))?,
        layout: Layout::Planes,
    })
}

/// A tower and what joins it to the language part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InternVitConfig {
    /// The stack.
    pub shape: TowerShape,
    /// True if tensors have the names of transformers' own class; else those of the original code.
    pub transformers: bool,
    /// Patches along a side of a tile.
    pub side: u32,
    /// True if norms are by the root mean square (InternViT of 6 billion parameters).
    pub rms: bool,
    /// True if queries and keys are normed, over all heads together.
    pub qk_norm: bool,
    /// Patches along a side of a block that becomes one token.
    pub merge: u32,
}

/// The original repositories.
fn chat(vision: Fields<'_>, top: Fields<'_>) -> Result<VisionConfig, Error> {
    parse(
        top,
        InternVitConfig {
            shape: shape(vision, [3200, 48, 25, 12_800, 14])?,
            transformers: false,
            side: square(vision, "image_size")?.unwrap_or(224),
            rms: vision.text("norm_type")?.is_none_or(|kind| kind == "rms_norm"),
            qk_norm: vision.flag("qk_normalization")?.unwrap_or(true),
            merge: 0,
        },
    )
}

/// The form of transformers (`-hf`).
fn transformers(vision: Fields<'_>, top: Fields<'_>) -> Result<VisionConfig, Error> {
    if vision.flag("use_mean_pooling")? == Some(false) {
        return Err(Error::Unsupported("a norm after the tower of InternVL".into()));
    }
    parse(
        top,
        InternVitConfig {
            shape: shape(vision, [1024, 24, 16, 4096, 14])?,
            transformers: true,
            side: square(vision, "image_size")?.unwrap_or(448),
            rms: vision.text("norm_type")?.is_some_and(|kind| kind == "rms_norm"),
            qk_norm: vision.flag("use_qk_norm")?.unwrap_or(false),
            merge: 0,
        },
    )
}

fn shape(vision: Fields<'_>, defaults: [u32; 5]) -> Result<TowerShape, Error> {
    let eps = vision.number("layer_norm_eps")?.unwrap_or(1e-6);
    TowerShape::parse(vision, defaults, eps, EncoderActivation::Gelu)
}

/// The rest, for a `side` in pixels.
fn parse(top: Fields<'_>, config: InternVitConfig) -> Result<VisionConfig, Error> {
    let side = patches_along("image_size", config.side, config.shape.patch_size)?;
    let ratio = top.number("downsample_ratio")?.unwrap_or(0.5f32);
    let merge = ratio.recip().round();
    if !(merge >= 1.0 && merge <= side as f32 && side.is_multiple_of(merge as u32)) {
        let reason = format!("{side} rows of patches cannot become {ratio} as many");
        return unusable("downsample_ratio", reason);
    }
    Ok(VisionConfig::InternVit(InternVitConfig {
        side,
        merge: merge as u32,
        ..config
    }))
}

impl InternVitConfig {
    pub(super) fn cost(&self) -> VisionCost {
        self.shape.cost(2, self.side, 1).joined(self.merge)
    }
}
