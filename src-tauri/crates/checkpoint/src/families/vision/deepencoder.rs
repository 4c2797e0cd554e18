//! DeepSeek-OCR: SAM and CLIP after each other, beside the language part of DeepSeek-VL2.

use serde_json::Map;

use super::deepseek_vl::language_part;
use super::shape::{patches_along, TowerShape};
use super::{check_shapes, VisionConfig};
use crate::config::activation::EncoderActivation;
use crate::config::limits::{check_heads, check_range};
use crate::config::Fields;
use crate::error::{unusable, Error};
use crate::families::row::{FamilyRow, ProcessorRow, VisionRow};
use crate::image_processor::parts::{CENTRED, PATCH, SIDE, TILES};
use crate::image_processor::{CroppedTiles, Filter, ImageProcessor, Layout, ProcessorConfig, Sizing};
use crate::image_prompt::ImagePrompt;
use crate::memory::VisionCost;

/// The rows of the family.
pub(in crate::families) const FAMILIES: &[FamilyRow] = &[FamilyRow::vision(
    "DeepSeek-OCR",
    &["deepseekocr"],
    language_part,
    VisionRow {
        encoder: parse,
        processor: ProcessorRow::fixed(&["DeepseekOCR"], processor),
        prompt: ImagePrompt {
            written: "<image>\n",
            // It was taught to go on after what it is told, without marks of turns.
            template: Some(
                "{{ bos_token }}{% for message in messages %}{{ message['content'] }}{% if not loop.last %}\n{% endif %}{% endfor %}",
            ),
            ..ImagePrompt::new("<image>")
        },
    },
)];

/// Pixels of a side of the whole image and of a tile, and of a patch.
const WHOLE: u32 = 1024;
const TILE: u32 = 640;
const PATCH_SIDE: u32 = 16;

/// Patches along a side of what becomes one token: two convolutions make the grid half as large each.
const MERGE: u32 = 4;

/// SAM's encoder.
#[derive(Debug, Clone, PartialEq)]
pub struct SamConfig {
    /// Width of the stream.
    pub width: u32,
    /// How many layers.
    pub layers: u32,
    /// Heads.
    pub heads: u32,
    /// Width inside of the networks.
    pub inside: u32,
    /// Layers in which all patches see each other.
    pub whole: Vec<u32>,
    /// Patches along a side of a window in the others.
    pub window: u32,
    /// Patches along a side of the learned positions.
    pub side: u32,
    /// Side of a patch in pixels.
    pub patch_size: u32,
    /// Channels after the last layer.
    pub channels: u32,
    /// Channels at the end.
    pub outputs: u32,
}

/// SAM, and CLIP after it.
#[derive(Debug, Clone, PartialEq)]
pub struct DeepEncoderConfig {
    /// The encoder of patches.
    pub sam: SamConfig,
    /// The encoder of SAM's grid.
    pub clip: TowerShape,
    /// Places along a side of CLIP's learned positions.
    pub clip_side: u32,
}

fn parse(_: Fields<'_>, top: Fields<'_>) -> Result<VisionConfig, Error> {
    let unsupported = |what: &str| Err(Error::Unsupported(what.into()));
    let nothing = Map::new();
    let inner = |fields: Fields<'_>, field| Ok::<_, Error>(fields.object(field)?.map(|found| found.without("")));
    let vision = inner(top, "vision_config")?.unwrap_or_default();
    let vision = Fields::new(&vision);
    if vision.text("model_name")?.is_some_and(|name| name != "deeplip_b_l") {
        return unsupported("another tower of DeepSeek-OCR (`vision_config.model_name`)");
    }
    let projector = inner(top, "projector_config")?.unwrap_or_default();
    if Fields::new(&projector)
        .text("projector_type")?
        .is_some_and(|kind| kind != "linear")
    {
        return unsupported("another projector of DeepSeek-OCR than `linear`");
    }
    if top.text("tile_tag")?.is_some_and(|tag| tag != "2D") {
        return unsupported("another order of tiles of DeepSeek-OCR (`tile_tag`)");
    }
    let parts = inner(vision, "width").unwrap_or_default().unwrap_or_default();
    let parts = Fields::new(&parts);
    let sam = sam(parts.object("sam_vit_b")?.unwrap_or(Fields::new(&nothing)))?;
    let clip = parts.object("clip-l-14-224")?.unwrap_or(Fields::new(&nothing));
    let hidden: u32 = clip.number("width")?.unwrap_or(1024);
    let patch: u32 = clip.number("patch_size")?.unwrap_or(14);
    let shape = TowerShape {
        hidden_size: hidden,
        layers: clip.number("layers")?.unwrap_or(24),
        heads: clip.number("heads")?.unwrap_or(16),
        intermediate_size: clip.number("intermediate_size")?.unwrap_or(hidden.saturating_mul(4)),
        patch_size: patch,
        eps: 1e-5,
        activation: EncoderActivation::QuickGelu,
    };
    if sam.outputs != hidden {
        return unusable(
            "vision_config",
            format!("SAM makes {} numbers, and CLIP takes {hidden}", sam.outputs),
        );
    }
    Ok(VisionConfig::DeepEncoder(DeepEncoderConfig {
        sam,
        clip: shape.check()?,
        clip_side: patches_along("image_size", clip.number("image_size")?.unwrap_or(224), patch)?,
    }))
}

