//! Nemotron and Minitron: layer norms whose factors are stored as their difference from 1, a partly turning head, and a
//! network without a gate that squares. Defaults are those of transformers' `NemotronConfig`.

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
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("Nemotron 4, Minitron", &["nemotron"], parse)];

/// Nemotron 4 and Minitron.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let shapes = Shapes {
        eps: text.number("norm_eps")?.unwrap_or(1e-5),
        ..Shapes::parse(text)?
    };
    let activation = text.text("hidden_act")?;
    let bias = text.flag("attention_bias")?.unwrap_or(false);
    let layer = LayerConfig {
        norms: NormPlacement::Pre,
        mixer: Mixer::Attention(AttentionConfig {
            qkv_bias: bias,
            o_bias: bias,
            ..AttentionConfig::new(shapes.heads, shapes.key_heads, shapes.head_dim, Some(0))
        }),
        feed_forward: FeedForward::Plain(PlainConfig {
            width: shapes.width,
            activation: EncoderActivation::named(activation.as_deref().unwrap_or("relu2"))?,
            bias: text.flag("mlp_bias")?.unwrap_or(false),
        }),
    };
    let defaults = Defaults {
        partial: 0.5,
        ..Defaults::default()
    };
    let rope = RopeConfig::parse(text, shapes.head_dim, For::All, defaults)?;
    let mut config = shapes.decoder(vec![rope], vec![layer; shapes.layers as usize]);
    config.norm.kind = NormKind::Layer { bias: true };
    config.norm.offset = true;
    config.family()
}
