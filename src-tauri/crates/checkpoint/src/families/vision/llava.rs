//! LLaVA and models like it: CLIP or SigLIP, of which the states after some of the layers go through a small projector,
//! next to a language part of one of several types.

use super::shape::{activation, merge, TowerShape};
use super::{check_width, LlavaProjector, VisionConfig};
use crate::config::activation::EncoderActivation;
use crate::config::{Family, Fields};
use crate::error::{unusable, Error};
use crate::families::row::{FamilyRow, ProcessorRow, VisionRow};
use crate::families::wrapper::by_language_part;
use crate::families::Source;
use crate::image_processor::parts::{room_for_a_token, CENTRED, MERGE, PATCH, SIDE, TILES};
use crate::image_processor::{
    AnyResolution, Cropped, Filter, ImageProcessor, Layout, ProcessorConfig, RatioTiles, Scaling, Sizing, TileChoice,
    CLIP,
};
use crate::image_prompt::{ImagePrompt, ImageRun};
use crate::memory::VisionCost;

/// The rows of the family.
pub(in crate::families) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::vision(
        "LLaVA 1.5",
        &["llava"],
        language_part,
        VisionRow {
            encoder: plain,
            processor: ProcessorRow::always(&["CLIP", "Llava"], processor),
            prompt: PROMPT,
        },
    ),
    FamilyRow::vision(
        "LLaVA-NeXT, Granite Vision 3",
        &["llava_next"],
        language_part,
        VisionRow {
            encoder: next,
            processor: ProcessorRow::always(&["LlavaNext"], next_processor),
            prompt: PROMPT,
        },
    ),
    FamilyRow::vision(
        "Granite Vision 3 as mlx-vlm calls it",
        &["granite_vision", "granite-vision"],
        language_part,
        VisionRow {
            encoder: granite,
            processor: ProcessorRow::always(&[], next_processor),
            prompt: PROMPT,
        },
    ),
    FamilyRow::vision(
        "LLaVA-OneVision",
        &["llava_onevision"],
        language_part,
        VisionRow {
            encoder: onevision,
            processor: ProcessorRow::always(&["LlavaOnevision"], onevision_processor),
            prompt: PROMPT,
        },
    ),
    FamilyRow::vision(
        "Aya Vision",
        &["aya_vision"],
        by_language_part,
        VisionRow {
            encoder: aya,
            processor: ProcessorRow::always(&[], aya_processor),
            prompt: ImagePrompt {
                run: ImageRun::NumberedTiles("<|START_OF_IMG|>", "<|END_OF_IMG|>"),
                ..ImagePrompt::new("<|IMG_PATCH|>")
            },
        },
    ),
    FamilyRow::vision(
        "Command A Vision",
        &["cohere2_vision"],
        by_language_part,
        VisionRow {
            encoder: cohere2,
            processor: ProcessorRow::always(&["Cohere2Vision"], cohere2_processor),
            prompt: ImagePrompt {
                run: ImageRun::EndedTiles("<|START_OF_IMG|>", "<|IMG_LINE_BREAK|>", "<|END_OF_IMG|>"),
                ..ImagePrompt::new("<|IMG_PATCH|>")
            },
        },
    ),
];

const PROMPT: ImagePrompt = ImagePrompt {
    written: "<image>\n",
    ..ImagePrompt::new("<image>")
};

/// The most layers whose states go into the projector side by side.
const MOST_TAPS: usize = 16;

/// The language part. Published configs leave out what is as in the class of its type: the width, the layers, the
/// heads, the width of the networks and the tokens.
pub(super) fn language_part(source: Source<'_>) -> Result<Family, Error> {
    let defaults = match source.text.text("model_type")?.as_deref() {
        None | Some("llama") => [4096, 32, 32, 11_008, 32_000],
        Some("mistral") => [4096, 32, 32, 14_336, 32_000],
        Some("qwen2") => [4096, 32, 32, 22_016, 151_936],
        Some(_) => return by_language_part(source),
    };
    const FIELDS: [&str; 5] = [
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "intermediate_size",
        "vocab_size",
    ];
    // Its own name stays, so that the whole list is kept.
    let mut text = source.text.without("");
    let absent = FIELDS.into_iter().zip(defaults);
    for (field, usual) in absent.filter(|(field, _)| !source.text.has(field)) {
        text.insert(field.to_owned(), usual.into());
    }
    by_language_part(Source {
        top: source.top,
        text: Fields::new(&text),
    })
}

