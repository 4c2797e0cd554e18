//! ERNIE 4.5, dense and with experts: Llama's shape, in which neighbors turn against each other; in PaddleOCR-VL,
//! halves do.

use super::experts::{place, refuse_biases, scoring};
use super::llama;
use super::row::{FamilyRow, ProcessorRow, VisionRow};
use super::source::Source;
use super::vision::siglip;
use crate::config::decoder::{Activation, DecoderConfig, FeedForward};
use crate::config::moe::{Correction, MoeConfig, RouterConfig, Scoring, SharedExpertConfig};
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::{Family, Fields};
use crate::error::Error;
use crate::image_processor::parts::patches;
use crate::image_processor::{Enlarging, ImageProcessor, ProcessorConfig, SmartResize, CLIP};
use crate::image_prompt::ImagePrompt;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::text("ERNIE 4.5", &["ernie4_5"], parse),
    FamilyRow::text("ERNIE 4.5 with experts", &["ernie4_5_moe"], experts),
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

/// Names of the correction in the checkpoints of the maker and of transformers.
const NAMES: &[(&str, &str)] = &[("mlp.moe_statics", "mlp.gate"), ("mlp.gate.moe_statics", "mlp.gate")];

/// ERNIE 4.5 without experts.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let mut config = decoder(source.text)?;
    config.ropes.iter_mut().for_each(|rope| rope.traditional = true);
    config.family()
}

/// ERNIE 4.5 with experts. The correction of their choice is in the original files alone: mlx-lm leaves it out.
pub(super) fn experts(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    refuse_biases(text, "use_bias")?;
    let mut config = decoder(text)?;
    let head_dim = config.attention().next().map_or(2, |attention| attention.head_dim);
    let defaults = Defaults {
        traditional: true,
        ..Defaults::new(500_000.0)
    };
    config.ropes = vec![RopeConfig::parse(text, head_dim, For::All, defaults)?];
    config.norm.eps = text.number("rms_norm_eps")?.unwrap_or(1e-5);
    let width = match text.number("moe_intermediate_size")?.filter(|width| *width > 0) {
        Some(width) => width,
        None => text.required("intermediate_size")?,
    };
    let beside = text.number::<u32>("moe_num_shared_experts")?.filter(|count| *count > 0);
    let experts = MoeConfig {
        num_experts: text.required("moe_num_experts")?,
        top_k: text.number("moe_k")?.unwrap_or(6),
        width,
        activation: Activation::Silu,
        bias: false,
        router: RouterConfig {
            correction: Correction::IfPresent,
            ..RouterConfig::new(scoring(text, "moe_gate_act", Scoring::Softmax)?, true)
        },
        shared: beside.map(|count| SharedExpertConfig::beside(count.saturating_mul(width))),
    };
    let first = text.number::<u32>("moe_layer_start_index")?.unwrap_or(1) as usize;
    // -1 stands for the last layer.
    let last = text.number::<f32>("moe_layer_end_index")?.filter(|last| *last >= 0.0);
    let step = text.number::<u32>("moe_layer_interval")?.unwrap_or(1).max(1) as usize;
    place(&mut config, experts, |layer| {
        (layer + 1).is_multiple_of(step) && layer >= first && last.is_none_or(|last| layer as f32 <= last)
    });
    config.renames = &[NAMES];
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
