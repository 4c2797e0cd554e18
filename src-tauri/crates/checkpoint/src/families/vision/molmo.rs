//! Molmo and Jina VLM: plain layers whose states at two depths are pooled block by block, by attention from the mean
//! of a block, in the grid of all tiles and in that of the whole.

use serde_json::{Map, Value};

use super::shape::{patches_along, square, TowerShape};
use super::{check_width, VisionConfig};
use crate::config::activation::EncoderActivation;
use crate::config::limits::{check_head, check_range};
use crate::config::Fields;
use crate::error::{unusable, Error};
use crate::image_processor::parts::{room_for_a_token, CENTRED, MERGE, PATCH, SIDE, TILES};
use crate::image_processor::{
    Enlarging, Features, Filter, ImageProcessor, Layout, OverlappingTiles, ProcessorConfig, Scaling, Sizing,
    SmartResize, CLIP,
};
use crate::memory::VisionCost;

/// Patches along a side of a block in all published models.
pub const MERGE_SIDE: u32 = 2;

/// Patches on each side of a tile that its neighbor there keeps, in all published models.
pub const MARGIN: u32 = 4;

/// The most layers whose states are pooled side by side.
const MOST_TAPS: usize = 16;

/// A tower, and how its states become features.
#[derive(Debug, Clone, PartialEq)]
pub struct MolmoVisionConfig {
    /// The stack, without the layers after the last one whose states are used.
    pub shape: TowerShape,
    /// Patches along a side.
    pub side: u32,
    /// The numbers of layers after which the states are pooled, in the order in which they stand side by side
    /// (`vit_layers`).
    pub taps: Vec<u32>,
    /// Heads of the attention that pools.
    pub heads: u32,
    /// Width of a head of it.
    pub head_dim: u32,
    /// Width of what it finds.
    pub pooled: u32,
    /// Width inside of the gated network after it.
    pub width: u32,
    /// True if a class token stands before the patches, and a norm before the layers (Molmo).
    pub class_token: bool,
    /// The numbers of a patch with those that only fill it up.
    pub patch_numbers: u32,
    /// How blocks lie in tiles.
    pub blocks: TileBlocks,
    /// True if places of a block beyond the grid are neither in its mean nor seen (`pooling_attention_mask`).
    pub masked: bool,
}

/// How blocks of patches lie in tiles that overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TileBlocks {
    /// In the grid of all tiles (Molmo 2).
    OfGrid,
    /// In the same; vectors are added to patches beside and partly beside the image (Molmo).
    Marked,
    /// In each tile by itself; a tile without any color gives zeros (Jina VLM).
    OfTile,
}