/// A tower and what joins it to the language part.
#[derive(Debug, Clone, PartialEq)]
pub struct LlavaConfig {
    /// The stack, without the layers after the last one whose states are used.
    pub shape: TowerShape,
    /// Patches along a side.
    pub side: u32,
    /// True if a class token stands before the patches, and a norm before the layers (CLIP; else SigLIP).
    pub class_token: bool,
    /// The numbers of layers after which the states are features, in the order in which they stand side by side
    /// (`vision_feature_layer`).
    pub taps: Vec<u32>,
    /// How states become features.
    pub projector: LlavaProjector,
    /// True if the norm after the last layer belongs to the features (Command A Vision).
    pub post_norm: bool,
    /// The factor of features, which the language part applies to all that comes in (`embedding_multiplier` of
    /// Granite).
    pub multiplier: Option<f32>,
    /// True if each row of the grid of an image's tiles ends with a learned mark (`image_newline`).
    pub row_ends: bool,
    /// True if all tokens of a prompt see each other, so that it is read at once (PaliGemma).
    pub whole_prompts: bool,
}

/// LLaVA 1.5.
fn plain(vision: Fields<'_>, top: Fields<'_>) -> Result<VisionConfig, Error> {
    parse(vision, top, "default", -2, false)
}

/// LLaVA-NeXT.
fn next(vision: Fields<'_>, top: Fields<'_>) -> Result<VisionConfig, Error> {
    parse(vision, top, "default", -2, true)
}

/// Granite Vision 3, as mlx-vlm reads it.
fn granite(vision: Fields<'_>, top: Fields<'_>) -> Result<VisionConfig, Error> {
    parse(vision, top, "full", -1, true)
}

/// LLaVA-OneVision.
fn onevision(vision: Fields<'_>, top: Fields<'_>) -> Result<VisionConfig, Error> {
    parse(vision, top, "full", -1, true)
}

/// Aya Vision.
fn aya(vision: Fields<'_>, top: Fields<'_>) -> Result<VisionConfig, Error> {
    let text = top.object("text_config")?.unwrap_or(top);
    let eps = top.number("adapter_layer_norm_eps")?.unwrap_or(1e-6);
    gated(vision, top, text.number("hidden_size")?.unwrap_or(8192), Some(eps))
}

/// Command A Vision.
fn cohere2(vision: Fields<'_>, top: Fields<'_>) -> Result<VisionConfig, Error> {
    match gated(vision, top, 36_864, None)? {
        VisionConfig::Llava(config) => Ok(VisionConfig::Llava(LlavaConfig {
            post_norm: true,
            ..config
        })),
        other => Ok(other),
    }
}

/// A gated network after blocks of patches, `usual` wide unless the config says more.
fn gated(vision: Fields<'_>, top: Fields<'_>, usual: u32, norm: Option<f32>) -> Result<VisionConfig, Error> {
    const WIDTH: &str = "alignment_intermediate_size";
    let merge = merge("downsample_factor", top.number("downsample_factor")?)?;
    let width = top.number(WIDTH)?.unwrap_or(usual);
    check_width(WIDTH, width.into())?;
    if width < 2 || !width.is_multiple_of(2) {
        return unusable(WIDTH, format!("{width} has no two halves"));
    }
    let config = tower(vision, top, "full", -1, LlavaProjector::Gated { merge, width, norm })?;
    if config.taps.len() != 1 {
        return Err(Error::Unsupported(
            "features of several layers of a vision tower".into(),
        ));
    }
    if !config.side.is_multiple_of(merge) {
        let reason = format!("{} rows of patches are not blocks of {merge}", config.side);
        return unusable("downsample_factor", reason);
    }
    Ok(VisionConfig::Llava(config))
}

/// The tower of a model whose class keeps these patches (`vision_feature_select_strategy`) of this layer.
fn parse(vision: Fields<'_>, top: Fields<'_>, kept: &str, layer: i32, row_ends: bool) -> Result<VisionConfig, Error> {
    if row_ends && top.flag("use_image_newline_parameter")? == Some(false) {
        return Err(Error::Unsupported(
            "tiles without a mark after each row (`image_newline`)".into(),
        ));
    }
    let activation = activation(top, "projector_hidden_act", EncoderActivation::Gelu)?;
    let text = top.object("text_config")?.unwrap_or(top);
    let config = LlavaConfig {
        row_ends,
        multiplier: text.number("embedding_multiplier")?,
        ..tower(vision, top, kept, layer, LlavaProjector::Network(activation))?
    };
    check_width(
        "vision_feature_layer",
        config.taps.len() as u64 * u64::from(config.shape.hidden_size),
    )?;
    Ok(VisionConfig::Llava(config))
}

