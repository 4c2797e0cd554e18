//! The first Qwen: Llama's shape with other names and biases on the joined projection of queries, keys and values.
//! Defaults are those of the `configuration_qwen.py` beside the weights.

use super::row::FamilyRow;
use super::shapes::Shapes;
use super::source::Source;
use crate::config::decoder::{
    Activation, AttentionConfig, DenseConfig, FeedForward, LayerConfig, LmHead, Mixer, NormPlacement,
};
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::Family;
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("Qwen 1", &["qwen"], parse)];

/// Names outside of the layers, and of the layers themselves.
const OUTER: &[(&str, &str)] = &[
    ("transformer.h", "layers"),
    ("transformer.wte", "embed_tokens"),
    ("transformer.ln_f", "norm"),
];

/// Names inside of a layer.
const INNER: &[(&str, &str)] = &[
    ("attn.c_attn", "self_attn.qkv_proj"),
    ("attn.c_proj", "self_attn.o_proj"),
    ("mlp.w1", "mlp.up_proj"),
    ("mlp.w2", "mlp.gate_proj"),
    ("mlp.c_proj", "mlp.down_proj"),
    ("ln_1", "input_layernorm"),
    ("ln_2", "post_attention_layernorm"),
];

/// Qwen of 1.8 to 72 billion parameters.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let shapes = Shapes::parse(text)?;
    let shapes = Shapes {
        key_heads: shapes.heads,
        head_dim: text.number("kv_channels")?.unwrap_or(shapes.hidden_size / shapes.heads),
        eps: text.number("layer_norm_epsilon")?.unwrap_or(1e-6),
        lm_head: match text.flag("tie_word_embeddings")? {
            Some(true) => LmHead::Tied,
            Some(false) | None => LmHead::Untied,
        },
        ..shapes
    };
    let bias = !text.flag("no_bias")?.unwrap_or(true);
    let layer = LayerConfig {
        norms: NormPlacement::Pre,
        mixer: Mixer::Attention(AttentionConfig {
            qkv_bias: true,
            o_bias: bias,
            ..AttentionConfig::new(shapes.heads, shapes.key_heads, shapes.head_dim, Some(0))
        }),
        // The file counts gate and what it gates together.
        feed_forward: FeedForward::Dense(DenseConfig {
            width: shapes.width / 2,
            activation: Activation::Silu,
            bias,
        }),
    };
    let defaults = Defaults {
        theta: text.number("rotary_emb_base")?.unwrap_or(10_000.0),
        partial: text.number("rotary_pct")?.unwrap_or(1.0),
        ..Defaults::default()
    };
    let rope = RopeConfig::parse(text, shapes.head_dim, For::All, defaults)?;
    let mut config = shapes.decoder(vec![rope], vec![layer; shapes.layers as usize]);
    // Beyond them it would need rotary positions and scores that grow with the sequence (`use_dynamic_ntk`).
    config.most_positions = text.number("seq_length")?;
    config.renames = &[OUTER, INNER];
    config.family()
}
