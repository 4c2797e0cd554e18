//! Phi 3.5 and 4 with experts: layer norms, biases, and experts that are chosen one after the other.

use super::experts::place;
use super::llama;
use super::mixtral::NAMES;
use super::row::FamilyRow;
use super::source::Source;
use crate::config::decoder::{Activation, NormKind};
use crate::config::moe::{MoeConfig, RouterConfig, Scoring};
use crate::config::Family;
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("Phi 3.5 MoE, Phi mini MoE", &["phimoe"], parse)];

/// Phi 3.5 MoE and Phi mini and tiny MoE. The window of their configs is the whole context.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let mut config = llama::decoder(text)?;
    config.norm.kind = NormKind::Layer { bias: true };
    config.norm.eps = text.number("rms_norm_eps")?.unwrap_or(1e-5);
    let scoring = Scoring::SparseMixer {
        jitter: text.number("router_jitter_noise")?.unwrap_or(0.01),
    };
    let experts = MoeConfig {
        num_experts: text.number("num_local_experts")?.unwrap_or(16),
        top_k: text.number("num_experts_per_tok")?.unwrap_or(2),
        width: text.required("intermediate_size")?,
        activation: Activation::Silu,
        bias: false,
        router: RouterConfig::new(scoring, false),
        shared: None,
    };
    place(&mut config, experts, |_| true);
    config.renames = &[NAMES];
    config.family()
}
