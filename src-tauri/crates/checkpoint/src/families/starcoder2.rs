//! StarCoder 2: layer norms, biases everywhere, and a network without a gate. Defaults are those of transformers'
//! `Starcoder2Config`.

use super::row::FamilyRow;
use super::shapes::Shapes;
use super::source::Source;
use crate::config::decoder::{
    AttentionConfig, EncoderActivation, FeedForward, LayerConfig, LmHead, Mixer, NormKind, NormPlacement, PlainConfig,
};
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::Family;
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("StarCoder 2", &["starcoder2"], parse)];

/// The names of the network in the checkpoints.
const NAMES: &[(&str, &str)] = &[("mlp.c_fc", "mlp.up_proj"), ("mlp.c_proj", "mlp.down_proj")];

/// StarCoder 2 of 3, 7 and 15 billion parameters.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let bias = text.flag("use_bias")?.unwrap_or(true);
    let shapes = Shapes {
        eps: text.number("norm_epsilon")?.unwrap_or(1e-5),
        lm_head: match text.flag("tie_word_embeddings")? {
            Some(false) => LmHead::Untied,
            Some(true) | None => LmHead::Tied,
        },
        ..Shapes::parse(text)?
    };
    let activation = text.text("hidden_act")?;
    let layer = LayerConfig {
        norms: NormPlacement::Pre,
        mixer: Mixer::Attention(AttentionConfig {
            window: text.number("sliding_window")?,
            qkv_bias: bias,
            o_bias: bias,
            ..AttentionConfig::new(shapes.heads, shapes.key_heads, shapes.head_dim, Some(0))
        }),
        feed_forward: FeedForward::Plain(PlainConfig {
            width: shapes.width,
            activation: EncoderActivation::named(activation.as_deref().unwrap_or("gelu_pytorch_tanh"))?,
            bias,
        }),
    };
    let rope = RopeConfig::parse(text, shapes.head_dim, For::All, Defaults::default())?;
    let mut config = shapes.decoder(vec![rope], vec![layer; shapes.layers as usize]);
    config.norm.kind = NormKind::Layer { bias: true };
    config.renames = &[NAMES];
    config.family()
}
