//! EXAONE 4: norms after each half of a layer and of each head; in the large one three sliding layers for each full
//! one, which knows nothing of positions. K-EXAONE has experts, and norms before each half.

use super::experts::{corrected_router, place, sparse_layers};
use super::llama;
use super::row::FamilyRow;
use super::source::Source;
use crate::config::decoder::{Activation, DecoderConfig, NormPlacement, QkNorm};
use crate::config::moe::{MoeConfig, SharedExpertConfig};
use crate::config::{Family, Fields};
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::text("EXAONE 4", &["exaone4"], parse),
    FamilyRow::text("K-EXAONE", &["exaone_moe"], experts),
];

/// The name of the correction in the original checkpoints.
const NAMES: &[(&str, &str)] = &[("mlp.e_score_correction_bias", "mlp.gate.e_score_correction_bias")];

/// EXAONE 4 of 1.2 and 32 billion parameters.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let mut config = decoder(source.text)?;
    config.each_layer(|layer| layer.norms = NormPlacement::Post);
    config.family()
}

/// K-EXAONE.
pub(super) fn experts(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let mut config = decoder(text)?;
    config.norm.eps = text.number("rms_norm_eps")?.unwrap_or(1e-5);
    let width = text.required("moe_intermediate_size")?;
    let top_k = text.required("num_experts_per_tok")?;
    let beside = text.number::<u32>("num_shared_experts")?.filter(|count| *count > 0);
    let normalised = top_k > 1 && text.flag("norm_topk_prob")?.unwrap_or(true);
    let factor = text.number("routed_scaling_factor")?.unwrap_or(2.5);
    let experts = MoeConfig {
        num_experts: text.required("num_experts")?,
        top_k,
        width,
        activation: Activation::Silu,
        bias: false,
        router: corrected_router(text, normalised, factor)?,
        shared: beside.map(|count| SharedExpertConfig::beside(count.saturating_mul(width))),
    };
    let layers = config.layers.len() as u32;
    let sparse = match text.flags("is_moe_layer", layers)? {
        Some(sparse) => Some(sparse),
        None => sparse_layers(text, layers)?,
    };
    let first = text.number::<u32>("first_k_dense_replace")?.unwrap_or(1) as usize;
    place(&mut config, experts, |layer| {
        sparse.as_ref().map_or(layer >= first, |sparse| sparse[layer])
    });
    config.renames = &[NAMES];
    config.family()
}

fn decoder(text: Fields<'_>) -> Result<DecoderConfig, Error> {
    let mut config = llama::decoder(text)?;
    // Either one letter per layer, repeated, or a list by name, as newer configs have it.
    let pattern = match text.has("layer_types") {
        true => None,
        false => text
            .text("sliding_window_pattern")?
            .filter(|pattern| !pattern.is_empty()),
    };
    if let Some(pattern) = pattern {
        let window = Some(text.required("sliding_window")?);
        for (attention, letter) in config.attention().zip(pattern.chars().cycle()) {
            attention.window = window.filter(|_| letter == 'L');
        }
    }
    let slides = config.attention().any(|attention| attention.window.is_some());
    for attention in config.attention() {
        attention.qk_norm = QkNorm::PerHead;
        attention.rope = attention.rope.filter(|_| !slides || attention.window.is_some());
    }
    Ok(config)
}
