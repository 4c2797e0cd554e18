//! Janus, as far as it understands images: SigLIP by timm's names, a projector of two projections, and Llama.

use serde_json::Map;

use super::llava::{language_part, tower, LlavaConfig};
use super::{LlavaProjector, VisionConfig};
use crate::config::activation::EncoderActivation;
use crate::config::Fields;
use crate::error::Error;
use crate::families::row::{FamilyRow, ProcessorRow, VisionRow};
use crate::image_processor::parts::{room_for_a_token, CENTRED, PATCH, SIDE};
use crate::image_processor::{Filter, ImageProcessor, Layout, ProcessorConfig, Sizing};
use crate::image_prompt::{ImagePrompt, ImageRun};

/// The rows of the family.
pub(in crate::families) const FAMILIES: &[FamilyRow] = &[FamilyRow::vision(
    "Janus, without its images",
    &["multi_modality"],
    language_part,
    VisionRow {
        encoder: parse,
        processor: ProcessorRow::always(&["VLM"], processor),
        prompt: ImagePrompt {
            written: "<image_placeholder>\n",
            template: Some(TEMPLATE),
            run: ImageRun::Between("<begin_of_image>", "<end_of_image>"),
            ..ImagePrompt::new("<image_placeholder>")
        },
    },
)];

/// The form of a conversation, which the original repositories have in code (`conversation.py`, `deepseek`).
const TEMPLATE: &str = "{{ bos_token }}You are a helpful language and vision assistant. You are able to understand \
    the visual content that the user provides, and assist the user with a variety of tasks using natural language.\
    {{ '\\n\\n' }}{% for message in messages %}{% if message['role'] == 'user' %}<|User|>: {{ message['content'] }}\
    {{ '\\n\\n' }}{% elif message['role'] == 'assistant' %}<|Assistant|>: {{ message['content'] }}{{ eos_token }}\
    {% endif %}{% endfor %}{% if add_generation_prompt %}<|Assistant|>:{% endif %}";

/// Pixels of a side, and of a patch, in all published models.
const PIXELS: u32 = 384;
const PATCH_SIDE: u32 = 16;

fn parse(vision: Fields<'_>, top: Fields<'_>) -> Result<VisionConfig, Error> {
    let unsupported = |what: String| Err(Error::Unsupported(what));
    if vision.text("cls")?.as_deref() == Some("HybridVisionTower") {
        return unsupported("two towers at once (`HybridVisionTower`), as DeepSeek-VL has".into());
    }
    if !top.has("gen_vision_config") {
        return unsupported("DeepSeek-VL, whose images stand in prompts otherwise than those of Janus".into());
    }
    let params = vision.object("params")?.unwrap_or(vision);
    let name = params.text("model_name")?;
    if name.as_deref().is_some_and(|name| name != "siglip_large_patch16_384") {
        let name = name.unwrap_or_default();
        return unsupported(format!("a tower of the kind `{name}` beside Janus"));
    }
    if params.number("select_layer")?.unwrap_or(-1.0f32) != -1.0 {
        return unsupported("states before the last layer of Janus' tower (`select_layer`)".into());
    }
    let aligner = top.object("aligner_config")?.or(top.object("projector_config")?);
    if let Some(aligner) = aligner.map(|aligner| aligner.object("params")).transpose()?.flatten() {
        let kind = aligner.text("projector_type")?;
        let depth = aligner.number("depth")?.unwrap_or(2u32);
        if kind.as_deref().is_some_and(|kind| kind != "mlp_gelu") || depth != 2 {
            let kind = kind.unwrap_or_default();
            return unsupported(format!("the projector `{kind}` of {depth} projections beside Janus"));
        }
    }
    // A name that nothing has, so that all is kept.
    let mut shape = vision.without("");
    let defaults = [
        ("hidden_size", 1024),
        ("num_hidden_layers", 24),
        ("num_attention_heads", 16),
        ("intermediate_size", 4096),
        ("patch_size", PATCH_SIDE),
        ("image_size", params.number("image_size")?.unwrap_or(PIXELS)),
    ];
    for (field, usual) in defaults {
        shape.entry(field).or_insert(usual.into());
    }
    shape.insert("model_type".to_owned(), "siglip_vision_model".into());
    shape.entry("hidden_act").or_insert("gelu".into());
    let projector = LlavaProjector::Network(EncoderActivation::Gelu);
    let nothing = Map::new();
    Ok(VisionConfig::Llava(LlavaConfig {
        post_norm: true,
        ..tower(Fields::new(&shape), Fields::new(&nothing), "full", -1, projector)?
    }))
}

fn processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    let places = ["vision_config.image_size", "vision_config.params.image_size"];
    let side = processor.model_number(&places, PIXELS, SIDE)?;
    let patch = processor.model_number(&["vision_config.patch_size"], PATCH_SIDE, PATCH)?;
    let shown = processor.number("image_size", side, SIDE)?;
    if shown != side {
        let reason = format!("the tower takes images of {side} pixels, and not of {shown}");
        let field = "image_size";
        return Err(Error::InvalidProcessor { field, reason });
    }
    room_for_a_token(side, patch)?;
    Ok(ImageProcessor {
        sizing: Sizing::Boxed {
            side,
            least: processor.number("min_size", 14, 1..=side)?,
            patch,
        },
        filter: processor.filter(Filter::Bicubic)?,
        scaling: processor.scaling(Some(CENTRED))?,
        layout: Layout::Planes,
    })
}