/// A tower of CLIP or SigLIP with this projector.
pub(super) fn tower(
    vision: Fields<'_>,
    top: Fields<'_>,
    kept: &str,
    layer: i32,
    projector: LlavaProjector,
) -> Result<LlavaConfig, Error> {
    let kind = vision.text("model_type")?;
    let (class_token, eps, usual) = match kind.as_deref() {
        None | Some("clip_vision_model") => (true, 1e-5, EncoderActivation::QuickGelu),
        Some("siglip_vision_model") => (false, 1e-6, EncoderActivation::GeluTanh),
        Some(other) => {
            return Err(Error::Unsupported(format!(
                "the tower `{other}` beside LLaVA's projector"
            )))
        }
    };
    let patch = if class_token { 32 } else { 16 };
    let eps = vision.number("layer_norm_eps")?.unwrap_or(eps);
    let shape = TowerShape::parse(vision, [768, 12, 12, 3072, patch], eps, usual)?;
    let strategy = top.text("vision_feature_select_strategy")?;
    match (strategy.as_deref().unwrap_or(kept), class_token) {
        ("default", true) | ("full", false) => {}
        (other, _) => {
            let which = if class_token { "a class token" } else { "no class token" };
            let reason = format!("it is `{other}`, and the tower has {which}");
            return unusable("vision_feature_select_strategy", reason);
        }
    }
    let taps = taps(top, layer, shape.layers)?;
    Ok(LlavaConfig {
        side: shape.side(vision, 224)?,
        shape: TowerShape {
            layers: taps.iter().copied().max().unwrap_or(0),
            ..shape
        },
        class_token,
        taps,
        projector,
        post_norm: false,
        multiplier: None,
        row_ends: false,
        whole_prompts: false,
    })
}

/// The layers of `vision_feature_layer`, which counts what comes into the first as one, and from the end if it is
/// negative.
fn taps(top: Fields<'_>, usual: i32, layers: u32) -> Result<Vec<u32>, Error> {
    const FIELD: &str = "vision_feature_layer";
    let wanted = top.numbers(FIELD)?.unwrap_or_else(|| vec![usual as f32]);
    if wanted.is_empty() || wanted.len() > MOST_TAPS {
        return unusable(FIELD, format!("it names {} layers", wanted.len()));
    }
    let tap = |wanted: f32| {
        let after = if wanted < 0.0 {
            wanted + 1.0 + layers as f32
        } else {
            wanted
        };
        match after.fract() == 0.0 && (0.0..=layers as f32).contains(&after) {
            true => Ok(after as u32),
            false => unusable(FIELD, format!("there is no layer {wanted} of {layers}")),
        }
    };
    wanted.into_iter().map(tap).collect()
}

impl LlavaConfig {
    pub(super) fn cost(&self) -> VisionCost {
        self.projector
            .added_to(self.shape.cost(2, self.side, 1), self.taps.len())
    }
}

/// LLaVA 1.5, whose repositories name the processor of CLIP or that of SigLIP.
pub(super) fn processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    let siglip = processor.name().is_some_and(|name| name.starts_with("Siglip"));
    if processor.flag("do_pad", false)? {
        return Err(Error::UnknownProcessor("one that pads images to squares".into()));
    }
    let shortest = processor.shortest_edge("size", SIDE)?;
    let (width, height) = processor.sides("size", 224, SIDE)?;
    let whole = (siglip && shortest.is_none()) || !processor.flag("do_center_crop", !siglip)?;
    let shortest = match (whole, shortest) {
        (true, Some(_)) => return Err(Error::UnknownProcessor("one that keeps the shape of images".into())),
        (true, None) => None,
        (false, shortest) => Some(shortest.unwrap_or(width.min(height))),
    };
    let crop = match shortest {
        Some(shortest) => {
            let crop = processor.sides("crop_size", 224, SIDE)?;
            if crop.0.max(crop.1) > shortest {
                let (field, reason) = ("crop_size", format!("it is larger than {shortest}, the size before it"));
                return Err(Error::InvalidProcessor { field, reason });
            }
            crop
        }
        None => (width, height),
    };
    let patch = square(processor, crop)?;
    let sizing = match shortest {
        Some(shortest) => Sizing::Cropped(Cropped { shortest, crop, patch }),
        None => Sizing::Fixed {
            width,
            height,
            patch,
            tokens: width / patch,
        },
    };
    let scaling = processor.scaling(Some(if siglip { CENTRED } else { CLIP }))?;
    of(processor, sizing, scaling)
}

/// LLaVA-NeXT, whose class has images of 336 pixels in five arrangements.
pub(super) fn next_processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    let tile = processor.shortest_edge("size", SIDE)?.unwrap_or(224);
    let tile = processor.sides("size", tile, SIDE)?;
    let crops = processor.flag("do_center_crop", true)?;
    let crop = processor.sides("crop_size", if crops { 224 } else { tile.0 }, SIDE)?;
    if crops && crop != tile {
        return Err(Error::UnknownProcessor("one that crops the tiles of images".into()));
    }
    let canvases = [(336, 672), (672, 336), (672, 672), (1008, 336), (336, 1008)];
    any_resolution(processor, tile, canvases.to_vec(), None)
}

