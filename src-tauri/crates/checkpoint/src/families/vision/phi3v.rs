//! Phi 3 Vision: CLIP on tiles of an image and on the whole, beside Phi 3.

use serde_json::Map;

use super::llava::{tower, LlavaConfig};
use super::{LlavaProjector, VisionConfig};
use crate::config::Fields;
use crate::error::{unusable, Error};
use crate::families::phi3;
use crate::families::row::{FamilyRow, ProcessorRow, VisionRow};
use crate::image_processor::parts::{room_for_a_token, PATCH, SIDE, TILES};
use crate::image_processor::{Filter, ImageProcessor, Layout, ProcessorConfig, Sizing, StretchedTiles, CLIP};
use crate::image_prompt::ImagePrompt;

/// The rows of the family.
pub(in crate::families) const FAMILIES: &[FamilyRow] = &[FamilyRow::vision(
    "Phi 3 and 3.5 Vision",
    &["phi3_v"],
    phi3::parse,
    VisionRow {
        encoder: parse,
        processor: ProcessorRow::fixed(&["Phi3V"], processor),
        prompt: ImagePrompt {
            written: "<|image|>\n",
            added: true,
            ..ImagePrompt::new("<|image|>")
        },
    },
)];

/// Patches along a side of what becomes one token.
const MERGE: u32 = 2;

/// Pixels of a side of a tile, and of a patch, in all published models.
const TILE: u32 = 336;
const PATCH_SIDE: u32 = 14;

/// The one tower of the family, of which its files tell nothing but the name.
fn parse(_: Fields<'_>, top: Fields<'_>) -> Result<VisionConfig, Error> {
    let unsupported = |what: &str| Err(Error::Unsupported(what.into()));
    if let Some(tower) = top.object("img_processor")? {
        if tower.text("name")?.is_some_and(|name| name != "clip_vision_model") {
            return unsupported("another tower of Phi 3 than CLIP (`img_processor.name`)");
        }
        if tower.number("layer_idx")?.unwrap_or(-2.0f32) != -2.0 {
            return unsupported("states after another layer of Phi 3's tower (`img_processor.layer_idx`)");
        }
    }
    if let Some(order) = top.object("embd_layer")? {
        let order_of_parts = order.text("hd_transform_order")?;
        let usual = order_of_parts.is_none_or(|order| order == "sub_glb")
            && order.flag("use_hd_transform")? != Some(false)
            && order.flag("with_learnable_separator")? != Some(false)
            && order.text("projection_cls")?.is_none_or(|kind| kind == "mlp");
        if !usual {
            return unsupported("another order or projector of tiles of Phi 3 (`embd_layer`)");
        }
    }
    let mut shape = match top.object("vision_config")? {
        // A name that nothing has, so that all is kept.
        Some(vision) => vision.without(""),
        None => Map::new(),
    };
    let defaults = [
        ("hidden_size", 1024),
        ("num_hidden_layers", 24),
        ("num_attention_heads", 16),
        ("intermediate_size", 4096),
        ("patch_size", PATCH_SIDE),
        ("image_size", TILE),
    ];
    for (field, usual) in defaults {
        shape.entry(field).or_insert(usual.into());
    }
    shape.insert("model_type".to_owned(), "clip_vision_model".into());
    let nothing = Map::new();
    let projector = LlavaProjector::Marked { merge: MERGE };
    let tower = tower(Fields::new(&shape), Fields::new(&nothing), "default", -2, projector)?;
    if !tower.side.is_multiple_of(MERGE) {
        let reason = format!("{} rows of patches are not blocks of {MERGE}", tower.side);
        return unusable("image_size", reason);
    }
    Ok(VisionConfig::Llava(LlavaConfig {
        row_ends: true,
        ..tower
    }))
}

fn processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    let tile = processor.model_number(&["vision_config.image_size"], TILE, SIDE)?;
    let patch = processor.model_number(&["vision_config.patch_size"], PATCH_SIDE, PATCH)?;
    room_for_a_token(tile, patch * MERGE)?;
    Ok(ImageProcessor {
        sizing: Sizing::StretchedTiles(StretchedTiles {
            tile,
            most: processor.number("num_crops", 4, TILES)?,
            patch,
            merge: MERGE,
        }),
        filter: Filter::Bicubic,
        scaling: processor.scaling(Some(CLIP))?,
        layout: Layout::Planes,
    })
}
