//! Klear: Qwen 3's shape, corrected experts, and shares of them and of a network beside them that sum to 1.

use super::experts::corrected_router;
use super::llama;
use super::qwen_moe::place_experts;
use super::row::FamilyRow;
use super::source::Source;
use crate::config::decoder::{Activation, QkNorm};
use crate::config::moe::{Balance, MoeConfig, SharedExpertConfig};
use crate::config::Family;
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("Klear", &["Klear"], parse)];

/// Names in the checkpoints.
const NAMES: &[(&str, &str)] = &[("mlp.expert_bias", "mlp.gate.e_score_correction_bias")];

/// Klear of 46 billion parameters.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let mut config = llama::decoder(text)?;
    config.each_attention(|attention| attention.qk_norm = QkNorm::PerHead);
    let width = text.required("moe_intermediate_size")?;
    let beside = text.number::<u32>("n_shared_experts")?.unwrap_or(1);
    let experts = MoeConfig {
        num_experts: text.required("num_experts")?,
        top_k: text.required("num_experts_per_tok")?,
        width,
        activation: Activation::Silu,
        bias: false,
        router: corrected_router(text, text.flag("norm_topk_prob")?.unwrap_or(true), 1.0)?,
        shared: Some(SharedExpertConfig {
            balance: Balance::Shares,
            ..SharedExpertConfig::beside(beside.saturating_mul(width))
        }),
    };
    place_experts(&mut config, text, experts)?;
    config.renames = &[NAMES];
    config.family()
}
