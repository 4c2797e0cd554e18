//! Phi 4 Multimodal without what it hears: SigLIP on tiles of an image and on the whole, of which blocks of four patches
//! become one token, beside Phi 4 mini with an adapter for what it sees.

use serde_json::{Map, Value};

use super::shape::TowerShape;
use super::{check_width, VisionConfig};
use crate::config::activation::EncoderActivation;
use crate::config::decoder::MergedAdapter;
use crate::config::{Family, Fields};
use crate::error::{unusable, Error};
use crate::families::row::{FamilyRow, ProcessorRow, VisionRow};
use crate::families::{llama, Source};
use crate::image_processor::parts::{room_for_a_token, CENTRED, PATCH, SIDE, TILES};
use crate::image_processor::{CornerTiles, Filter, ImageProcessor, Layout, ProcessorConfig, Sizing};
use crate::image_prompt::ImagePrompt;
use crate::memory::VisionCost;

/// The rows of the family.
pub(in crate::families) const FAMILIES: &[FamilyRow] = &[FamilyRow::vision(
    "Phi 4 Multimodal, without what it hears",
    &["phi4mm"],
    language_part,
    VisionRow {
        encoder: parse,
        processor: ProcessorRow::fixed(&["Phi4MM"], processor),
        prompt: ImagePrompt::new("<|endoftext10|>"),
    },
)];

/// Patches along a side of what becomes one token.
pub const MERGE: u32 = 2;

/// Pixels of a side of a tile, and of a patch, in all published models.
const TILE: u32 = 448;
const PATCH_SIDE: u32 = 14;

/// A tower of tiles with marks between their features.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phi4VisionConfig {
    /// The stack, without the last layer.
    pub shape: TowerShape,
    /// Patches along a side.
    pub side: u32,
}

/// Phi 4 mini. The adapter for images belongs to the weights here, as in conversions, for texts alone, too; that for
/// speech does not.
fn language_part(source: Source<'_>) -> Result<Family, Error> {
    // Conversions may write a `text_config` that says next to nothing.
    let text = match source.text.has("hidden_size") {
        true => source.text,
        false => source.top,
    };
    let mut config = llama::decoder(text)?;
    let window = text.number("sliding_window")?;
    config.each_attention(|attention| attention.window = window);
    config.merged = Some(MergedAdapter {
        name: "vision",
        scale: scale(source.top)?,
    });
    config.family()
}

/// The factor of the adapter for images, 1 if nothing is said of it.
fn scale(top: Fields<'_>) -> Result<f32, Error> {
    let Some(adapter) = top.object("vision_lora")? else {
        return Ok(1.0);
    };
    let (rank, alpha) = (
        adapter.number("r")?.unwrap_or(256u32),
        adapter.number("lora_alpha")?.unwrap_or(512.0f32),
    );
    check_width("r", rank.into())?;
    let scale = alpha / rank as f32;
    match rank > 0 && scale.is_finite() {
        true => Ok(scale),
        false => unusable("vision_lora", format!("{alpha} by {rank} is no factor")),
    }
}

/// The one tower of the family, of which original files tell nothing.
fn parse(_: Fields<'_>, top: Fields<'_>) -> Result<VisionConfig, Error> {
    const SIZE: &str = "image_size";
    let unsupported = |what: &str| Err(Error::Unsupported(format!("{what} of Phi 4 (`embd_layer`)")));
    let nothing = Map::new();
    let part = |of: Fields<'_>, name: &'static str| -> Result<Map<String, Value>, Error> {
        // A name that nothing has, so that all is kept.
        Ok(of.object(name)?.map_or_else(Map::new, |part| part.without("")))
    };
    let vision = top.object("vision_config")?.unwrap_or(Fields::new(&nothing));
    let layers = part(top, "embd_layer")?;
    let images = part(Fields::new(&layers), "image_embd_layer")?;
    let images = Fields::new(&images);
    for (field, known) in [
        ("hd_transform_order", "sub_glb"),
        ("image_token_compression_cls", "avg_pool_2d"),
        ("projection_cls", "mlp"),
    ] {
        if images.text(field)?.is_some_and(|kind| kind != known) {
            return unsupported(&format!("another `{field}` than `{known}`"));
        }
    }
    for field in ["use_hd_transform", "with_learnable_separator"] {
        if images.flag(field)? == Some(false) {
            return unsupported(&format!("a tower without `{field}`"));
        }
    }
    if let Some(tower) = top.object("img_processor")? {
        if tower.number("layer_idx")?.unwrap_or(-2.0f32) != -2.0 {
            return unsupported("states after another layer");
        }
    }
    let eps = vision.number("layer_norm_eps")?.unwrap_or(1e-6);
    let usual = [1152, 27, 16, 4304, PATCH_SIDE];
    let shape = TowerShape::parse(vision, usual, eps, EncoderActivation::GeluTanh)?;
    if shape.layers < 2 {
        return unusable("num_hidden_layers", "there is no layer before the last");
    }
    let side = shape.side(vision, TILE)?;
    let crop = images.number("crop_size")?.unwrap_or(side * shape.patch_size);
    if !side.is_multiple_of(MERGE) || crop != side * shape.patch_size {
        let reason = format!("{side} rows of patches are no blocks of {MERGE} in {crop} pixels");
        return unusable(SIZE, reason);
    }
    Ok(VisionConfig::Phi4(Phi4VisionConfig {
        shape: TowerShape {
            layers: shape.layers - 1,
            ..shape
        },
        side,
    }))
}

