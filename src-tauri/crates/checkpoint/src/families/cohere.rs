//! Command R and its successors: attention and network beside each other after one layer norm, neighbors turn against
//! each other, tied embeddings. In Command R7B and A three layers slide for each full one, which knows nothing of
//! positions. Defaults are those of transformers' `CohereConfig` and `Cohere2Config`.

use super::row::FamilyRow;
use super::shapes::{windows, Shapes};
use super::source::Source;
use crate::config::decoder::{
    Activation, AttentionConfig, DecoderConfig, FeedForward, LayerConfig, LmHead, Mixer, NormKind, NormPlacement,
};
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::{Family, Fields};
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::text("Command R, Aya", &["cohere"], cohere),
    FamilyRow::text("Command R7B and A", &["cohere2"], cohere2),
];

/// Command R and Aya.
pub(super) fn cohere(source: Source<'_>) -> Result<Family, Error> {
    if source.text.flag("use_qk_norm")?.unwrap_or(false) {
        return Err(Error::Unsupported(
            "layer norms of queries and keys (`use_qk_norm`)".into(),
        ));
    }
    decoder(source.text)?.family()
}

/// Command R7B and A.
pub(super) fn cohere2(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let mut config = decoder(text)?;
    let windows = match windows(text, config.layers.len() as u32)? {
        Some(windows) => windows,
        None => {
            let window = text.number("sliding_window")?.unwrap_or(4096);
            let every = text.number("sliding_window_pattern")?.unwrap_or(4u32).max(1) as usize;
            let slides = |layer: usize| (!layer.is_multiple_of(every)).then_some(window);
            (1..=config.layers.len()).map(slides).collect()
        }
    };
    for (attention, window) in config.attention().zip(windows) {
        attention.window = window;
        attention.rope = attention.rope.filter(|_| window.is_some());
    }
    config.family()
}

fn decoder(text: Fields<'_>) -> Result<DecoderConfig, Error> {
    let shapes = Shapes {
        eps: text.number("layer_norm_eps")?.unwrap_or(1e-5),
        lm_head: LmHead::Tied,
        ..Shapes::parse(text)?
    };
    let bias = text.flag("attention_bias")?.unwrap_or(false);
    let layer = LayerConfig {
        norms: NormPlacement::Parallel,
        mixer: Mixer::Attention(AttentionConfig {
            qkv_bias: bias,
            o_bias: bias,
            ..AttentionConfig::new(shapes.heads, shapes.key_heads, shapes.head_dim, Some(0))
        }),
        feed_forward: FeedForward::dense(shapes.width, Activation::Silu),
    };
    let defaults = Defaults {
        traditional: true,
        ..Defaults::default()
    };
    let rope = RopeConfig::parse(text, shapes.head_dim, For::All, defaults)?;
    let mut config = shapes.decoder(vec![rope], vec![layer; shapes.layers as usize]);
    config.norm.kind = NormKind::Layer {
        bias: text.flag("layer_norm_bias")?.unwrap_or(false),
    };
    config.logits_divisor = Some(text.number("logit_scale")?.unwrap_or(0.0625f32).recip());
    Ok(config)
}