/// LLaVA-OneVision, whose class has up to six tiles of 384 pixels along a side.
fn onevision_processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    const FIELD: &str = "vision_aspect_ratio";
    let ratio = processor.model_text(FIELD)?.unwrap_or("anyres_max_9");
    let most = ratio.strip_prefix("anyres_max_").and_then(|most| most.parse().ok());
    let Some(most) = most.filter(|most| TILES.contains(most)) else {
        let (field, reason) = (FIELD, format!("`{ratio}` is none that is known"));
        return Err(Error::InvalidProcessor { field, reason });
    };
    if processor.flag("do_center_crop", false)? {
        return Err(Error::UnknownProcessor("one that crops the tiles of images".into()));
    }
    let tile = processor.shortest_edge("size", SIDE)?.unwrap_or(384);
    let sides = || (1..=6).map(|tiles| tiles * 384);
    let canvases = sides().flat_map(|down| sides().map(move |across| (down, across)));
    let tile = processor.sides("size", tile, SIDE)?;
    any_resolution(processor, tile, canvases.collect(), Some(most))
}

/// Tiles of a size on canvases of these heights and widths unless the file has others.
fn any_resolution(
    processor: &ProcessorConfig,
    tile: (u32, u32),
    canvases: Vec<(u32, u32)>,
    most_tiles: Option<u32>,
) -> Result<ImageProcessor, Error> {
    const FIELD: &str = "image_grid_pinpoints";
    let patch = square(processor, tile)?;
    let tile = tile.0;
    let canvases = processor.pairs(FIELD, 256, 1..=1 << 14)?.unwrap_or(canvases);
    let in_tiles = |(height, width): (u32, u32)| {
        let (columns, rows) = (width / tile, height / tile);
        match (columns * tile, rows * tile) == (width, height) && TILES.contains(&(columns * rows)) {
            true => Ok((columns, rows)),
            false => Err(Error::InvalidProcessor {
                field: FIELD,
                reason: format!("{width}×{height} pixels are not some tiles of {tile}"),
            }),
        }
    };
    let sizing = Sizing::AnyResolution(AnyResolution {
        canvases: canvases.into_iter().map(in_tiles).collect::<Result<_, _>>()?,
        tile,
        patch,
        most_tiles,
    });
    of(processor, sizing, processor.scaling(Some(CLIP))?)
}

/// Aya Vision, whose processor always asks for tiles.
fn aya_processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    ratio_tiles(processor, 384, true, TileChoice::ClosestShape)
}

/// Command A Vision.
fn cohere2_processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    let crops = processor.flag("crop_to_patches", true)?;
    ratio_tiles(processor, 512, crops, TileChoice::LeastEnlarged)
}

fn ratio_tiles(
    processor: &ProcessorConfig,
    usual: u32,
    crops: bool,
    choice: TileChoice,
) -> Result<ImageProcessor, Error> {
    let tile = processor.sides("size", usual, SIDE)?;
    let patch = square(processor, tile)?;
    let merge = processor.model_number(&["downsample_factor"], 2, MERGE)?;
    room_for_a_token(tile.0, patch * merge)?;
    let most = processor.number("max_patches", 12, TILES)?;
    let sizing = Sizing::RatioTiles(RatioTiles {
        tile,
        min_tiles: processor.number("min_patches", 1, TILES)?,
        max_tiles: if crops { most } else { 1 },
        patch,
        merge,
        choice,
    });
    of(processor, sizing, processor.scaling(Some(CLIP))?)
}

fn of(processor: &ProcessorConfig, sizing: Sizing, scaling: Scaling) -> Result<ImageProcessor, Error> {
    Ok(ImageProcessor {
        sizing,
        filter: processor.filter(Filter::Bicubic)?,
        scaling,
        layout: Layout::Planes,
    })
}

/// The side of a patch, if views of this size have as many as the tower has positions.
fn square(processor: &ProcessorConfig, (width, height): (u32, u32)) -> Result<u32, Error> {
    let patch = processor.model_number(&["vision_config.patch_size"], 14, PATCH)?;
    let side = processor.model_number(&["vision_config.image_size"], width, SIDE)? / patch;
    match (width / patch, height / patch) == (side, side) && side > 0 {
        true => Ok(patch),
        false => Err(Error::InvalidProcessor {
            field: "size",
            reason: format!("{width}×{height} pixels are not the tower's {side} rows of patches"),
        }),
    }
}
