//! GPT-NeoX and Pythia: layer norms, attention and a network without a gate beside each other, each with a norm, a partly
//! turning head, biases everywhere. Defaults are those of transformers' `GPTNeoXConfig`.

use super::row::FamilyRow;
use super::shapes::Shapes;
use super::source::Source;
use crate::config::decoder::{
    AttentionConfig, EncoderActivation, FeedForward, LayerConfig, Mixer, NormKind, NormPlacement, PlainConfig,
};
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::Family;
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("GPT-NeoX, Pythia", &["gpt_neox"], parse)];

/// Names outside of the layers, and of the layers themselves in files of mlx-lm.
const OUTER: &[(&str, &str)] = &[
    ("gpt_neox.layers", "layers"),
    ("gpt_neox.embed_in", "embed_tokens"),
    ("gpt_neox.final_layer_norm", "norm"),
    ("h", "layers"),
    ("embed_in", "embed_tokens"),
    ("embed_out", "lm_head"),
    ("final_layer_norm", "norm"),
];

/// Names inside of a layer.
const INNER: &[(&str, &str)] = &[
    ("attention.query_key_value", "self_attn.qkv_proj"),
    ("attention.dense", "self_attn.o_proj"),
    ("mlp.dense_h_to_4h", "mlp.up_proj"),
    ("mlp.dense_4h_to_h", "mlp.down_proj"),
];

/// GPT-NeoX and Pythia.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let width = text.number("intermediate_size")?;
    let shapes = Shapes::with_width(text, 0)?;
    let shapes = Shapes {
        width: width.unwrap_or(shapes.hidden_size.saturating_mul(4)),
        eps: text.number("layer_norm_eps")?.unwrap_or(1e-5),
        ..shapes
    };
    let activation = text.text("hidden_act")?;
    let bias = text.flag("attention_bias")?.unwrap_or(true);
    let layer = LayerConfig {
        norms: match text.flag("use_parallel_residual")? {
            Some(false) => NormPlacement::Pre,
            Some(true) | None => NormPlacement::ParallelPair,
        },
        mixer: Mixer::Attention(AttentionConfig {
            joined_by_key_head: true,
            qkv_bias: bias,
            o_bias: bias,
            ..AttentionConfig::new(shapes.heads, shapes.key_heads, shapes.head_dim, Some(0))
        }),
        feed_forward: FeedForward::Plain(PlainConfig {
            width: shapes.width,
            activation: EncoderActivation::named(activation.as_deref().unwrap_or("gelu"))?,
            bias: true,
        }),
    };
    let defaults = Defaults {
        theta: text.number("rotary_emb_base")?.unwrap_or(10_000.0),
        partial: text.number("rotary_pct")?.unwrap_or(0.25),
        ..Defaults::default()
    };
    let rope = RopeConfig::parse(text, shapes.head_dim, For::All, defaults)?;
    let mut config = shapes.decoder(vec![rope], vec![layer; shapes.layers as usize]);
    config.norm.kind = NormKind::Layer { bias: true };
    config.renames = &[OUTER, INNER];
    config.family()
}
