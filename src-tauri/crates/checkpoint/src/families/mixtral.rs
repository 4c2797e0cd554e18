//! Mixtral: Llama's shape with experts.

use super::llama;
use super::row::FamilyRow;
use super::source::Source;
use crate::config::decoder::{Activation, FeedForward};
use crate::config::moe::{MoeConfig, RouterConfig, Scoring};
use crate::config::Family;
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("Mixtral", &["mixtral"], parse)];

/// The name of the experts in the checkpoints.
pub(super) const NAMES: &[(&str, &str)] = &[("block_sparse_moe", "mlp")];

/// Mixtral of 8 times 7 and 8 times 22 billion parameters.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let mut config = llama::decoder(text)?;
    let experts = MoeConfig {
        num_experts: text.number("num_local_experts")?.unwrap_or(8),
        top_k: text.number("num_experts_per_tok")?.unwrap_or(2),
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
