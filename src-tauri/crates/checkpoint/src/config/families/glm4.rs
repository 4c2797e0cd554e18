//! GLM 4, dense: norms around both halves of a layer, neighbours of half a head turn against each other.

use super::{Shapes, Source};
use crate::config::decoder::{Activation, AttentionConfig, DecoderConfig, DenseConfig, FeedForward, LayerConfig, Mixer, NormPlacement};
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::{Error, Family};

/// What the checkpoints call the norms around.
const NORMS: &[(&str, &str)] = &[
    ("post_attention_layernorm", "pre_feedforward_layernorm"),
    ("post_self_attn_layernorm", "post_attention_layernorm"),
    ("post_mlp_layernorm", "post_feedforward_layernorm"),
];

/// GLM 4 of 9 and 32 billion parameters.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let shapes = Shapes::parse(text)?;
    let defaults = Defaults {
        traditional: true,
        partial: 0.5,
        ..Defaults::default()
    };
    let rope = RopeConfig::parse(text, shapes.head_dim, For::All, defaults)?;
    let layer = LayerConfig {
        norms: NormPlacement::Sandwich,
        mixer: Mixer::Attention(AttentionConfig {
            qkv_bias: text.flag("attention_bias")?.unwrap_or(false),
            ..AttentionConfig::new(shapes.heads, shapes.key_heads, shapes.head_dim, Some(0))
        }),
        feed_forward: FeedForward::Dense(DenseConfig {
            width: shapes.width,
            activation: Activation::Silu,
            bias: false,
        }),
    };
    let layers = vec![layer; shapes.layers as usize];
    DecoderConfig {
        renames: NORMS,
        ..shapes.decoder(vec![rope], layers)
    }
    .family()
}