fn sam(fields: Fields<'_>) -> Result<SamConfig, Error> {
    let width: u32 = fields.number("width")?.unwrap_or(768);
    let layers: u32 = fields.number("layers")?.unwrap_or(12);
    let heads: u32 = fields.number("heads")?.unwrap_or(12);
    let inside = width.saturating_mul(4);
    check_heads("heads", width, heads)?;
    check_shapes(layers, width, heads, width / heads, inside)?;
    let list = |field| {
        Ok::<_, Error>(
            fields
                .numbers(field)?
                .map(|numbers| numbers.into_iter().map(|n| n as u32).collect()),
        )
    };
    let whole: Vec<u32> = list("global_attn_indexes")?.unwrap_or_else(|| vec![2, 5, 8, 11]);
    let channels: Vec<u32> = list("downsample_channels")?.unwrap_or_else(|| vec![512, 1024]);
    let patch_size = check_range("patch_size", fields.number("patch_size")?.unwrap_or(PATCH_SIDE), 2..=64)?;
    let outputs = check_range(
        "downsample_channels",
        channels.last().copied().unwrap_or(0),
        1..=1 << 14,
    )?;
    let side = patches_along("image_size", fields.number("image_size")?.unwrap_or(WHOLE), patch_size)?;
    Ok(SamConfig {
        width,
        layers,
        heads,
        inside,
        whole,
        window: check_range("window_size", fields.number("window_size")?.unwrap_or(14), 1..=256)?,
        side: check_range("image_size", side, 4..=256)?,
        patch_size,
        channels: check_range("out_chans", fields.number("out_chans")?.unwrap_or(256), 1..=1 << 14)?,
        outputs,
    })
}

impl DeepEncoderConfig {
    /// SAM takes most: its patches are sixteen times as many as CLIP's places.
    pub(super) fn cost(&self) -> VisionCost {
        let (clip, sam) = (&self.clip, &self.sam);
        let of_clip = u64::from(clip.layers)
            * u64::from(clip.hidden_size)
            * (4 * u64::from(clip.hidden_size) + 2 * u64::from(clip.intermediate_size));
        let (channels, outputs) = (u64::from(sam.channels), u64::from(sam.outputs));
        let convolutions = 9 * channels * channels + 9 * channels * outputs / 2 + 9 * outputs * outputs / 2;
        VisionCost {
            layers: sam.layers.into(),
            hidden: sam.width.into(),
            width: sam.inside.into(),
            projections: 2,
            heads: sam.heads.into(),
            others: of_clip + convolutions + 2 * outputs * u64::from(clip.hidden_size),
            patches_of_token: u64::from(MERGE).pow(2),
            together: Some(u64::from(sam.side).pow(2)),
            ..VisionCost::EMPTY
        }
    }
}

/// The numbers of its code: repositories have a file of a processor that says nothing else.
fn processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    const AT: [&str; 2] = [
        "vision_config.width.sam_vit_b.image_size",
        "vision_config.width.sam_vit_b.tile_size",
    ];
    let whole = processor.model_number(&AT[..1], WHOLE, SIDE)?;
    let tile = processor.model_number(&AT[1..], TILE, SIDE)?;
    let patch = processor.model_number(&["vision_config.width.sam_vit_b.patch_size"], PATCH_SIDE, PATCH)?;
    let token = patch * MERGE;
    for side in [whole, tile] {
        if !side.is_multiple_of(token) || side < 2 * token {
            let (field, reason) = ("image_size", format!("{side} pixels are no whole tokens of {token}"));
            return Err(Error::InvalidProcessor { field, reason });
        }
    }
    Ok(ImageProcessor {
        sizing: Sizing::CroppedTiles(CroppedTiles {
            whole,
            tile,
            most: processor.number("max_crops", 9, TILES)?,
            patch,
            merge: MERGE,
        }),
        filter: Filter::Bicubic,
        scaling: processor.scaling(Some(CENTRED))?,
        layout: Layout::Planes,
    })
}
