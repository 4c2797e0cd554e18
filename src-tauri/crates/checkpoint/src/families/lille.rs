//! Lille: Llama's shape with other names, in which neighbors turn against each other. Defaults are those of mlx-lm's
//! `lille-130m.py`.

use super::row::FamilyRow;
use super::shapes::Shapes;
use super::source::Source;
use crate::config::decoder::{Activation, AttentionConfig, FeedForward, LayerConfig, LmHead, Mixer, NormPlacement};
use crate::config::limits::{check_heads, check_layers};
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::Family;
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("Lille 130M", &["lille-130m"], parse)];

/// Names outside of the layers, and of the layers themselves.
const OUTER: &[(&str, &str)] = &[
    ("transformer.layers", "layers"),
    ("transformer.tok_embeddings", "embed_tokens"),
    ("transformer.norm", "norm"),
];

/// Names inside of a layer.
const INNER: &[(&str, &str)] = &[
    ("attention.norm", "input_layernorm"),
    ("attention.qkv_proj", "self_attn.qkv_proj"),
    ("attention.out_proj", "self_attn.o_proj"),
    ("feed_forward.norm", "post_attention_layernorm"),
    ("feed_forward", "mlp"),
];

/// Lille of 130 million parameters.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let hidden_size = text.either("n_embd", "hidden_size")?;
    let heads = text.either("n_head", "num_attention_heads")?;
    check_heads("n_head", hidden_size, heads)?;
    let shapes = Shapes {
        hidden_size,
        vocab_size: text.required("vocab_size")?,
        layers: check_layers(text.either("n_layer", "num_hidden_layers")?)?,
        heads,
        key_heads: text.number("n_kv_heads")?.unwrap_or(heads),
        head_dim: hidden_size / heads,
        width: width(hidden_size),
        eps: text.number("layer_norm_eps")?.unwrap_or(1e-5),
        lm_head: LmHead::Tied,
    };
    let layer = LayerConfig {
        norms: NormPlacement::Pre,
        mixer: Mixer::Attention(AttentionConfig::new(heads, shapes.key_heads, shapes.head_dim, Some(0))),
        feed_forward: FeedForward::dense(shapes.width, Activation::Silu),
    };
    let defaults = Defaults {
        traditional: true,
        ..Defaults::default()
    };
    let rope = RopeConfig::parse(text, shapes.head_dim, For::All, defaults)?;
    let mut config = shapes.decoder(vec![rope], vec![layer; shapes.layers as usize]);
    config.renames = &[OUTER, INNER];
    config.family()
}

/// Eight thirds of the stream, as the nearest multiple of 256.
fn width(hidden_size: u32) -> u32 {
    let groups = (u64::from(hidden_size) * 8 / 3) as f64 / 256.0;
    (groups.round_ties_even() * 256.0) as u32
}
