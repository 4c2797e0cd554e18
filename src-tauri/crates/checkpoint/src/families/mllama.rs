//! Llama 3.2 Vision: Llama with layers between that look at images.

use super::llama;
use super::row::{FamilyRow, ProcessorRow, VisionRow};
use super::source::Source;
use super::vision::mllama;
use super::vision::MllamaVisionConfig;
use crate::config::decoder::{CrossAttentionConfig, DecoderConfig, LmHead, Mixer};
use crate::config::Family;
use crate::error::{unusable, Error};
use crate::image_processor::parts::{room_for_a_token, CENTRED, PATCH, SIDE};
use crate::image_processor::{Filter, ImageProcessor, Layout, ProcessorConfig, Sizing, TiledCanvas};
use crate::image_prompt::{ImagePrompt, ImageRun};

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::vision(
    "Llama 3.2 Vision",
    &["mllama"],
    parse,
    VisionRow {
        encoder: mllama::parse,
        processor: ProcessorRow::new(&["Mllama"], processor),
        prompt: ImagePrompt {
            run: ImageRun::Itself,
            ..ImagePrompt::new("<|image|>")
        },
    },
)];

/// Tokens that only stand for images.
const READ_ONLY_TOKENS: u32 = 8;

/// The layers that look at images, unless the config says so.
const CROSS_ATTENTION_LAYERS: [u32; 8] = [3, 8, 13, 18, 23, 28, 33, 38];

/// The text model beside a tower.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    const FIELD: &str = "cross_attention_layers";
    let text = source.text;
    let mut decoder = llama::decoder(text)?;
    let looking: Vec<u32> = match text.numbers(FIELD)? {
        Some(layers) => layers.into_iter().map(|layer| layer as u32).collect(),
        None => CROSS_ATTENTION_LAYERS
            .into_iter()
            .filter(|layer| (*layer as usize) < decoder.layers.len())
            .collect(),
    };
    let states = MllamaVisionConfig::states(source.top);
    for layer in looking {
        let count = decoder.layers.len();
        let layer = decoder
            .layers
            .get_mut(layer as usize)
            .ok_or_else(|| Error::invalid(FIELD, format!("there is no layer {layer} of {count}")))?;
        if let Mixer::Attention(attention) = &layer.mixer {
            layer.mixer = Mixer::CrossAttention(CrossAttentionConfig {
                heads: attention.heads,
                key_heads: attention.key_heads,
                head_dim: attention.head_dim,
                states,
            });
        }
    }
    if !decoder
        .layers
        .iter()
        .any(|layer| matches!(layer.mixer, Mixer::Attention(_)))
    {
        return unusable(FIELD, "no layer is left that looks at text");
    }
    DecoderConfig {
        read_only_tokens: READ_ONLY_TOKENS,
        lm_head: LmHead::Untied,
        ..decoder
    }
    .family()
}

fn processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
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