/// Molmo 2.
pub(crate) fn parse(_: Fields<'_>, top: Fields<'_>) -> Result<VisionConfig, Error> {
    const POSITIONS: &str = "image_num_pos";
    let within = top.object("vision_config")?.unwrap_or(top);
    let part = |name: &'static str| -> Result<_, Error> {
        match within.object(name)? {
            Some(part) => Ok(Some(part)),
            None => top.object(name),
        }
    };
    let vit = part("vit_config")?.ok_or(Error::MissingField("vit_config"))?;
    let adapter = part("adapter_config")?.ok_or(Error::MissingField("adapter_config"))?;
    let eps = vit.number("layer_norm_eps")?.unwrap_or(1e-6);
    let shape = TowerShape {
        patch_size: vit.number("image_patch_size")?.unwrap_or(14),
        ..TowerShape::parse(vit, [1152, 27, 16, 4304, 14], eps, EncoderActivation::GeluTanh)?
    }
    .check()?;
    let same = |fields: Fields<'_>, heads: u32, what: &str| -> Result<(), Error> {
        match fields.number("num_key_value_heads")?.unwrap_or(heads) == heads {
            true => Ok(()),
            false => Err(Error::Unsupported(format!(
                "heads that share keys in the {what} of Molmo"
            ))),
        }
    };
    same(vit, shape.heads, "tower")?;
    if vit.number("head_dim")?.unwrap_or(shape.head_dim()) != shape.head_dim() {
        return unusable("head_dim", "the heads of the tower do not share its width");
    }
    let positions = vit.number(POSITIONS)?.unwrap_or(729u32);
    check_width(POSITIONS, positions.into())?;
    let side = positions.isqrt();
    if side * side != positions {
        return unusable(POSITIONS, format!("{positions} positions are no square"));
    }
    check_side(POSITIONS, side)?;
    let heads = adapter.number("num_attention_heads")?.unwrap_or(16);
    check_range("num_attention_heads", heads, 1..=1024)?;
    same(adapter, heads, "projector")?;
    let head_dim = adapter.number("head_dim")?.unwrap_or(72);
    check_head("head_dim", head_dim)?;
    if adapter.text("hidden_act")?.is_some_and(|name| name != "silu") {
        return Err(Error::Unsupported(
            "another activation of Molmo's projector than `silu`".into(),
        ));
    }
    let taps = taps("vit_layers", adapter, &[-3.0, -9.0], (shape.layers, shape.layers))?;
    let (pooled, width) = (
        adapter.number("hidden_size")?.unwrap_or(1152),
        adapter.number("intermediate_size")?.unwrap_or(9728),
    );
    check_width("hidden_size", u64::from(shape.hidden_size) * taps.len() as u64)?;
    check_width("hidden_size", u64::from(pooled))?;
    check_width("intermediate_size", u64::from(width))?;
    Ok(VisionConfig::Molmo(MolmoVisionConfig {
        shape: TowerShape {
            layers: taps.iter().copied().max().unwrap_or(0),
            ..shape
        },
        side,
        taps,
        heads,
        head_dim,
        pooled,
        width,
        class_token: false,
        patch_numbers: 3 * shape.patch_size.pow(2),
        blocks: TileBlocks::OfGrid,
        masked: adapter.flag("pooling_attention_mask")?.unwrap_or(false),
    }))
}

