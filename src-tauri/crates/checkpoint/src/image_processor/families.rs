//! What each processor does unless its file says otherwise.

use super::processor_config::{ProcessorConfig, CLIP, HALF, IMAGENET};
use super::{Enlarging, Features, Filter, ImageProcessor, ImageSplitting, Layout, LfmTiles, RatioTiles, Sizing, SmartResize, TiledCanvas};
use crate::{Error, Result};

/// Mean and deviation of models that take −1 to 1.
const CENTRED: ([f64; 3], [f64; 3]) = (HALF, HALF);
/// Limits of sides, pixels and counts; what lies outside is no processor's.
const SIDE: std::ops::RangeInclusive<u32> = 32..=4096;
const LONGEST: std::ops::RangeInclusive<u32> = 32..=8192;
const PATCH: std::ops::RangeInclusive<u32> = 2..=128;
const MERGE: std::ops::RangeInclusive<u32> = 1..=16;
const FRAMES: std::ops::RangeInclusive<u32> = 1..=8;
const PIXELS: std::ops::RangeInclusive<u32> = 1..=u32::MAX;
const TILES: std::ops::RangeInclusive<u32> = 1..=64;

/// The processor that this configuration describes.
pub(super) fn describe(processor: &ProcessorConfig) -> Result<ImageProcessor> {
    // Repositories of these families name processors of others, or none.
    let name = match processor.model_type() {
        "falcon_ocr" => "FalconOCRImageProcessor",
        "internvl_chat" => "InternVLChatImageProcessor",
        "paddleocr_vl" => "PaddleOCRVLImageProcessor",
        "gemma3n" => "Gemma3nImageProcessor",
        model_type => match processor.name() {
            Some(name) => name,
            None => usual(model_type).ok_or_else(|| Error::UnknownProcessor(format!("the processor of {model_type}")))?,
        },
    };
    match name
        .strip_suffix("VideoProcessor")
        .or(name.strip_suffix("ImageProcessor"))
        .unwrap_or(name)
    {
        "Qwen2VL" | "Qwen2_5_VL" | "Qwen3VL" => {
            let limits = (3_136, 1_003_520);
            patches(processor, 14, 2, limits, |rule| rule, true, CLIP)
        }
        "Ernie4_5_VLMoe" | "Ernie4_5_VL_Moe" => patches(processor, 14, 1, (3_136, 4_842_768), |rule| rule, true, CLIP),
        "Glm4v" | "Glm46V" => {
            let frames = processor.number("temporal_patch_size", 2, FRAMES)?;
            let counted = |rule| SmartResize {
                frames,
                enlarging: Enlarging::Together,
                ..rule
            };
            patches(processor, 14, 2, (12_544, 11_760_000), counted, true, CLIP)
        }
        "PaddleOCRVL" => {
            let in_turn = |rule| SmartResize {
                enlarging: Enlarging::InTurn,
                ..rule
            };
            patches(processor, 14, 1, (147_456, 2_359_296), in_turn, false, CLIP)
        }
        "HunYuanVL" => {
            let rows = |rule| SmartResize {
                features: Features::Rows,
                ..rule
            };
            // Its file says Lanczos, its own code resizes by Pillow's default.
            let described = patches(processor, 16, 1, (262_144, 4_194_304), rows, false, CLIP)?;
            Ok(ImageProcessor {
                filter: Filter::Bicubic,
                ..described
            })
        }
        "FalconOCR" => falcon_ocr(processor),
        "Gemma3" | "Gemma3n" | "Siglip" => fixed(processor, name),
        "Gemma4" => gemma4(processor),
        "Pixtral" => pixtral(processor),
        "Idefics3" | "SmolVLM" => image_splitting(processor),
        "GotOcr2" | "InternVL" => ratio_tiles(processor),
        "InternVLChat" => internvl_chat(processor),
        "Lfm2Vl" => lfm2(processor),
        "Mllama" => tiled_canvas(processor),
        _ => Err(Error::UnknownProcessor(name.to_owned())),
    }
}

