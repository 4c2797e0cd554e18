//! Ling and Ring: Llama's shape under other names, experts from the second layer on.

use super::experts::{groups, place, refuse_biases, scoring};
use super::llama;
use super::row::FamilyRow;
use super::shapes::rotary_part;
use super::source::Source;
use crate::config::decoder::{Activation, QkNorm};
use crate::config::moe::{Correction, MoeConfig, RouterConfig, Scoring, SharedExpertConfig};
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::{Family, Fields};
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("Ling, Ring", &["bailing_moe"], parse)];

/// Names in the checkpoints.
const NAMES: &[(&str, &str)] = &[
    ("attention.query_key_value", "self_attn.qkv_proj"),
    ("attention.dense", "self_attn.o_proj"),
    ("attention.query_layernorm", "self_attn.q_norm"),
    ("attention.key_layernorm", "self_attn.k_norm"),
    ("mlp.gate.gate_proj", "mlp.gate"),
    ("mlp.gate.expert_bias", "mlp.gate.e_score_correction_bias"),
    ("word_embeddings", "embed_tokens"),
];

/// Ling and Ring, 1.5 and 2.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    // mlx-lm divides columns where the original divides rows, and quantized ones not at all.
    if text.flag("norm_head")?.unwrap_or(false) {
        return Err(Error::Unsupported("an output layer with norms (`norm_head`)".into()));
    }
    refuse_biases(text, "use_bias")?;
    let mut config = llama::decoder(text)?;
    let (bias, normed) = (text.flag("use_qkv_bias")?, text.flag("use_qk_norm")?);
    let mut head_dim = 0;
    for attention in config.attention() {
        head_dim = attention.head_dim;
        attention.qkv_bias = bias.unwrap_or(false);
        if normed.unwrap_or(false) {
            attention.qk_norm = QkNorm::PerHead;
        }
    }
    let defaults = Defaults {
        partial: rotary_part(text, head_dim)?,
        ..Defaults::default()
    };
    config.ropes = vec![RopeConfig::parse(text, head_dim, For::All, defaults)?];
    let experts = experts(text)?;
    let first = text.number::<u32>("first_k_dense_replace")?.unwrap_or(0) as usize;
    place(&mut config, experts, |layer| layer >= first);
    config.renames = &[NAMES];
    config.family()
}

/// The experts, and the network beside them.
pub(super) fn experts(text: Fields<'_>) -> Result<MoeConfig, Error> {
    let (top_k, width) = (
        text.required("num_experts_per_tok")?,
        text.required("moe_intermediate_size")?,
    );
    let beside = match text.flag("moe_router_enable_shared_expert")?.unwrap_or(true) {
        true => text.number::<u32>("num_shared_experts")?.filter(|count| *count > 0),
        false => None,
    };
    let shared = text.number("moe_shared_expert_intermediate_size")?.unwrap_or(width);
    Ok(MoeConfig {
        num_experts: text.required("num_experts")?,
        top_k,
        width,
        activation: Activation::Silu,
        bias: false,
        router: RouterConfig {
            factor: text.number("routed_scaling_factor")?.unwrap_or(1.0),
            correction: Correction::when(text.flag("moe_router_enable_expert_bias")?.unwrap_or(false)),
            groups: groups(text)?,
            ..RouterConfig::new(
                scoring(text, "score_function", Scoring::Softmax)?,
                top_k > 1 && text.flag("norm_topk_prob")?.unwrap_or(true),
            )
        },
        shared: beside.map(|count| SharedExpertConfig::beside(count.saturating_mul(shared))),
    })
}
