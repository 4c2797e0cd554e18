//! Granite 3 and 4: Llama's shape with four multipliers, with experts in the small ones.

use super::llama;
use super::row::FamilyRow;
use super::source::Source;
use crate::config::decoder::{Activation, DecoderConfig, FeedForward};
use crate::config::moe::{MoeConfig, RouterConfig, Scoring};
use crate::config::{Family, Fields};
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::text("Granite 3 and 4, dense", &["granite"], dense),
    FamilyRow::text("Granite 3 with experts", &["granitemoe"], experts),
];

/// Names of the experts in the checkpoints, those of the original files first.
const NAMES: &[(&str, &str)] = &[
    ("block_sparse_moe.input_linear.weight", "mlp.experts.gate_up_proj"),
    ("block_sparse_moe.output_linear.weight", "mlp.experts.down_proj"),
    ("block_sparse_moe.router.layer", "mlp.gate"),
    ("block_sparse_moe", "mlp"),
];

/// Granite 3 and 4 (dense).
pub(super) fn dense(source: Source<'_>) -> Result<Family, Error> {
    decoder(source.text)?.family()
}

/// Granite 3 of 1 and 3 billion parameters. The scores of the chosen experts sum to 1.
pub(super) fn experts(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let mut config = decoder(text)?;
    let experts = MoeConfig {
        num_experts: text.required("num_local_experts")?,
        top_k: text.required("num_experts_per_tok")?,
        width: text.required("intermediate_size")?,
        activation: Activation::Silu,
        bias: false,
        router: RouterConfig::new(Scoring::Softmax, true),
        shared: None,
    };
    config.each_layer(|layer| layer.feed_forward = FeedForward::Moe(experts));
    config.renames = &[NAMES];
    config.family()
}

fn decoder(text: Fields<'_>) -> Result<DecoderConfig, Error> {
    let mut config = llama::decoder(text)?;
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
