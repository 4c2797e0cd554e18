//! Granite 3 and 4: Llama's shape with four multipliers, with experts in the small ones.

use super::llama;
use super::row::FamilyRow;
use super::source::Source;
use crate::config::decoder::{Activation, DecoderConfig, FeedForward};
use crate::config::moe::{MoeConfig, RouterConfig, Scoring, SharedExpertConfig};
use crate::config::{Family, Fields};
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::text("Granite 3 and 4, dense", &["granite"], dense),
    FamilyRow::text("Granite 3 with experts", &["granitemoe"], experts),
];

/// Names of the experts in the checkpoints, those of the original files first.
pub(super) const EXPERTS: &[(&str, &str)] = &[
    ("block_sparse_moe.input_linear.weight", "mlp.experts.gate_up_proj"),
    ("block_sparse_moe.output_linear.weight", "mlp.experts.down_proj"),
    ("block_sparse_moe.router.layer", "mlp.gate"),
    ("block_sparse_moe", "mlp"),
];

/// Granite 3 and 4 (dense).
pub(super) fn dense(source: Source<'_>) -> Result<Family, Error> {
    scaled(source.text, llama::decoder(source.text)?)?.family()
}

/// Granite 3 of 1 and 3 billion parameters.
pub(super) fn experts(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let mut config = scaled(text, llama::decoder(text)?)?;
    place_experts(&mut config, text, None)?;
    config.family()
}

/// Puts experts into every layer, with a network beside them. The scores of the chosen ones sum to 1.
pub(super) fn place_experts(
    config: &mut DecoderConfig,
    text: Fields<'_>,
    shared: Option<SharedExpertConfig>,
) -> Result<(), Error> {
    let experts = MoeConfig {
        num_experts: text.required("num_local_experts")?,
        top_k: text.required("num_experts_per_tok")?,
        width: text.required("intermediate_size")?,
        activation: Activation::Silu,
        bias: false,
        router: RouterConfig::new(Scoring::Softmax, true),
        shared,
    };
    config.each_layer(|layer| layer.feed_forward = FeedForward::Moe(experts));
    config.renames = &[EXPERTS];
    Ok(())
}

/// Llama's shape with the multipliers.
pub(super) fn scaled(text: Fields<'_>, mut config: DecoderConfig) -> Result<DecoderConfig, Error> {
    // Written for each model; without it the scores are not scaled at all.
    let scale = text.number("attention_multiplier")?.unwrap_or(1.0);
    config.each_attention(|attention| attention.scale = scale);
    Ok(DecoderConfig {
        embedding_multiplier: text.number("embedding_multiplier")?,
        residual_multiplier: text.number("residual_multiplier")?,
        logits_divisor: text.number("logits_scaling")?,
        ..config
    })
}
