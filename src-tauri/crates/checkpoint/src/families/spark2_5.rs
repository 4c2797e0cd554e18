//! Spark 2.5: sliding and full layers with positions of their own, a gate for each head, and GELU by the error
//! function.

use super::llama;
use super::row::FamilyRow;
use super::shapes::{ropes_by_type, windows};
use super::source::Source;
use crate::config::decoder::{Activation, FeedForward, GateFunction, GateSource, OutputGate};
use crate::config::rope::Defaults;
use crate::config::{Family, Fields};
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("Spark 2.5", &["spark2_5"], parse)];

/// Names in the checkpoints.
const NAMES: &[(&str, &str)] = &[
    ("self_attn.q_k_v_proj", "self_attn.qkv_proj"),
    ("self_attn.out_proj", "self_attn.o_proj"),
    ("embedding", "embed_tokens"),
];

/// Spark 2.5.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    refuse_others(text)?;
    // Llama's parser knows no activation of this name.
    let known = text.without("hidden_act");
    let mut config = llama::decoder(Fields::new(&known))?;
    if windows(text, config.layers.len() as u32)?.is_none() {
        let window = Some(text.required("sliding_window")?);
        for (layer, attention) in config.attention().enumerate() {
            attention.window = window.filter(|_| !(layer + 1).is_multiple_of(4));
        }
    }
    ropes_by_type(text, &mut config, Defaults::default(), Defaults::default())?;
    config.each_attention(|attention| {
        attention.output_gate = Some(OutputGate {
            source: GateSource::Heads,
            function: GateFunction::Sigmoid,
        });
    });
    config.each_layer(|layer| {
        if let FeedForward::Dense(dense) = &mut layer.feed_forward {
            dense.activation = Activation::Gelu;
        }
    });
    config.renames = &[NAMES];
    config.family()
}

/// Refuses what no model of the family has.
fn refuse_others(text: Fields<'_>) -> Result<(), Error> {
    for (field, only) in [("hidden_act", "gelu"), ("gate_attn_act_mode", "sigmoid")] {
        if let Some(other) = text.text(field)?.filter(|name| name != only) {
            return Err(Error::Unsupported(format!("`{other}` as `{field}`")));
        }
    }
    match text.flag("headwise_attn_output_gate")? {
        Some(false) => Err(Error::Unsupported("attention without gates of its heads".into())),
        Some(true) | None => Ok(()),
    }
}
