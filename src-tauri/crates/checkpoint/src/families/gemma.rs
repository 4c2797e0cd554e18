//! Gemma 1 and 2: norms stored as their difference from 1, tied embeddings times the root of their width. Gemma 2 has
//! norms around both halves of a layer, caps of scores and logits, and a window in every other layer. Defaults are
//! those of transformers' `GemmaConfig` and `Gemma2Config`.

use super::row::FamilyRow;
use super::shapes::{windows, Shapes};
use super::source::Source;
use crate::config::decoder::{
    Activation, AttentionConfig, DecoderConfig, FeedForward, LayerConfig, LmHead, Mixer, NormPlacement,
};
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::{Family, Fields};
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::text("Gemma 1", &["gemma"], gemma),
    FamilyRow::text("Gemma 2", &["gemma2"], gemma2),
];

/// Gemma 1.
pub(super) fn gemma(source: Source<'_>) -> Result<Family, Error> {
    decoder(source.text, NormPlacement::Pre)?.family()
}

/// Gemma 2.
pub(super) fn gemma2(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let mut config = decoder(text, NormPlacement::Sandwich)?;
    let windows = match windows(text, config.layers.len() as u32)? {
        Some(windows) => windows,
        None => {
            let window = text.number("sliding_window")?.unwrap_or(4096);
            let slides = |layer: usize| layer.is_multiple_of(2).then_some(window);
            (0..config.layers.len()).map(slides).collect()
        }
    };
    let scale = text.number("query_pre_attn_scalar")?.unwrap_or(256.0f32).powf(-0.5);
    let softcap = text.number("attn_logit_softcapping")?.unwrap_or(50.0);
    for (attention, window) in config.attention().zip(windows) {
        (attention.scale, attention.softcap, attention.window) = (scale, Some(softcap), window);
    }
    config.logits_softcap = Some(text.number("final_logit_softcapping")?.unwrap_or(30.0));
    config.family()
}

fn decoder(text: Fields<'_>, norms: NormPlacement) -> Result<DecoderConfig, Error> {
    let shapes = Shapes {
        head_dim: text.number("head_dim")?.unwrap_or(256),
        lm_head: LmHead::Tied,
        ..Shapes::parse(text)?
    };
    let layer = LayerConfig {
        norms,
        mixer: Mixer::Attention(AttentionConfig::new(
            shapes.heads,
            shapes.key_heads,
            shapes.head_dim,
            Some(0),
        )),
        // The models were trained with the approximation, which old files of Gemma 1 call `gelu`.
        feed_forward: FeedForward::dense(shapes.width, Activation::GeluTanh),
    };
    let rope = RopeConfig::parse(text, shapes.head_dim, For::All, Defaults::default())?;
    let mut config = shapes.decoder(vec![rope], vec![layer; shapes.layers as usize]);
    config.norm.offset = true;
    config.embedding_multiplier = Some((shapes.hidden_size as f32).sqrt());
    Ok(config)
}
