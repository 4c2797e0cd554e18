//! Phi 1 to 2: attention and a network without a gate beside each other after one layer norm, a part of a head turns,
//! biases everywhere, that of the output layer included. Defaults are those of transformers' `PhiConfig`.

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
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("Phi 1, 1.5 and 2", &["phi"], parse)];

/// Names in the checkpoints.
const NAMES: &[(&str, &str)] = &[
    ("self_attn.dense", "self_attn.o_proj"),
    ("mlp.fc1", "mlp.up_proj"),
    ("mlp.fc2", "mlp.down_proj"),
    ("final_layernorm", "norm"),
];

/// Phi 1, 1.5 and 2.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    if text.flag("qk_layernorm")?.unwrap_or(false) {
        return Err(Error::Unsupported(
            "layer norms of queries and keys (`qk_layernorm`)".into(),
        ));
    }
    let shapes = Shapes {
        eps: text.number("layer_norm_eps")?.unwrap_or(1e-5),
        ..Shapes::parse(text)?
    };
    let activation = text.text("hidden_act")?;
    let layer = LayerConfig {
        norms: NormPlacement::Parallel,
        mixer: Mixer::Attention(AttentionConfig {
            qkv_bias: true,
            o_bias: true,
            ..AttentionConfig::new(shapes.heads, shapes.key_heads, shapes.head_dim, Some(0))
        }),
        feed_forward: FeedForward::Plain(PlainConfig {
            width: shapes.width,
            activation: EncoderActivation::named(activation.as_deref().unwrap_or("gelu_new"))?,
            bias: true,
        }),
    };
    let defaults = Defaults {
        partial: 0.5,
        ..Defaults::default()
    };
    let rope = RopeConfig::parse(text, shapes.head_dim, For::All, defaults)?;
    let mut config = shapes.decoder(vec![rope], vec![layer; shapes.layers as usize]);
    config.norm.kind = NormKind::Layer { bias: true };
    config.renames = &[NAMES];
    config.family()
}
