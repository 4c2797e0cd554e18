//! Laguna: another number of heads in each layer, a gate for each of them, and positions that differ between sliding
//! and full layers.

use super::experts::{place, scoring, sparse_layers};
use super::llama;
use super::qwen_moe::SHARED;
use super::row::FamilyRow;
use super::shapes::ropes_by_type;
use super::source::Source;
use crate::config::decoder::{Activation, GateFunction, GateSource, OutputGate, QkNorm};
use crate::config::moe::{Correction, MoeConfig, RouterConfig, Scoring, SharedExpertConfig};
use crate::config::rope::Defaults;
use crate::config::{Family, Fields};
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("Laguna", &["laguna"], parse)];

/// Names in the checkpoints.
const NAMES: &[(&str, &str)] = &[
    ("mlp.gate.proj", "mlp.gate"),
    (
        "mlp.experts.e_score_correction_bias",
        "mlp.gate.e_score_correction_bias",
    ),
];

/// Laguna of Poolside.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    const ON_INPUT: &str = "moe_apply_router_weight_on_input";
    if text.flag(ON_INPUT)?.unwrap_or(false) {
        return Err(Error::Unsupported(format!(
            "what goes into experts weighed (`{ON_INPUT}`)"
        )));
    }
    let mut config = llama::decoder(text)?;
    let layers = config.layers.len() as u32;
    let (heads, gate) = (text.by_layer("num_attention_heads_per_layer", layers)?, gate(text)?);
    let bias = text.flag("qkv_bias")?.unwrap_or(false);
    for (layer, attention) in config.attention().enumerate() {
        attention.heads = heads.as_ref().map_or(attention.heads, |heads| heads[layer]);
        attention.qkv_bias = bias;
        attention.qk_norm = QkNorm::PerHead;
        attention.output_gate = gate;
    }
    let full = match text.has("rope_parameters") {
        true => Defaults::default(),
        false => Defaults {
            partial: 0.5,
            ..Defaults::new(500_000.0)
        },
    };
    ropes_by_type(text, &mut config, full, Defaults::default())?;
    let shared = text.number("shared_expert_intermediate_size")?.unwrap_or(512);
    let experts = MoeConfig {
        num_experts: text.required("num_experts")?,
        top_k: text.required("num_experts_per_tok")?,
        width: text.required("moe_intermediate_size")?,
        activation: Activation::Silu,
        bias: false,
        router: RouterConfig {
            softcap: text.number("moe_router_logit_softcapping")?.filter(|cap| *cap != 0.0),
            factor: text.number("moe_routed_scaling_factor")?.unwrap_or(1.0),
            correction: Correction::Always,
            ..RouterConfig::new(scoring(text, "moe_router_score_func", Scoring::Sigmoid)?, true)
        },
        shared: Some(SharedExpertConfig::beside(shared)),
    };
    let sparse = sparse_layers(text, layers)?;
    place(&mut config, experts, |layer| {
        sparse.as_ref().map_or(layer > 0, |sparse| sparse[layer])
    });
    config.renames = &[NAMES, SHARED];
    config.family()
}

/// The gate after attention by `gating`: true or false, or a word.
fn gate(text: Fields<'_>) -> Result<Option<OutputGate>, Error> {
    let word = text.text("gating").unwrap_or(None);
    let source = match word.as_deref() {
        None if !text.flag("gating")?.unwrap_or(true) => return Ok(None),
        None | Some("per-head") => GateSource::Heads,
        Some(_) => GateSource::Numbers,
    };
    Ok(Some(OutputGate {
        source,
        function: GateFunction::Softplus,
    }))
}
