//! Kolibri 1: norms around both halves of a layer, positions in sliding layers alone, experts in every layer, chosen by
//! corrected logits. Defaults are those of mlx-vlm.

use super::llama;
use super::row::FamilyRow;
use super::source::Source;
use crate::config::decoder::{Activation, NormPlacement, QkNorm};
use crate::config::moe::{Correction, MoeConfig, RouterConfig, Scoring, SharedExpertConfig};
use crate::config::Family;
use crate::error::Error;

use super::experts::place;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("Kolibri 1", &["kolibri1"], parse)];

/// Names in the checkpoints.
const NAMES: &[(&str, &str)] = &[
    ("post_attn_norm", "post_attention_layernorm"),
    ("post_attention_layernorm", "pre_feedforward_layernorm"),
    ("post_ffn_norm", "post_feedforward_layernorm"),
    ("moe.router.expert_bias", "mlp.gate.e_score_correction_bias"),
    ("mlp.expert_bias", "mlp.gate.e_score_correction_bias"),
];

/// Kolibri 1.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let mut config = llama::with_width(text, text.required("moe_intermediate_size")?)?;
    for attention in config.attention() {
        attention.qk_norm = QkNorm::PerHead;
        attention.rope = attention.rope.filter(|_| attention.window.is_some());
    }
    config.each_layer(|layer| layer.norms = NormPlacement::Sandwich);
    let (top_k, width) = (
        text.required("num_experts_per_tok")?,
        text.required("moe_intermediate_size")?,
    );
    let experts = MoeConfig {
        num_experts: text.required("num_experts")?,
        top_k,
        width,
        activation: Activation::Silu,
        bias: false,
        router: RouterConfig {
            correction: Correction::OfLogits,
            ..RouterConfig::new(Scoring::Sigmoid, text.flag("norm_topk_prob")?.unwrap_or(false))
        },
        shared: Some(SharedExpertConfig::beside(
            text.required("shared_expert_intermediate_size")?,
        )),
    };
    place(&mut config, experts, |_| true);
    config.renames = &[NAMES];
    config.family()
}