/// The first Molmo, whose repositories tell nothing of its tower.
pub(crate) fn first(_: Fields<'_>, top: Fields<'_>) -> Result<VisionConfig, Error> {
    const POSITIONS: &str = "image_num_pos";
    let nothing = Map::new();
    let vision = top.object("vision_config")?.unwrap_or(Fields::new(&nothing));
    for (field, known) in [
        ("image_pooling_2d", "attention-meanq"),
        ("image_padding_embed", "pad_and_partial_pad"),
    ] {
        if vision.text(field)?.is_some_and(|value| value != known) {
            return Err(Error::Unsupported(format!(
                "another way of Molmo's tower than `{known}` (`{field}`)"
            )));
        }
    }
    let eps = vision.number("image_norm_eps")?.unwrap_or(1e-5);
    let usual = EncoderActivation::QuickGelu;
    let shape = TowerShape {
        hidden_size: vision.number("image_emb_dim")?.unwrap_or(1024),
        layers: vision.number("image_num_layers")?.unwrap_or(23),
        heads: vision.number("image_num_heads")?.unwrap_or(16),
        intermediate_size: vision.number("image_mlp_dim")?.unwrap_or(4096),
        patch_size: vision.number("image_patch_size")?.unwrap_or(14),
        ..TowerShape::parse(Fields::new(&nothing), [1024, 23, 16, 4096, 14], eps, usual)?
    }
    .check()?;
    if vision.number("image_num_key_value_heads")?.unwrap_or(shape.heads) != shape.heads {
        return Err(Error::Unsupported("heads that share keys in the tower of Molmo".into()));
    }
    let head_dim = vision.number("image_head_dim")?.unwrap_or(shape.head_dim());
    if head_dim != shape.head_dim() {
        return unusable("image_head_dim", "the heads of the tower do not share its width");
    }
    let positions = vision.number(POSITIONS)?.unwrap_or(577u32);
    check_width(POSITIONS, positions.into())?;
    let side = positions.saturating_sub(1).isqrt();
    if side * side + 1 != positions || !side.is_multiple_of(MERGE_SIDE) {
        return unusable(
            POSITIONS,
            format!("{positions} positions are no square of blocks and one more"),
        );
    }
    check_side(POSITIONS, side)?;
    let taps = taps("vit_layers", vision, &[-2.0, -9.0], (shape.layers, shape.layers))?;
    check_width("vit_layers", u64::from(shape.hidden_size) * taps.len() as u64)?;
    // The network of the projector is as wide inside as that of a layer of the language part.
    let text = top.object("text_config")?.unwrap_or(top);
    let of_text: Option<u32> = match text.first(&["intermediate_size", "mlp_hidden_size"])? {
        Some(width) => Some(width),
        None => top.first(&["intermediate_size", "mlp_hidden_size"])?,
    };
    let width = vision.number("hidden_size")?.unwrap_or(of_text.unwrap_or(37_888) / 2);
    check_width("hidden_size", u64::from(width))?;
    let numbers = 3 * shape.patch_size.pow(2);
    let patch_numbers = vision.number("intermediate_size")?.unwrap_or(numbers);
    check_range("intermediate_size", patch_numbers, numbers..=2 * numbers)?;
    Ok(VisionConfig::Molmo(MolmoVisionConfig {
        shape: TowerShape {
            layers: taps.iter().copied().max().unwrap_or(0),
            ..shape
        },
        side,
        taps,
        heads: shape.heads,
        head_dim,
        pooled: shape.hidden_size,
        width,
        class_token: true,
        patch_numbers,
        blocks: TileBlocks::Marked,
        masked: false,
    }))
}

/// Jina VLM, whose fields have names of their own.
pub(crate) fn jina(_: Fields<'_>, top: Fields<'_>) -> Result<VisionConfig, Error> {
    const CLASS: &str = "use_cls_token";
    const VISION: &str = "vision_config";
    let vision = top.object(VISION)?.ok_or(Error::MissingField(VISION))?;
    if vision.flag(CLASS)? == Some(true) {
        return Err(Error::Unsupported(format!(
            "a class token beside Jina VLM's patches (`{CLASS}`)"
        )));
    }
    let nothing = Map::new();
    let part = |of: Fields<'_>, name: &'static str| -> Result<Map<String, Value>, Error> {
        Ok(of.object(name)?.map_or_else(Map::new, |part| part.without("")))
    };
    let block = part(vision, "block_config")?;
    let (attention, network) = (
        part(Fields::new(&block), "attn_config")?,
        part(Fields::new(&block), "ffn_config")?,
    );
    let (attention, network) = (Fields::new(&attention), Fields::new(&network));
    let connector = part(vision, "vl_connector_config")?;
    let connector = Fields::new(&connector);
    let projector = part(connector, "mlp_projector_config")?;
    for field in ["pooling_h", "pooling_w"] {
        if connector.number(field)?.unwrap_or(MERGE_SIDE) != MERGE_SIDE {
            return unusable(field, format!("blocks of Jina VLM have {MERGE_SIDE} patches on a side"));
        }
    }
    let (pixels, patch) = (
        square(vision, "input_size")?.unwrap_or(378),
        vision.number("patch_size")?.unwrap_or(14u32),
    );
    let activation = match network.text("activation_type")?.as_deref() {
        None | Some("gelu_pytorch_tanh") => EncoderActivation::GeluTanh,
        Some(_) => EncoderActivation::Gelu,
    };
    let shape = TowerShape {
        hidden_size: vision.number("hidden_size")?.unwrap_or(1152),
        layers: vision.number("n_layers")?.unwrap_or(27),
        heads: attention.number("n_heads")?.unwrap_or(16),
        intermediate_size: network.number("size")?.unwrap_or(4304),
        patch_size: patch,
        activation,
        ..TowerShape::parse(Fields::new(&nothing), [1152, 27, 16, 4304, 14], 1e-6, activation)?
    }
    .check()?;
    let head_dim = attention.number("head_dim")?.unwrap_or(shape.head_dim());
    if head_dim != shape.head_dim() {
        return unusable("head_dim", "the heads of the tower do not share its width");
    }
    let side = patches_along("input_size", pixels, patch)?;
    check_side("input_size", side)?;
    // The states after the last norm are counted, too.
    let counted = shape.layers + u32::from(vision.flag("post_lnorm")?.unwrap_or(true));
    let taps = taps("vit_layers", vision, &[-4.0, -10.0], (counted, shape.layers))?;
    let width = Fields::new(&projector).number("size")?.unwrap_or(6144);
    check_width("vit_layers", u64::from(shape.hidden_size) * taps.len() as u64)?;
    check_width("size", u64::from(width))?;
    Ok(VisionConfig::Molmo(MolmoVisionConfig {
        shape: TowerShape {
            layers: taps.iter().copied().max().unwrap_or(0),
            ..shape
        },
        side,
        taps,
        heads: shape.heads,
        head_dim,
        pooled: shape.hidden_size,
        width,
        class_token: false,
        patch_numbers: 3 * shape.patch_size.pow(2),
        blocks: TileBlocks::OfTile,
        masked: false,
    }))
}

