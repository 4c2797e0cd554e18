//! What each processor does unless its file says otherwise.

use super::settings::{Settings, CLIP, HALF, IMAGENET};
use super::{Area, Canvas, Enlarging, Features, Filter, ImageProcessor, Layout, LfmTiles, RatioTiles, Sizing, Splits};
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

/// The processor that these settings describe.
pub(super) fn describe(settings: &Settings) -> Result<ImageProcessor> {
    // Repositories of these families name processors of others, or none.
    let name = match settings.model_type() {
        "falcon_ocr" => "FalconOCRImageProcessor",
        "internvl_chat" => "InternVLChatImageProcessor",
        "paddleocr_vl" => "PaddleOCRVLImageProcessor",
        "gemma3n" => "Gemma3nImageProcessor",
        model_type => match settings.name() {
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
            patches(settings, 14, 2, limits, |area| area, true, CLIP)
        }
        "Ernie4_5_VLMoe" | "Ernie4_5_VL_Moe" => patches(settings, 14, 1, (3_136, 4_842_768), |area| area, true, CLIP),
        "Glm4v" | "Glm46V" => {
            let frames = settings.number("temporal_patch_size", 2, FRAMES)?;
            let counted = |area| Area {
                frames,
                enlarging: Enlarging::Together,
                ..area
            };
            patches(settings, 14, 2, (12_544, 11_760_000), counted, true, CLIP)
        }
        "PaddleOCRVL" => {
            let in_turn = |area| Area {
                enlarging: Enlarging::InTurn,
                ..area
            };
            patches(settings, 14, 1, (147_456, 2_359_296), in_turn, false, CLIP)
        }
        "HunYuanVL" => {
            let rows = |area| Area {
                features: Features::Rows,
                ..area
            };
            // Its file says Lanczos, its own code resizes by Pillow's default.
            let described = patches(settings, 16, 1, (262_144, 4_194_304), rows, false, CLIP)?;
            Ok(ImageProcessor {
                filter: Filter::Bicubic,
                ..described
            })
        }
        "FalconOCR" => falcon_ocr(settings),
        "Gemma3" | "Gemma3n" | "Siglip" => fixed(settings, name),
        "Gemma4" => gemma4(settings),
        "Pixtral" => pixtral(settings),
        "Idefics3" | "SmolVLM" => splits(settings),
        "GotOcr2" | "InternVL" => ratio_tiles(settings),
        "InternVLChat" => internvl_chat(settings),
        "Lfm2Vl" => lfm2(settings),
        "Mllama" => canvas(settings),
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

/// Families whose picture is an area of patches.
fn patches(
    settings: &Settings,
    patch: u32,
    frames: u32,
    (least, most): (u32, u32),
    adapt: impl Fn(Area) -> Area,
    blocks: bool,
    colours: ([f64; 3], [f64; 3]),
) -> Result<ImageProcessor> {
    let patch = settings.number("patch_size", patch, PATCH)?;
    let merge = settings.number("merge_size", 2, MERGE)?;
    // The older names beat `size`, whose edges are areas in spite of their name.
    let within = |field, edge, default| -> Result<u32> {
        let size = settings.within("size", &[edge, field], PIXELS)?;
        settings.number(field, size.unwrap_or(default), PIXELS)
    };
    let area = Area {
        patch,
        merge,
        frames: 1,
        min_pixels: within("min_pixels", "shortest_edge", least)?,
        max_pixels: within("max_pixels", "longest_edge", most)?,
        enlarging: Enlarging::None,
        features: Features::Grid,
    };
    Ok(ImageProcessor {
        sizing: Sizing::Area(adapt(area)),
        filter: settings.filter(Filter::Bicubic)?,
        scaling: settings.scaling(Some(colours))?,
        layout: Layout::Patches {
            side: patch,
            block: if blocks { merge } else { 1 },
            frames: settings.number("temporal_patch_size", frames, FRAMES)?,
            colour_by_colour: true,
        },
    })
}

fn falcon_ocr(settings: &Settings) -> Result<ImageProcessor> {
    let patch = settings.config(&["spatial_patch_size"], 16, PATCH)?;
    Ok(ImageProcessor {
        sizing: Sizing::Area(Area {
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
        scaling: settings.scaling(Some(CENTRED))?,
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

fn fixed(settings: &Settings, name: &str) -> Result<ImageProcessor> {
    let nano = name.starts_with("Gemma3n");
    let (width, height) = settings.sides("size", if nano { 768 } else { 224 }, SIDE)?;
    let tokens = settings.config(&["mm_tokens_per_image", "vision_soft_tokens_per_image"], 256, 1..=4096)?;
    let tokens = tokens.isqrt();
    // The convolutions of Gemma 3n have no patches: its grid is that of its features.
    let patch = match nano {
        true => (width / tokens).max(1),
        false => settings.config(&["vision_config.patch_size"], 14, PATCH)?,
    };
    room_for_a_token(width.min(height), patch)?;
    Ok(ImageProcessor {
        sizing: Sizing::Fixed {
            width,
            height,
            patch,
            tokens,
        },
        filter: settings.filter(if name.starts_with("Siglip") {
            Filter::Bicubic
        } else {
            Filter::Bilinear
        })?,
        scaling: settings.scaling((!nano).then_some(CENTRED))?,
        layout: Layout::Planes,
    })
}

fn gemma4(settings: &Settings) -> Result<ImageProcessor> {
    let patch = settings.number("patch_size", 16, PATCH)?;
    Ok(ImageProcessor {
        sizing: Sizing::Budget {
            patch,
            pool: settings.number("pooling_kernel_size", 3, MERGE)?,
            tokens: settings.number("max_soft_tokens", 280, 1..=1120)?,
        },
        filter: settings.filter(Filter::Bicubic)?,
        scaling: settings.scaling(None)?,
        layout: pixel_by_pixel(patch),
    })
}

fn pixtral(settings: &Settings) -> Result<ImageProcessor> {
    let (written, _) = settings.sides("patch_size", 16, PATCH)?;
    let patch = settings.config(&["vision_config.patch_size"], written, PATCH)?;
    let longest = settings.within("size", &["longest_edge"], LONGEST)?;
    let (width, height) = settings.sides("size", longest.unwrap_or(1024), LONGEST)?;
    Ok(ImageProcessor {
        sizing: Sizing::Longest {
            width,
            height,
            patch,
            merge: settings.config(&["spatial_merge_size"], 1, MERGE)?,
        },
        filter: settings.filter(Filter::Bicubic)?,
        scaling: settings.scaling(Some(CLIP))?,
        layout: Layout::Planes,
    })
}

fn splits(settings: &Settings) -> Result<ImageProcessor> {
    let tile = settings.within("max_image_size", &["longest_edge"], SIDE)?.unwrap_or(364);
    let patch = settings.config(&["vision_config.patch_size"], 14, PATCH)?;
    let merge = settings.config(&["scale_factor"], 2, MERGE)?;
    room_for_a_token(tile, patch * merge)?;
    Ok(ImageProcessor {
        sizing: Sizing::Splits(Splits {
            longest: settings.within("size", &["longest_edge"], LONGEST)?.unwrap_or(1456),
            tile,
            splitting: settings.flag("do_image_splitting", true)?,
            patch,
            merge,
        }),
        filter: settings.filter(Filter::Lanczos)?,
        scaling: settings.scaling(Some(CENTRED))?,
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
fn ratio_tiles(settings: &Settings) -> Result<ImageProcessor> {
    let tile = settings.sides("size", 384, SIDE)?;
    let max_tiles = settings.number("max_patches", 12, TILES)?;
    let crops = settings.flag("crop_to_patches", false)?;
    tiles_of(
        settings,
        tile,
        settings.number("min_patches", 1, TILES)?,
        if crops { max_tiles } else { 1 },
        CLIP,
    )
}

/// InternVL as its authors wrote it, whose tiles are described by `config.json`.
fn internvl_chat(settings: &Settings) -> Result<ImageProcessor> {
    let side = settings.config(&["force_image_size", "vision_config.image_size"], 448, SIDE)?;
    let min_tiles = settings.config(&["min_dynamic_patch"], 1, TILES)?;
    let max_tiles = settings.config(&["max_dynamic_patch"], 12, TILES)?;
    tiles_of(settings, (side, side), min_tiles, max_tiles, IMAGENET)
}

fn tiles_of(
    settings: &Settings,
    tile: (u32, u32),
    min_tiles: u32,
    max_tiles: u32,
    colours: ([f64; 3], [f64; 3]),
) -> Result<ImageProcessor> {
    let patch = settings.config(&["vision_config.patch_size"], 14, PATCH)?;
    let ratio = settings.config_fraction("downsample_ratio", 0.5, 0.05..=1.0)?;
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
        filter: settings.filter(Filter::Bicubic)?,
        scaling: settings.scaling(Some(colours))?,
        layout: Layout::Planes,
    })
}

fn lfm2(settings: &Settings) -> Result<ImageProcessor> {
    let patch = settings.number("encoder_patch_size", 16, PATCH)?;
    let merge = settings.number("downsample_factor", 2, MERGE)?;
    let tile = settings.number("tile_size", 512, SIDE)?;
    room_for_a_token(tile, patch * merge)?;
    let splitting = settings.flag("do_image_splitting", true)?;
    let max_tiles = settings.number("max_tiles", 10, TILES)?;
    Ok(ImageProcessor {
        sizing: Sizing::LfmTiles(LfmTiles {
            tile,
            min_tiles: settings.number("min_tiles", 2, TILES)?.min(max_tiles),
            max_tiles: if splitting { max_tiles } else { 1 },
            thumbnail: settings.flag("use_thumbnail", true)?,
            min_tokens: settings.number("min_image_tokens", 64, 1..=16_384)?,
            max_tokens: settings.number("max_image_tokens", 256, 1..=16_384)?,
            tolerance: settings.fraction("max_pixels_tolerance", 2.0, 0.01..=1e6)?,
            patch,
            merge,
        }),
        filter: settings.filter(Filter::Bilinear)?,
        scaling: settings.scaling(Some(CENTRED))?,
        layout: pixel_by_pixel(patch),
    })
}

fn canvas(settings: &Settings) -> Result<ImageProcessor> {
    let (tile, _) = settings.sides("size", 224, SIDE)?;
    let patch = settings.config(&["vision_config.patch_size"], 14, PATCH)?;
    room_for_a_token(tile, patch)?;
    Ok(ImageProcessor {
        sizing: Sizing::Canvas(Canvas {
            tile,
            max_tiles: settings.number("max_image_tiles", 4, 1..=16)?,
            patch,
        }),
        filter: settings.filter(Filter::Bilinear)?,
        scaling: settings.scaling(Some(CENTRED))?,
        layout: Layout::Planes,
    })
}