/// The processor of a family whose file does not name one.
fn usual(model_type: &str) -> Option<&'static str> {
    Some(match model_type {
        "qwen2_vl" | "qwen2_5_vl" | "qwen3_vl" | "qwen3_vl_moe" | "qwen3_5" | "qwen3_5_moe" | "qwen3_omni_moe" => "Qwen2VLImageProcessor",
        "ernie4_5_moe_vl" | "ernie4_5_vl_moe" => "Ernie4_5_VLMoeImageProcessor",
        "glm4v" | "glm4v_moe" | "glm_ocr" => "Glm4vImageProcessor",
        "hunyuan_vl" => "HunYuanVLImageProcessor",
        "gemma3" => "Gemma3ImageProcessor",
        "gemma4" => "Gemma4ImageProcessor",
        "pixtral" | "mistral3" => "PixtralImageProcessor",
        "idefics3" | "smolvlm" => "Idefics3ImageProcessor",
        "internvl" => "GotOcr2ImageProcessor",
        "lfm2_vl" | "lfm2-vl" => "Lfm2VlImageProcessor",
        "mllama" => "MllamaImageProcessor",
        _ => return None,
    })
}

/// Families whose picture is resized by `smart_resize`, to patches in rows and columns.
fn patches(
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

fn falcon_ocr(processor: &ProcessorConfig) -> Result<ImageProcessor> {
    let patch = processor.model_number(&["spatial_patch_size"], 16, PATCH)?;
    Ok(ImageProcessor {
        sizing: Sizing::SmartResize(SmartResize {
            patch,
            merge: 1,
            frames: 1,
            min_pixels: 3_136,
            max_pixels: 1_003_520,
            enlarging: Enlarging::Between {
                shortest: 64,
                longest: 1024,
            },
            features: Features::Grid,
        }),
        filter: Filter::Bicubic,
        scaling: processor.scaling(Some(CENTRED))?,
        layout: pixel_by_pixel(patch),
    })
}

fn pixel_by_pixel(side: u32) -> Layout {
    Layout::Patches {
        side,
        block: 1,
        frames: 1,
        colour_by_colour: false,
    }
}

fn fixed(processor: &ProcessorConfig, name: &str) -> Result<ImageProcessor> {
    let nano = name.starts_with("Gemma3n");
    let (width, height) = processor.sides("size", if nano { 768 } else { 224 }, SIDE)?;
    let tokens = processor.model_number(&["mm_tokens_per_image", "vision_soft_tokens_per_image"], 256, 1..=4096)?;
    let tokens = tokens.isqrt();
    // The convolutions of Gemma 3n have no patches: its grid is that of its features.
    let patch = match nano {
        true => (width / tokens).max(1),
        false => processor.model_number(&["vision_config.patch_size"], 14, PATCH)?,
    };
    room_for_a_token(width.min(height), patch)?;
    Ok(ImageProcessor {
        sizing: Sizing::Fixed {
            width,
            height,
            patch,
            tokens,
        },
        filter: processor.filter(if name.starts_with("Siglip") {
            Filter::Bicubic
        } else {
            Filter::Bilinear
        })?,
        scaling: processor.scaling((!nano).then_some(CENTRED))?,
        layout: Layout::Planes,
    })
}

fn gemma4(processor: &ProcessorConfig) -> Result<ImageProcessor> {
    let patch = processor.number("patch_size", 16, PATCH)?;
    Ok(ImageProcessor {
        sizing: Sizing::Budget {
            patch,
            pool: processor.number("pooling_kernel_size", 3, MERGE)?,
            tokens: processor.number("max_soft_tokens", 280, 1..=1120)?,
        },
        filter: processor.filter(Filter::Bicubic)?,
        scaling: processor.scaling(None)?,
        layout: pixel_by_pixel(patch),
    })
}

fn pixtral(processor: &ProcessorConfig) -> Result<ImageProcessor> {
    let (written, _) = processor.sides("patch_size", 16, PATCH)?;
    let patch = processor.model_number(&["vision_config.patch_size"], written, PATCH)?;
    let longest = processor.within("size", &["longest_edge"], LONGEST)?;
    let (width, height) = processor.sides("size", longest.unwrap_or(1024), LONGEST)?;
    Ok(ImageProcessor {
        sizing: Sizing::Longest {
            width,
            height,
            patch,
            merge: processor.model_number(&["spatial_merge_size"], 1, MERGE)?,
        },
        filter: processor.filter(Filter::Bicubic)?,
        scaling: processor.scaling(Some(CLIP))?,
        layout: Layout::Planes,
    })
}

fn image_splitting(processor: &ProcessorConfig) -> Result<ImageProcessor> {
    let tile = processor.within("max_image_size", &["longest_edge"], SIDE)?.unwrap_or(364);
    let patch = processor.model_number(&["vision_config.patch_size"], 14, PATCH)?;
    let merge = processor.model_number(&["scale_factor"], 2, MERGE)?;
    room_for_a_token(tile, patch * merge)?;
    Ok(ImageProcessor {
        sizing: Sizing::ImageSplitting(ImageSplitting {
            longest: processor.within("size", &["longest_edge"], LONGEST)?.unwrap_or(1456),
            tile,
            splitting: processor.flag("do_image_splitting", true)?,
            patch,
            merge,
        }),
        filter: processor.filter(Filter::Lanczos)?,
        scaling: processor.scaling(Some(CENTRED))?,
        layout: Layout::Planes,
    })
}

fn room_for_a_token(tile: u32, token: u32) -> Result<()> {
    match tile < token {
        true => Err(Error::InvalidProcessor {
            field: "size",
            reason: format!("a tile of {tile} pixels has no room for a token of {token}"),
        }),
        false => Ok(()),
    }
}

/// InternVL as transformers writes it.
fn ratio_tiles(processor: &ProcessorConfig) -> Result<ImageProcessor> {
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
fn internvl_chat(processor: &ProcessorConfig) -> Result<ImageProcessor> {
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
) -> Result<ImageProcessor> {
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

fn lfm2(processor: &ProcessorConfig) -> Result<ImageProcessor> {
    let patch = processor.number("encoder_patch_size", 16, PATCH)?;
    let merge = processor.number("downsample_factor", 2, MERGE)?;
    let tile = processor.number("tile_size", 512, SIDE)?;
    room_for_a_token(tile, patch * merge)?;
    let splitting = processor.flag("do_image_splitting", true)?;
    let max_tiles = processor.number("max_tiles", 10, TILES)?;
    Ok(ImageProcessor {
        sizing: Sizing::LfmTiles(LfmTiles {
            tile,
            min_tiles: processor.number("min_tiles", 2, TILES)?.min(max_tiles),
            max_tiles: if splitting { max_tiles } else { 1 },
            thumbnail: processor.flag("use_thumbnail", true)?,
            min_tokens: processor.number("min_image_tokens", 64, 1..=16_384)?,
            max_tokens: processor.number("max_image_tokens", 256, 1..=16_384)?,
            tolerance: processor.fraction("max_pixels_tolerance", 2.0, 0.01..=1e6)?,
            patch,
            merge,
        }),
        filter: processor.filter(Filter::Bilinear)?,
        scaling: processor.scaling(Some(CENTRED))?,
        layout: pixel_by_pixel(patch),
    })
}

fn tiled_canvas(processor: &ProcessorConfig) -> Result<ImageProcessor> {
    let (tile, _) = processor.sides("size", 224, SIDE)?;
    let patch = processor.model_number(&["vision_config.patch_size"], 14, PATCH)?;
    room_for_a_token(tile, patch)?;
    Ok(ImageProcessor {
        sizing: Sizing::TiledCanvas(TiledCanvas {
            tile,
            max_tiles: processor.number("max_image_tiles", 4, 1..=16)?,
            patch,
        }),
        filter: processor.filter(Filter::Bilinear)?,
        scaling: processor.scaling(Some(CENTRED))?,
        layout: Layout::Planes,
    })
}
