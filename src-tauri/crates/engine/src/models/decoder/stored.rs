//! The form in which a checkpoint has its weights: as its makers wrote them, or as mlx-lm converts them.

use checkpoint::config::decoder::{DecoderConfig, LmHead, OriginalMark};

use crate::error;
use crate::weights::Weights;

/// True if the checkpoint has this mark of those that mlx-lm did not convert.
pub(super) fn is_original(weights: &Weights<'_>, mark: OriginalMark) -> bool {
    weights.any(|name, shape| match mark {
        OriginalMark::Convolutions => name.ends_with(".conv1d.weight") && shape.last() != Some(&1),
        OriginalMark::Segment(segment) => name.split('.').any(|part| part == segment),
    })
}

/// The config with what only the weights tell.
pub(super) fn as_stored(config: &DecoderConfig, offset: bool, weights: &mut Weights<'_>) -> DecoderConfig {
    let mut config = config.clone();
    config.norm.offset |= offset;
    if let Some(folded) = &config.folded {
        if is_original(weights, OriginalMark::Convolutions) {
            config.embedding_multiplier = Some(folded.embedding);
            config.logits_divisor = Some(folded.logits.recip());
            weights.scale(&folded.matrices);
        } else if config.lm_head == LmHead::Tied || !weights.has("lm_head.weight") {
            config.logits_divisor = Some(folded.embedding / folded.logits);
        }
    }
    // Conversions for text alone may leave out the tokens that stand for images.
    let stored = weights.shape("embed_tokens.weight").and_then(|shape| shape.first());
    if stored.is_some_and(|rows| *rows == config.vocab_size as i32) {
        config.read_only_tokens = 0;
    }
    config
}

/// Gives projections of original files, whose inputs come first, the rows that others have.
pub(super) fn turn_projections(config: &DecoderConfig, weights: &mut Weights<'_>) -> error::Result<()> {
    const JOINED: &str = "self_attn.qkv_proj.weight";
    let stored = weights.shape(&format!("layers.0.{JOINED}"));
    let rows = stored.and_then(|shape| shape.first());
    if !config.inputs_first_unless_sanitized || rows != Some(&(config.hidden_size as i32)) {
        return Ok(());
    }
    let projections = [
        JOINED,
        "self_attn.o_proj.weight",
        "mlp.up_proj.weight",
        "mlp.down_proj.weight",
    ];
    weights.turn(|name| name.starts_with("layers.") && projections.iter().any(|projection| name.ends_with(projection)))
}
