//! Gear: Gemma 3's shape with layers that mix the last tokens alone. Defaults are those of mlx-lm.

use super::gemma3::{by_kind, FULL, SLIDING};
use super::row::FamilyRow;
use super::shapes::Shapes;
use super::source::Source;
use crate::config::decoder::{
    Activation, AttentionConfig, DecoderConfig, FeedForward, KeyConvConfig, LayerConfig, LmHead, Mixer, NormPlacement,
    QkNorm,
};
use crate::config::Family;
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("Gear", &["gear"], parse)];

/// The kind of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Full,
    Sliding,
    Conv,
}

/// Gear.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    if text.flag("use_bidirectional_attention")?.unwrap_or(false) {
        return Err(Error::Unsupported("`use_bidirectional_attention`".into()));
    }
    let shapes = Shapes {
        lm_head: match text.flag("tie_word_embeddings")? {
            Some(false) => LmHead::Untied,
            Some(true) | None => LmHead::Tied,
        },
        ..Shapes::parse(text)?
    };
    let bias = text.flag("attention_bias")?.unwrap_or(false);
    let scalar = text.number("query_pre_attn_scalar")?;
    let attention = AttentionConfig {
        scale: scalar.unwrap_or(shapes.head_dim as f32).powf(-0.5),
        softcap: text.number("attn_logit_softcapping")?.filter(|cap| *cap != 0.0),
        qkv_bias: bias,
        o_bias: bias,
        qk_norm: QkNorm::PerHead,
        ..AttentionConfig::new(shapes.heads, shapes.key_heads, shapes.head_dim, Some(FULL))
    };
    let conv = KeyConvConfig {
        heads: shapes.heads,
        key_heads: shapes.key_heads,
        head_dim: shapes.head_dim,
        kernel: text.number("conv_L_cache")?.unwrap_or(3),
        bias,
    };
    let window = text.number("sliding_window")?.unwrap_or(512);
    let named = [
        ("full_attention", Kind::Full),
        ("sliding_attention", Kind::Sliding),
        ("conv_mixer", Kind::Conv),
    ];
    let kinds = text.layer_types(shapes.layers, &named)?;
    let kinds = kinds.unwrap_or_else(|| vec![Kind::Full; shapes.layers as usize]);
    let activation = match text.text("hidden_activation")?.as_deref() {
        None | Some("gelu_pytorch_tanh" | "gelu_new" | "gelu_fast") => Activation::GeluTanh,
        Some("gelu") => Activation::Gelu,
        Some("silu" | "swish") => Activation::Silu,
        Some(other) => return Err(Error::Unsupported(format!("the activation `{other}`"))),
    };
    let layers = kinds.into_iter().map(|kind| LayerConfig {
        norms: NormPlacement::Sandwich,
        mixer: match kind {
            Kind::Full => Mixer::Attention(attention.clone()),
            Kind::Sliding => Mixer::Attention(AttentionConfig {
                window: Some(window),
                rope: Some(SLIDING),
                ..attention.clone()
            }),
            Kind::Conv => Mixer::KeyConv(conv),
        },
        feed_forward: FeedForward::dense(shapes.width, activation),
    });
    let mut config = shapes.decoder(by_kind(text, shapes.head_dim)?, layers.collect());
    config.norm.offset = true;
    let config = DecoderConfig {
        embedding_multiplier: Some((shapes.hidden_size as f32).sqrt()),
        logits_softcap: text.number("final_logit_softcapping")?.filter(|cap| *cap != 0.0),
        ..config
    };
    config.family()
}
