//! ERNIE 4.5, dense: Llama's shape, in which neighbors turn against each other; in PaddleOCR-VL, halves do.

use super::llama;
use super::row::{FamilyRow, ProcessorRow, VisionRow};
use super::source::Source;
use super::vision::siglip;
use crate::config::decoder::{DecoderConfig, FeedForward};
use crate::config::{Family, Fields};
use crate::error::Error;
use crate::image_processor::parts::patches;
use crate::image_processor::{Enlarging, ImageProcessor, ProcessorConfig, SmartResize, CLIP};
use crate::image_prompt::ImagePrompt;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::text("ERNIE 4.5", &["ernie4_5"], parse),
    FamilyRow::vision(
        "PaddleOCR-VL",
        &["paddleocr_vl"],
        paddleocr,
        VisionRow {
            encoder: siglip::paddleocr,
            processor: ProcessorRow::always(&["PaddleOCRVL"], processor),
            prompt: ImagePrompt {
                written: "<|IMAGE_START|><|IMAGE_PLACEHOLDER|><|IMAGE_END|>",
                ..ImagePrompt::new("<|IMAGE_PLACEHOLDER|>")
            },
        },
    ),
];

/// ERNIE 4.5 without experts.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let mut config = decoder(source.text)?;
    config.ropes.iter_mut().for_each(|rope| rope.traditional = true);
    config.family()
}

/// The language part of PaddleOCR-VL.
pub(super) fn paddleocr(source: Source<'_>) -> Result<Family, Error> {
    decoder(source.text)?.family()
}

fn decoder(text: Fields<'_>) -> Result<DecoderConfig, Error> {
    let mut config = llama::decoder(text)?;
    let bias = text.flag("use_bias")?.unwrap_or(false);
    config.each_attention(|attention| (attention.qkv_bias, attention.o_bias) = (bias, bias));
    for layer in &mut config.layers {
        if let FeedForward::Dense(dense) = &mut layer.feed_forward {
            dense.bias = bias;
        }
    }
    Ok(config)
}

fn processor(processor: &ProcessorConfig) -> Result<ImageProcessor, Error> {
    let in_turn = |rule| SmartResize {
        enlarging: Enlarging::InTurn,
        ..rule
    };
    patches(processor, 14, 1, (147_456, 2_359_296), in_turn, false, CLIP)
}
