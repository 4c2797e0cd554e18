//! MiMo V2 and MiMo V2 Flash: sliding layers with other heads and positions than full ones and a share for nothing at all, values of
//! another width than keys, and DeepSeek's experts.

use serde_json::Value;

use super::experts::place;
use super::glm4_moe;
use super::qwen;
use super::row::{FamilyRow, VisionRow};
use super::shapes::Shapes;
use super::source::Source;
use super::vision;
use crate::config::decoder::{Activation, AttentionConfig, FeedForward, LayerConfig, LmHead, Mixer, NormPlacement};
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::{Family, Fields};
use crate::error::{unusable, Error};

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::vision("MiMo V2", &["mimo_v2"], parse_v2, VISION),
    FamilyRow::text("MiMo V2 Flash", &["mimo_v2_flash"], parse),
];

/// How MiMo V2 reads images: as Qwen2.5-VL, with a tower of its own.
const VISION: VisionRow = VisionRow {
    encoder: vision::mimo::parse,
    ..qwen::VISION
};

/// The name of the share for nothing at all in the checkpoints.
const NAMES: &[(&str, &str)] = &[("self_attn.attention_sink_bias", "self_attn.sinks")];

/// MiMo V2 Flash.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    decoder(source.text, 1e-5, 1.0)
}

/// MiMo V2.
pub(super) fn parse_v2(source: Source<'_>) -> Result<Family, Error> {
    decoder(source.text, 1e-6, 0.334)
}

/// Defaults are the number added in norms and the part of a head that turns.
fn decoder(text: Fields<'_>, eps: f32, partial: f32) -> Result<Family, Error> {
    let shapes = Shapes {
        eps: text.number("layernorm_epsilon")?.unwrap_or(eps),
        lm_head: LmHead::Untied,
        ..Shapes::parse(text)?
    };
    let layers = shapes.layers;
    let every_sixth = || (1..=layers).map(|layer| !layer.is_multiple_of(6)).collect();
    let slides = text.flags("hybrid_layer_pattern", layers)?.unwrap_or_else(every_sixth);
    let window = text.either("sliding_window_size", "sliding_window")?;
    const SCALE: &str = "attention_value_scale";
    let scale = match text.says_null(SCALE) {
        true => None,
        false => Some(text.number(SCALE)?.unwrap_or(0.707)),
    };
    let full = AttentionConfig {
        value_dim: text.number("v_head_dim")?.unwrap_or(shapes.head_dim),
        value_scale: scale,
        sinks: text.flag("add_full_attention_sink_bias")?.unwrap_or(false),
        ..AttentionConfig::new(shapes.heads, shapes.key_heads, shapes.head_dim, Some(0))
    };
    let number = |field, usual| Ok::<u32, Error>(text.number(field)?.unwrap_or(usual));
    let sliding = AttentionConfig {
        value_dim: number("swa_v_head_dim", full.value_dim)?,
        value_scale: scale,
        sinks: text.flag("add_swa_attention_sink_bias")?.unwrap_or(true),
        window: Some(window),
        ..AttentionConfig::new(
            number("swa_num_attention_heads", full.heads)?,
            number("swa_num_key_value_heads", full.key_heads)?,
            number("swa_head_dim", full.head_dim)?,
            Some(1),
        )
    };
    let ropes = vec![
        rope(text, "rope_theta", &full, partial)?,
        rope(text, "swa_rope_theta", &sliding, partial)?,
    ];
    let layer = |slides: bool| LayerConfig {
        norms: NormPlacement::Pre,
        mixer: Mixer::Attention(if slides { sliding.clone() } else { full.clone() }),
        feed_forward: FeedForward::dense(shapes.width, Activation::Silu),
    };
    let mut config = shapes.decoder(ropes, slides.into_iter().map(layer).collect());
    let sparse = text.flags("moe_layer_freq", layers)?;
    place(&mut config, glm4_moe::experts(text)?, |layer| {
        sparse.as_ref().map_or(layer > 0, |sparse| sparse[layer])
    });
    config.renames = &[NAMES];
    config.family()
}

/// The positions by the base in this field.
fn rope(text: Fields<'_>, base: &'static str, attention: &AttentionConfig, partial: f32) -> Result<RopeConfig, Error> {
    let base = text.number::<f32>(base)?.unwrap_or(10_000.0);
    if !base.is_finite() {
        return unusable("rope_theta", format!("{base} is no number"));
    }
    let mut fields = text.only(&["partial_rotary_factor", "max_position_embeddings"]);
    fields.insert("rope_theta".into(), Value::from(base));
    let defaults = Defaults {
        partial,
        ..Defaults::default()
    };
    RopeConfig::parse(Fields::new(&fields), attention.head_dim, For::All, defaults)
}