/// Refuses tiles of which nothing is left without what their neighbors keep.
fn check_side(field: &'static str, side: u32) -> Result<(), Error> {
    match side > 2 * MARGIN {
        true => Ok(()),
        false => unusable(
            field,
            format!("tiles of {side} patches cannot share {MARGIN} on each side"),
        ),
    }
}

/// How many layers lie before each of the states that a field names, by numbers from 0, or from the end of all that are
/// counted.
fn taps(
    field: &'static str,
    fields: Fields<'_>,
    usual: &[f32],
    (counted, layers): (u32, u32),
) -> Result<Vec<u32>, Error> {
    let wanted = fields.numbers(field)?.unwrap_or_else(|| usual.to_vec());
    if wanted.is_empty() || wanted.len() > MOST_TAPS {
        return unusable(field, format!("it names {} layers", wanted.len()));
    }
    let tap = |wanted: f32| {
        let after = if wanted < 0.0 { wanted + counted as f32 } else { wanted } + 1.0;
        match after.fract() == 0.0 && (1.0..=layers as f32).contains(&after) {
            true => Ok(after as u32),
            false => unusable(field, format!("there is no layer {wanted} of {layers}")),
        }
    };
    wanted.into_iter().map(tap).collect()
}

impl MolmoVisionConfig {
    pub(super) fn cost(&self) -> VisionCost {
        let cost = self.shape.cost(2, self.side, 1);
        let (states, inner) = (
            cost.hidden * self.taps.len() as u64,
            u64::from(self.heads) * u64::from(self.head_dim),
        );
        let pooling = 3 * states * inner + inner * u64::from(self.pooled);
        VisionCost {
            others: cost.others + pooling + 3 * u64::from(self.width) * u64::from(self.pooled),
            ..cost.joined(MERGE_SIDE)
        }
    }
}

