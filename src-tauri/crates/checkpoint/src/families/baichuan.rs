//! Baichuan M1: Llama's shape whose keys and values take a share of those of the token before, with windows and other
//! heads in some layers. Defaults are those of the `configuration_baichuan.py` beside the weights.

use super::row::FamilyRow;
use super::shapes::Shapes;
use super::source::Source;
use crate::config::decoder::{
    Activation, AttentionConfig, DecoderConfig, FeedForward, LayerConfig, LmHead, Mixer, NormPlacement,
};
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::Family;
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("Baichuan M1", &["baichuan_m1"], parse)];

/// Names in the checkpoints.
const NAMES: &[(&str, &str)] = &[("self_attn.W_pack", "self_attn.qkv_proj")];

/// Baichuan M1 of 14 billion parameters.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    if text.number("conv_window")?.unwrap_or(2u32) != 2 {
        return Err(Error::Unsupported(
            "keys of more than two tokens (`conv_window`)".into(),
        ));
    }
    let shapes = Shapes {
        lm_head: match text.flag("tie_word_embeddings")? {
            Some(true) => LmHead::Tied,
            Some(false) | None => LmHead::Untied,
        },
        ..Shapes::parse(text)?
    };
    let near = (
        text.number("num_swa_attention_heads")?.unwrap_or(shapes.heads),
        text.number("num_swa_key_value_heads")?.unwrap_or(shapes.key_heads),
    );
    let width = |heads: u32| shapes.hidden_size.checked_div(heads).unwrap_or(0);
    let window = text.number("sliding_window")?.unwrap_or(8192);
    let sliding = text.numbers("sliding_window_layers")?.unwrap_or_default();
    let layers = (0..shapes.layers).map(|index| {
        let slides = sliding.contains(&(index as f32));
        let (heads, key_heads) = if slides { near } else { (shapes.heads, shapes.key_heads) };
        LayerConfig {
            norms: NormPlacement::Pre,
            mixer: Mixer::Attention(AttentionConfig {
                window: slides.then_some(window),
                key_conv: true,
                ..AttentionConfig::new(heads, key_heads, width(heads), Some(usize::from(slides)))
            }),
            feed_forward: FeedForward::dense(shapes.width, Activation::Silu),
        }
    });
    let rope = |heads: u32| RopeConfig::parse(text, width(heads), For::All, Defaults::default());
    let config = DecoderConfig {
        unit_lm_head: true,
        renames: &[NAMES],
        ..shapes.decoder(vec![rope(shapes.heads)?, rope(near.0)?], layers.collect())
    };
    config.family()
}
