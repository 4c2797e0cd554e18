//! Llama and those that share its shape: norms before, rotary positions of any kind, a gated network with SiLU.

use super::row::FamilyRow;
use super::shapes::{windows, Shapes};
use super::source::Source;
use crate::config::decoder::{
    Activation, AttentionConfig, DecoderConfig, DenseConfig, EncoderActivation, FeedForward, LayerConfig, Mixer,
    NormPlacement, PlainConfig,
};
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::{Family, Fields};
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::text("K2 Horizon", &["k2_horizon"], k2_horizon),
    FamilyRow::embedding("Llama for embeddings", &["llama_bidirec"], bidirectional),
    FamilyRow::text(
        "Llama 1 to 3, IQuest-Coder, TeleChat 3, XVERSE",
        &["llama", "iquestcoder", "telechat3", "xverse"],
        parse,
    ),
];

/// Llama 1 to 3.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    decoder(source.text)?.family()
}

/// Llama whose positions see those after them, too.
fn bidirectional(source: Source<'_>) -> Result<Family, Error> {
    match source.text.text("pooling")?.as_deref() {
        None | Some("avg" | "mean") => {}
        Some(other) => return Err(Error::Unsupported(format!("pooling by `{other}`"))),
    }
    let mut config = decoder(source.text)?;
    config.bidirectional = true;
    config.family()
}

/// K2 Horizon: Llama's shape with another base of positions.
pub(super) fn k2_horizon(source: Source<'_>) -> Result<Family, Error> {
    activated(source.text, Activation::Silu, Defaults::new(10_000_000.0))?.family()
}

/// The decoder by Llama's fields.
pub(super) fn decoder(text: Fields<'_>) -> Result<DecoderConfig, Error> {
    activated(text, activation(text)?, Defaults::default())
}

/// The activation of a gated network by `hidden_act`.
pub(super) fn activation(text: Fields<'_>) -> Result<Activation, Error> {
    match text.text("hidden_act")?.as_deref() {
        None | Some("silu" | "swish") => Ok(Activation::Silu),
        Some("gelu_pytorch_tanh" | "gelu_new" | "gelu_fast") => Ok(Activation::GeluTanh),
        Some(other) => Err(Error::Unsupported(format!("the activation `{other}`"))),
    }
}

/// The same with this activation, and with other defaults of the rope.
pub(super) fn activated(text: Fields<'_>, activation: Activation, rope: Defaults) -> Result<DecoderConfig, Error> {
    let windows = windows(text, text.required("num_hidden_layers")?)?;
    shaped(
        text,
        activation,
        rope,
        windows.unwrap_or_default(),
        Shapes::parse(text)?,
    )
}

/// The decoder by Llama's fields with these windows in the first layers, and none in the others.
pub(super) fn sliding(text: Fields<'_>, windows: Vec<Option<u32>>) -> Result<DecoderConfig, Error> {
    shaped(
        text,
        activation(text)?,
        Defaults::default(),
        windows,
        Shapes::parse(text)?,
    )
}

/// The same if the config need not tell the width of a dense network.
pub(super) fn with_width(text: Fields<'_>, width: u32) -> Result<DecoderConfig, Error> {
    let windows = windows(text, text.required("num_hidden_layers")?)?.unwrap_or_default();
    let shapes = Shapes::with_width(text, width)?;
    shaped(text, activation(text)?, Defaults::default(), windows, shapes)
}

fn shaped(
    text: Fields<'_>,
    activation: Activation,
    rope: Defaults,
    windows: Vec<Option<u32>>,
    shapes: Shapes,
) -> Result<DecoderConfig, Error> {
    let bias = text.flag("attention_bias")?.unwrap_or(false);
    let attention = AttentionConfig {
        qkv_bias: bias,
        o_bias: bias,
        ..AttentionConfig::new(shapes.heads, shapes.key_heads, shapes.head_dim, Some(0))
    };
    let dense = DenseConfig {
        width: shapes.width,
        activation,
        bias: text.flag("mlp_bias")?.unwrap_or(false),
    };
    let windows = windows.into_iter().chain(std::iter::repeat(None));
    let layers = windows.take(shapes.layers as usize).map(|window| LayerConfig {
        norms: NormPlacement::Pre,
        mixer: Mixer::Attention(AttentionConfig {
            window,
            ..attention.clone()
        }),
        feed_forward: FeedForward::Dense(dense),
    });
    let rope = RopeConfig::parse(text, shapes.head_dim, For::All, rope)?;
    Ok(shapes.decoder(vec![rope], layers.collect()))
}

/// The same with networks without gates.
pub(super) fn ungated(text: Fields<'_>, activation: EncoderActivation, rope: Defaults) -> Result<DecoderConfig, Error> {
    let mut config = activated(text, Activation::Silu, rope)?;
    for layer in &mut config.layers {
        if let FeedForward::Dense(DenseConfig { width, bias, .. }) = layer.feed_forward {
            layer.feed_forward = FeedForward::Plain(PlainConfig {
                width,
                activation,
                bias,
            });
        }
    }
    Ok(config)
}