/// Tiles of the stretched image that overlap, and the whole.
pub(in crate::families) fn processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    let (width, height) = processor.sides("size", 378, SIDE)?;
    let patch = processor.number("patch_size", 14, PATCH)?;
    let invalid = |field: &'static str, reason: String| Err(Error::InvalidProcessor { field, reason });
    if width != height || !width.is_multiple_of(patch) {
        return invalid(
            "size",
            format!("{width}×{height} pixels are no square of patches of {patch}"),
        );
    }
    let (down, across) = processor.pair("pooling_size", (MERGE_SIDE, MERGE_SIDE), MERGE)?;
    if (down, across) != (MERGE_SIDE, MERGE_SIDE) {
        return invalid(
            "pooling_size",
            format!("blocks of {down} by {across} patches are none of Molmo's"),
        );
    }
    let (before, after) = processor.pair("overlap_margins", (MARGIN, MARGIN), 0..=64)?;
    if (before, after) != (MARGIN, MARGIN) || before + after >= width / patch {
        let reason = format!("tiles of {} patches cannot share {before} and {after}", width / patch);
        return invalid("overlap_margins", reason);
    }
    room_for_a_token(width, patch * MERGE_SIDE)?;
    Ok(ImageProcessor {
        sizing: Sizing::OverlappingTiles(OverlappingTiles {
            tile: width,
            patch,
            merge: MERGE_SIDE,
            margin: MARGIN,
            by_tile: false,
            padded: false,
            first: None,
            most: processor.number("max_crops", 8, TILES)?,
        }),
        filter: processor.filter(Filter::Bilinear)?,
        scaling: processor.scaling(Some(CENTRED))?,
        layout: Layout::Planes,
    })
}

/// Tiles that overlap of a canvas in whose middle the image stands, and the whole so (Molmo).
pub(in crate::families) fn first_processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    let patch = processor.number("image_patch_size", 14, PATCH)?;
    let (height, width) = processor.pair("base_image_input_size", (336, 336), SIDE)?;
    let margins = processor.pair("overlap_margins", (MARGIN, MARGIN), 0..=64)?;
    let invalid = |field: &'static str, reason: String| Err(Error::InvalidProcessor { field, reason });
    if width != height || !width.is_multiple_of(patch * MERGE_SIDE) || width / patch <= 2 * MARGIN {
        let reason = format!("{width}×{height} pixels are no square of blocks of patches of {patch}");
        return invalid("base_image_input_size", reason);
    }
    if margins != (MARGIN, MARGIN) {
        return invalid("overlap_margins", format!("tiles share {MARGIN} patches on each side"));
    }
    Ok(ImageProcessor {
        sizing: Sizing::OverlappingTiles(OverlappingTiles {
            tile: width,
            patch,
            merge: MERGE_SIDE,
            margin: MARGIN,
            most: processor.number("max_crops", 12, TILES)?,
            by_tile: false,
            padded: true,
            first: None,
        }),
        filter: Filter::Bilinear,
        scaling: processor.scaling(Some(CLIP))?,
        layout: Layout::Planes,
    })
}

/// Jina VLM, whose processor's numbers are fixed: the image is brought to whole patches first.
pub(in crate::families) fn jina_processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    let tile = processor.model_number(&["vision_config.input_size"], 378, SIDE)?;
    let patch = processor.model_number(&["vision_config.patch_size"], 14, PATCH)?;
    if !tile.is_multiple_of(patch) || 2 * MARGIN >= tile / patch {
        let (field, reason) = (
            "input_size",
            format!("{tile} pixels are no tiles of patches of {patch}"),
        );
        return Err(Error::InvalidProcessor { field, reason });
    }
    Ok(ImageProcessor {
        sizing: Sizing::OverlappingTiles(OverlappingTiles {
            tile,
            patch,
            merge: MERGE_SIDE,
            margin: MARGIN,
            most: 12,
            by_tile: true,
            padded: false,
            first: Some(SmartResize {
                patch,
                merge: 1,
                frames: 1,
                min_pixels: 3_136,
                max_pixels: 1_003_520,
                enlarging: Enlarging::None,
                features: Features::Grid,
            }),
        }),
        filter: Filter::Bicubic,
        scaling: Scaling {
            factor: Some(1.0 / 255.0),
            normalization: Some(([0.5; 3], [0.5; 3])),
        },
        layout: Layout::Planes,
    })
}
