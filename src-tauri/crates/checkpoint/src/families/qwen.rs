//! Qwen 2 and 3: Llama's shape with biases on q, k and v, or with norms of queries and keys.

use super::llama;
use super::row::{FamilyRow, ProcessorRow, VisionRow};
use super::source::Source;
use super::vision::qwen as vision;
use crate::config::decoder::{DecoderConfig, QkNorm};
use crate::config::{Family, Fields};
use crate::error::Error;
use crate::image_processor::parts::patches;
use crate::image_processor::{ImageProcessor, ProcessorConfig, CLIP};
use crate::image_prompt::ImagePrompt;

/// How the family reads images, with the encoder of Qwen3-VL.
pub(super) const VISION: VisionRow = VisionRow {
    encoder: vision::qwen3,
    processor: ProcessorRow::new(&["Qwen2VL", "Qwen2_5_VL", "Qwen3VL"], processor),
    prompt: ImagePrompt {
        written: "<|vision_start|><|image_pad|><|vision_end|>",
        ..ImagePrompt::new("<|image_pad|>")
    },
};

/// How dots.ocr reads images.
const DOTS: VisionRow = VisionRow {
    encoder: vision::dots,
    processor: ProcessorRow::always(&["DotsVL"], dots_processor),
    prompt: ImagePrompt {
        written: "<|img|><|imgpad|><|endofimg|>",
        ..ImagePrompt::new("<|imgpad|>")
    },
};

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::vision("dots.ocr", &["dots_ocr"], qwen2, DOTS),
    FamilyRow::text("Qwen 2 and 2.5, MiMo", &["qwen2", "mimo"], qwen2),
    FamilyRow::vision(
        "Qwen2-VL",
        &["qwen2_vl"],
        qwen2,
        VisionRow {
            encoder: vision::qwen2,
            ..VISION
        },
    ),
    FamilyRow::vision(
        "Qwen2.5-VL",
        &["qwen2_5_vl"],
        qwen2,
        VisionRow {
            encoder: vision::qwen2_5,
            ..VISION
        },
    ),
    FamilyRow::text("Qwen 3", &["qwen3"], qwen3),
    FamilyRow::vision("Qwen3-VL", &["qwen3_vl"], qwen3, VISION),
];

/// Qwen 2 and 2.5, and MiMo, which has layers for more than the next token beside those used here.
pub(super) fn qwen2(source: Source<'_>) -> Result<Family, Error> {
    let mut config = decoder(source.text)?;
    // Built in, whatever `attention_bias` says.
    config.each_attention(|attention| (attention.qkv_bias, attention.o_bias) = (true, false));
    config.family()
}

/// Qwen 3, dense.
pub(super) fn qwen3(source: Source<'_>) -> Result<Family, Error> {
    let mut config = decoder(source.text)?;
    config.each_attention(|attention| attention.qk_norm = QkNorm::PerHead);
    config.family()
}

fn decoder(text: Fields<'_>) -> Result<DecoderConfig, Error> {
    let mut config = llama::decoder(text)?;
    // Layers from `max_window_layers` on slide, in the few models that switch it on.
    if text.texts("layer_types")?.is_none() && text.flag("use_sliding_window")?.unwrap_or(false) {
        let window = text.number("sliding_window")?;
        let first = text.number::<u32>("max_window_layers")?.unwrap_or(0) as usize;
        for attention in config.attention().skip(first) {
            attention.window = window;
        }
    }
    Ok(config)
}

/// That of dots.ocr, whose patches are of one frame.
fn dots_processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    patches(processor, 14, 1, (3_136, 11_289_600), |rule| rule, true, CLIP)
}

/// The processor of Qwen2-VL and its successors.
fn processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    patches(processor, 14, 2, (3_136, 1_003_520), |rule| rule, true, CLIP)
}
