//! MiniMax M2: Llama's shape, norms over all heads of queries and of keys together, experts in every layer.

use super::experts::{corrected_router, place};
use super::llama;
use super::row::FamilyRow;
use super::shapes::rotary_part;
use super::source::Source;
use crate::config::decoder::{Activation, QkNorm};
use crate::config::moe::MoeConfig;
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::Family;
use crate::error::Error;

/// The rows of the family. Early files of M2 have the name of the older models.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("MiniMax M2", &["minimax", "minimax_m2"], parse)];

/// Names in the checkpoints.
const NAMES: &[(&str, &str)] = &[
    (
        "block_sparse_moe.e_score_correction_bias",
        "mlp.gate.e_score_correction_bias",
    ),
    ("block_sparse_moe", "mlp"),
];

/// MiniMax M2 and its successors of the same shape.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let linear = text
        .numbers("attn_type_list")?
        .is_some_and(|kinds| kinds.contains(&0.0));
    if linear || text.has("linear_attn_alpha_factor") {
        return Err(Error::Unsupported("lightning attention (MiniMax-Text-01)".into()));
    }
    match text.text("scoring_func")?.as_deref() {
        None | Some("sigmoid") => {}
        Some(other) => return Err(Error::Unsupported(format!("experts scored by `{other}`"))),
    }
    let mut config = llama::decoder(text)?;
    let mut head_dim = 0;
    let normed = text.flag("use_qk_norm")?.unwrap_or(true);
    for attention in config.attention() {
        head_dim = attention.head_dim;
        if normed {
            attention.qk_norm = QkNorm::Whole;
        }
    }
    let defaults = Defaults {
        partial: rotary_part(text, head_dim)?,
        ..Defaults::new(5_000_000.0)
    };
    config.ropes = vec![RopeConfig::parse(text, head_dim, For::All, defaults)?];
    let experts = MoeConfig {
        num_experts: text.required("num_local_experts")?,
        top_k: text.required("num_experts_per_tok")?,
        width: text.required("intermediate_size")?,
        activation: Activation::Silu,
        bias: false,
        router: corrected_router(text, true, 1.0)?,
        shared: None,
    };
    place(&mut config, experts, |_| true);
    config.renames = &[NAMES];
    config.family()
}
