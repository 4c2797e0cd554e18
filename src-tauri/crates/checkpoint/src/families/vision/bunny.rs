//! Bunny and nanoLLaVA: SigLIP with the projector of LLaVA beside Qwen 2 or Llama 3.

use serde_json::Map;

use super::llava::tower;
use super::{LlavaProjector, VisionConfig};
use crate::config::activation::EncoderActivation;
use crate::config::{Family, Fields};
use crate::error::Error;
use crate::families::row::{FamilyRow, ProcessorRow, VisionRow};
use crate::families::{llama, qwen, Source};
use crate::image_processor::parts::{CENTRED, PATCH, SIDE};
use crate::image_processor::{Filter, ImageProcessor, Layout, ProcessorConfig, Sizing};
use crate::image_prompt::ImagePrompt;

/// The rows of the family.
pub(in crate::families) const FAMILIES: &[FamilyRow] = &[FamilyRow::vision(
    "Bunny with Llama 3, nanoLLaVA",
    &["bunny-llama", "llava-qwen2", "llava_bunny"],
    language_part,
    VisionRow {
        encoder: parse,
        processor: ProcessorRow::fixed(&[], processor),
        prompt: ImagePrompt {
            written: "<image>\n",
            added: true,
            ..ImagePrompt::new("<image>")
        },
    },
)];

/// Images of SigLIP unless a config has others, and the side of its patches.
const PIXELS: u32 = 384;
const PATCH_SIDE: u32 = 14;

/// The language part, which the name of the whole tells.
fn language_part(source: Source<'_>) -> Result<Family, Error> {
    match source.top.text("model_type")?.as_deref() {
        Some("bunny-llama") => llama::parse(source),
        _ => qwen::qwen2(source),
    }
}

/// The tower, of which original repositories tell nothing but its name.
fn parse(_: Fields<'_>, top: Fields<'_>) -> Result<VisionConfig, Error> {
    let named = top.text("mm_vision_tower")?;
    if named
        .as_deref()
        .is_some_and(|name| !name.to_lowercase().contains("siglip"))
    {
        let name = named.unwrap_or_default();
        return Err(Error::Unsupported(format!("a tower of the kind `{name}` beside Bunny")));
    }
    if top.text("mm_projector_type")?.is_some_and(|kind| kind != "mlp2x_gelu") {
        return Err(Error::Unsupported(
            "another projector of Bunny than `mlp2x_gelu`".into(),
        ));
    }
    if top.flag("use_s2")? == Some(true) {
        return Err(Error::Unsupported(
            "images of several sizes beside Bunny (`use_s2`)".into(),
        ));
    }
    let mut vision = match top.object("vision_config")? {
        // A name that nothing has, so that all is kept.
        Some(vision) => vision.without(""),
        None => Map::new(),
    };
    let defaults = [
        ("hidden_size", 1152),
        ("num_hidden_layers", 27),
        ("num_attention_heads", 16),
        ("intermediate_size", 4304),
        ("image_size", PIXELS),
        ("patch_size", PATCH_SIDE),
    ];
    for (field, usual) in defaults {
        vision.entry(field).or_insert(usual.into());
    }
    vision.entry("model_type").or_insert("siglip_vision_model".into());
    let projector = LlavaProjector::Network(EncoderActivation::Gelu);
    Ok(VisionConfig::Llava(tower(
        Fields::new(&vision),
        top,
        "full",
        -1,
        projector,
    )?))
}

/// A square, with the color of no number beside the image if the config asks for that (`image_aspect_ratio`).
fn processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    let side = processor.model_number(&["vision_config.image_size"], PIXELS, SIDE)?;
    let patch = processor.model_number(&["vision_config.patch_size"], PATCH_SIDE, PATCH)?;
    if patch > side {
        let (field, reason) = ("patch_size", format!("{side} pixels hold no patch of {patch}"));
        return Err(Error::InvalidProcessor { field, reason });
    }
    let sizing = match processor.model_text("image_aspect_ratio")? {
        Some("pad") => Sizing::Square { side, patch },
        _ => Sizing::Fixed {
            width: side,
            height: side,
            patch,
            tokens: side / patch,
        },
    };
    Ok(ImageProcessor {
        sizing,
        filter: processor.filter(Filter::Bicubic)?,
        scaling: processor.scaling(Some(CENTRED))?,
        layout: Layout::Planes,
    })
}
