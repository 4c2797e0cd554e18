//! HRM Text: two stacks of layers, of which the low one is gone through several times before the high one, each time
//! with keys of its own. Norms have no factors, and what heads found is gated. Defaults are those of transformers'
//! `HrmTextConfig`. A prompt is read from left to right, as mlx-vlm reads it.

use super::llama;
use super::row::FamilyRow;
use super::shapes::Shapes;
use super::source::Source;
use crate::config::decoder::{
    AttentionConfig, CyclesConfig, DenseConfig, FeedForward, GateFunction, GateSource, LayerConfig, Mixer,
    NormPlacement, OutputGate,
};
use crate::config::limits::check_layers;
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::{Family, Fields};
use crate::error::{unusable, Error};

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("HRM Text", &["hrm_text"], parse)];

/// Names in its checkpoints.
const NAMES: &[(&str, &str)] = &[
    ("attn.gate_proj", "self_attn.g_proj"),
    ("self_attn.gate_proj", "self_attn.g_proj"),
    ("attn", "self_attn"),
];

/// HRM Text.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let cycles = CyclesConfig {
        low: text.number("L_cycles")?.unwrap_or(3),
        high: text.number("H_cycles")?.unwrap_or(2),
    };
    let heads = text.required("num_attention_heads")?;
    let of_stack = match text.number("num_layers_per_stack")? {
        Some(layers) => layers,
        None => text.required("num_hidden_layers")?,
    };
    let shapes = Shapes {
        hidden_size: text.required("hidden_size")?,
        vocab_size: text.required("vocab_size")?,
        layers: check_layers(of_stack.saturating_mul(2))?,
        heads,
        key_heads: text.number("num_key_value_heads")?.unwrap_or(heads),
        head_dim: text.number("head_dim")?.unwrap_or(128),
        width: text.required("intermediate_size")?,
        eps: text.number("rms_norm_eps")?.unwrap_or(1e-6),
        lm_head: Shapes::lm_head(text)?,
    };
    let bias = text.flag("attention_bias")?.unwrap_or(false);
    let layer = LayerConfig {
        norms: NormPlacement::Pre,
        mixer: Mixer::Attention(AttentionConfig {
            qkv_bias: bias,
            o_bias: bias,
            output_gate: Some(OutputGate {
                source: GateSource::Numbers,
                function: GateFunction::Sigmoid,
            }),
            ..AttentionConfig::new(heads, shapes.key_heads, shapes.head_dim, Some(0))
        }),
        feed_forward: FeedForward::Dense(DenseConfig {
            width: shapes.width,
            activation: llama::activation(text)?,
            bias: text.flag("mlp_bias")?.unwrap_or(false),
        }),
    };
    let rope = RopeConfig::parse(text, shapes.head_dim, For::All, Defaults::default())?;
    let mut config = shapes.decoder(vec![rope], vec![layer; shapes.layers as usize]);
    (config.norm.bare, config.norm.bare_end) = (true, true);
    config.embedding_multiplier = Some(embedding_scale(text)?);
    config.cycles = Some(cycles);
    config.renames = &[NAMES];
    config.family()
}

/// The factor of embeddings: one over the deviation that they began with, if the file has none.
fn embedding_scale(text: Fields<'_>) -> Result<f32, Error> {
    const FIELD: &str = "initializer_range";
    if let Some(scale) = text.number("embedding_scale")? {
        return Ok(scale);
    }
    let range: f32 = text.number(FIELD)?.unwrap_or(0.02);
    match range > 0.0 {
        true => Ok(range.recip()),
        false => unusable(FIELD, format!("{range} is not above 0")),
    }
}