impl Phi4VisionConfig {
    pub(super) fn cost(&self) -> VisionCost {
        self.shape.cost(2, self.side, 1).joined(MERGE)
    }
}

fn processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    let tile = processor.model_number(&["vision_config.image_size"], TILE, SIDE)?;
    let patch = processor.model_number(&["vision_config.patch_size"], PATCH_SIDE, PATCH)?;
    room_for_a_token(tile, patch * MERGE)?;
    if !tile.is_multiple_of(patch * MERGE) {
        return Err(Error::InvalidProcessor {
            field: "size",
            reason: format!("a tile of {tile} pixels is no blocks of patches of {patch}"),
        });
    }
    Ok(ImageProcessor {
        sizing: Sizing::CornerTiles(CornerTiles {
            tile,
            most: processor.number("dynamic_hd", 36, TILES)?,
            patch,
        }),
        filter: Filter::Bilinear,
        scaling: processor.scaling(Some(CENTRED))?,
        layout: Layout::Planes,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ModelConfig;

    fn config() -> Value {
        // As Phi-4-multimodal-instruct has it, which says nothing of its tower.
        let factors: Vec<f32> = vec![1.5; 48];
        let images = json!({"crop_size": 448, "embedding_cls": "tune_image", "hd_transform_order": "sub_glb",
            "image_token_compression_cls": "avg_pool_2d", "projection_cls": "mlp", "use_hd_transform": true,
            "with_learnable_separator": true});
        json!({"model_type": "phi4mm", "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 32, "num_attention_heads": 24,
            "num_key_value_heads": 8, "rms_norm_eps": 1e-5, "vocab_size": 200064, "tie_word_embeddings": true, "partial_rotary_factor": 0.75,
            "max_position_embeddings": 131072, "original_max_position_embeddings": 4096, "sliding_window": 262144, "img_processor": null,
            "rope_scaling": {"type": "longrope", "long_factor": factors, "short_factor": factors},
            "embd_layer": {"embedding_cls": "image_audio", "image_embd_layer": images},
            "vision_lora": {"dp": 0.0, "lora_alpha": 512, "r": 256}, "speech_lora": {"dp": 0.01, "lora_alpha": 640, "r": 320}})
    }

    #[test]
    fn the_tower_and_the_adapter_are_those_of_the_class() {
        let found = ModelConfig::parse(&config().to_string()).unwrap();
        let (Some(VisionConfig::Phi4(tower)), Family::Decoder(decoder)) = (&found.vision, &found.family) else {
            panic!("{found:?}")
        };
        assert_eq!(
            (tower.shape.layers, tower.shape.hidden_size, tower.side),
            (26, 1152, 32)
        );
        assert_eq!(
            decoder.merged.map(|adapter| (adapter.name, adapter.scale)),
            Some(("vision", 2.0))
        );
        assert_eq!(decoder.ropes[0].dims, 96);
        assert!(
            (4.2e9..4.5e9).contains(&(found.parameters() as f64)),
            "{}",
            found.parameters()
        );
    }

    #[test]
    fn another_way_of_the_tower_is_refused_and_texts_are_read() {
        for (place, value) in [
            ("/embd_layer/image_embd_layer/hd_transform_order", json!("glb_sub")),
            (
                "/embd_layer/image_embd_layer/image_token_compression_cls",
                json!("none"),
            ),
            ("/embd_layer/image_embd_layer/projection_cls", json!("linear")),
            ("/embd_layer/image_embd_layer/use_hd_transform", json!(false)),
            ("/embd_layer/image_embd_layer/with_learnable_separator", json!(false)),
            ("/embd_layer/image_embd_layer/crop_size", json!(336)),
            ("/img_processor", json!({"layer_idx": -1})),
        ] {
            let mut config = config();
            *config.pointer_mut(place).unwrap() = value.clone();
            let found = ModelConfig::parse(&config.to_string()).unwrap();
            assert!(
                found.vision.is_none() && found.vision_problem.is_some(),
                "{place} {value}"
            );
        }
        for vision in [
            json!({"num_hidden_layers": 1}),
            json!({"image_size": 350}),
            json!({"hidden_size": u32::MAX}),
            json!({"patch_size": 0}),
        ] {
            let mut config = config();
            config["vision_config"] = vision.clone();
            let found = ModelConfig::parse(&config.to_string()).unwrap();
            assert!(found.vision.is_none() && found.vision_problem.is_some(), "{vision}");
        }
        for adapter in [
            json!({"r": 0}),
            json!({"r": u32::MAX}),
            json!({"lora_alpha": 1e39}),
            json!(2),
        ] {
            let mut config = config();
            config["vision_lora"] = adapter.clone();
            assert!(ModelConfig::parse(&config.to_string()).is_err(), "{adapter}");
        }
    }
}
