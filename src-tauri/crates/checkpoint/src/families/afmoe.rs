//! Trinity: norms around both halves of a layer, a gate after attention, and positions in sliding layers alone.

use super::experts::{groups, place, scoring};
use super::llama;
use super::row::FamilyRow;
use super::shapes::windows;
use super::source::Source;
use crate::config::decoder::{Activation, GateFunction, GateSource, NormPlacement, OutputGate, QkNorm};
use crate::config::moe::{Correction, MoeConfig, RouterConfig, Scoring, SharedExpertConfig};
use crate::config::Family;
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("Trinity", &["afmoe"], parse)];

/// Names in the checkpoints.
const NAMES: &[(&str, &str)] = &[
    ("self_attn.gate_proj", "self_attn.g_proj"),
    ("pre_mlp_layernorm", "pre_feedforward_layernorm"),
    ("post_mlp_layernorm", "post_feedforward_layernorm"),
    ("mlp.router.gate", "mlp.gate"),
    ("mlp.expert_bias", "mlp.gate.e_score_correction_bias"),
];

/// Trinity of Arcee.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let mut config = llama::decoder(text)?;
    if windows(text, config.layers.len() as u32)?.is_none() {
        let every = text.number("global_attn_every_n_layers")?.unwrap_or(4u32).max(1) as usize;
        let window = text.number("sliding_window")?.unwrap_or(1024);
        for (layer, attention) in config.attention().enumerate() {
            attention.window = (!(layer + 1).is_multiple_of(every)).then_some(window);
        }
    }
    for attention in config.attention() {
        attention.qk_norm = QkNorm::PerHead;
        attention.rope = attention.rope.filter(|_| attention.window.is_some());
        attention.output_gate = Some(OutputGate {
            source: GateSource::Numbers,
            function: GateFunction::Sigmoid,
        });
    }
    config.each_layer(|layer| layer.norms = NormPlacement::Sandwich);
    if text.flag("mup_enabled")?.unwrap_or(false) {
        config.embedding_multiplier = Some((config.hidden_size as f32).sqrt());
    }
    let (top_k, width) = (
        text.required("num_experts_per_tok")?,
        text.required("moe_intermediate_size")?,
    );
    let beside = text.number::<u32>("num_shared_experts")?.filter(|count| *count > 0);
    let experts = MoeConfig {
        num_experts: text.required("num_experts")?,
        top_k,
        width,
        activation: Activation::Silu,
        bias: false,
        router: RouterConfig {
            factor: text.number("route_scale")?.unwrap_or(1.0),
            correction: Correction::Always,
            groups: groups(text)?,
            ..RouterConfig::new(
                scoring(text, "score_func", Scoring::Sigmoid)?,
                top_k > 1 && text.flag("route_norm")?.unwrap_or(true),
            )
        },
        shared: beside.map(|count| SharedExpertConfig::beside(count.saturating_mul(width))),
    };
    let dense = text.number::<u32>("num_dense_layers")?.unwrap_or(1) as usize;
    place(&mut config, experts, |layer| layer >= dense);
    config.renames = &[NAMES];
    config.family()
}
