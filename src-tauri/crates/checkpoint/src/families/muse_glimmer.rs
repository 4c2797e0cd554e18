//! Muse Glimmer, its text part: norms without factors of embeddings, queries and keys, norms around both halves of a
//! layer, a gate after attention, and three sliding layers for each full one, which knows nothing of positions.

use super::llama;
use super::row::FamilyRow;
use super::shapes::windows;
use super::source::Source;
use crate::config::decoder::{EmbeddingNorm, GateFunction, GateSource, NormPlacement, OutputGate, QkNorm};
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::Family;
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("Muse Glimmer, text only", &["muse_glimmer"], parse)];

/// The name of the gate in the checkpoints.
const NAMES: &[(&str, &str)] = &[("self_attn.gate_proj", "self_attn.g_proj")];

/// Muse Glimmer.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let mut config = llama::decoder(text)?;
    let layers = config.layers.len() as u32;
    if windows(text, layers)?.is_none() {
        let window = text.number("sliding_window")?.unwrap_or(2048);
        for (layer, attention) in config.attention().enumerate() {
            attention.window = (!(layer + 1).is_multiple_of(4)).then_some(window);
        }
    }
    let bases = text.by_layer::<f32>("layer_rope_theta", layers)?;
    let factor: f32 = text.number("qk_scale_factor")?.unwrap_or(3.87);
    let mut head_dim = 0;
    for (layer, attention) in config.attention().enumerate() {
        head_dim = attention.head_dim;
        let turns = match &bases {
            Some(bases) => bases[layer] != 0.0,
            None => attention.window.is_some(),
        };
        attention.rope = attention.rope.filter(|_| turns);
        attention.qk_norm = QkNorm::PerHeadBare;
        attention.scale *= factor;
        attention.output_gate = Some(OutputGate {
            source: GateSource::Numbers,
            function: GateFunction::Sigmoid,
        });
    }
    config.ropes = vec![RopeConfig::parse(text, head_dim, For::All, Defaults::new(500_000.0))?];
    config.each_layer(|layer| layer.norms = NormPlacement::Sandwich);
    config.norm.eps = text.number("rms_norm_eps")?.unwrap_or(1e-5);
    config.norm.eps_after = Some(text.number("post_norm_eps")?.unwrap_or(1e-8));
    (config.norm.offset, config.norm.last_as_is) = (true, true);
    config.embedding_norm = Some(EmbeddingNorm::Bare);
    // The root of 1/26.
    let multiplier = text.number("output_multiplier")?.unwrap_or(0.196_116_14f32);
    config.logits_divisor = Some(multiplier.recip());
    config.logits_softcap = Some(text.number("final_logit_softcapping")?.unwrap_or(20.0));
    config.renames = &[NAMES];
    config.family()
}
