//! PLaMo 1 to 3. In the first, attention and network stand beside each other after one norm, and query heads share keys
//! in turn. The other has norms around both, stored as their difference from several numbers, and a few layers that see
//! everything among those that slide. The second has the norms of the third, and Mamba 2 in turn with attention.
//! Defaults are those of the `modeling_plamo.py` beside the weights.

use super::llama;
use super::row::FamilyRow;
use super::shapes::Shapes;
use super::source::Source;
use crate::config::decoder::{
    Activation, AttentionConfig, FeedForward, LayerConfig, LmHead, Mamba2Config, Mixer, NormPlacement, QkNorm, ScanNorm,
};
use crate::config::limits::check_nonzero;
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::{Family, Fields};
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::text("PLaMo 1", &["plamo"], plamo),
    FamilyRow::text("PLaMo 2", &["plamo2"], plamo2),
    FamilyRow::text("PLaMo 3", &["plamo3"], plamo3),
];

/// Names of the layers; the norm of a layer of PLaMo 1 is called as the last one, which another table keeps apart.
const OUTER: &[(&str, &str)] = &[("layers.layers", "layers"), ("norm", "last_norm")];

/// Names inside of a layer.
const INNER: &[(&str, &str)] = &[
    ("last_norm", "norm"),
    ("norm", "input_layernorm"),
    ("mixer", "self_attn"),
    ("pre_mixer_norm", "input_layernorm"),
    ("post_mixer_norm", "post_attention_layernorm"),
    ("pre_mlp_norm", "pre_feedforward_layernorm"),
    ("post_mlp_norm", "post_feedforward_layernorm"),
];

/// The parts of PLaMo 2 that are called `mixer`.
const PARTS: &[(&str, &str)] = &[
    ("mixer.qkv_proj", "self_attn.qkv_proj"),
    ("mixer.o_proj", "self_attn.o_proj"),
    ("mixer.q_weight", "self_attn.q_weight"),
    ("mixer.k_weight", "self_attn.k_weight"),
    ("mixer", "mamba"),
];

/// PLaMo of 13 billion parameters.
pub(super) fn plamo(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let mut config = llama::decoder(text)?;
    let sharing = text.number("n_shared_head")?.unwrap_or(8u32);
    check_nonzero("n_shared_head", sharing)?;
    for attention in config.attention() {
        attention.key_heads = attention.heads.div_ceil(sharing);
        attention.stored_key_heads = attention.key_heads;
        attention.tiled = attention.key_heads > 1 && attention.key_heads < attention.heads;
    }
    config.each_layer(|layer| layer.norms = NormPlacement::Parallel);
    config.lm_head = lm_head(text, LmHead::Untied)?;
    config.renames = &[OUTER, INNER];
    config.family()
}

/// PLaMo 3 of 2 to 31 billion parameters.
pub(super) fn plamo3(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let shapes = Shapes {
        head_dim: text.number("head_dim")?.unwrap_or(128),
        lm_head: lm_head(text, LmHead::Tied)?,
        ..Shapes::parse(text)?
    };
    let window = text.first(&["sliding_window", "window_size"])?.unwrap_or(2048u32);
    let every = text.number("sliding_window_pattern")?.unwrap_or(8u32).max(1) as usize;
    let layers = (1..=shapes.layers as usize).map(|number| {
        let slides = !number.is_multiple_of(every);
        LayerConfig {
            norms: NormPlacement::Sandwich,
            mixer: Mixer::Attention(AttentionConfig {
                qk_norm: QkNorm::PerHead,
                // As many positions before its own.
                window: slides.then(|| window.saturating_add(1)),
                ..AttentionConfig::new(
                    shapes.heads,
                    shapes.key_heads,
                    shapes.head_dim,
                    Some(usize::from(slides)),
                )
            }),
            feed_forward: FeedForward::dense(shapes.width, Activation::Silu),
        }
    });
    let near = Defaults::new(text.number("rope_local_theta")?.unwrap_or(10_000.0));
    let rope = |layers, defaults| RopeConfig::parse(text, shapes.head_dim, layers, defaults);
    let ropes = vec![
        rope(For::Type("full_attention"), Defaults::new(1_000_000.0))?,
        rope(For::Only("sliding_attention"), near)?,
    ];
    let mut config = shapes.decoder(ropes, layers.collect());
    config.norm.offset = true;
    config.norm.after_offsets = Some([0.2, 5f32.powf(-1.5)]);
    config.renames = &[OUTER, INNER];
    config.family()
}

/// PLaMo 2 of 1 to 8 billion parameters. Defaults are those of mlx-lm.
pub(super) fn plamo2(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let shapes = Shapes {
        head_dim: text.number("hidden_size_per_head")?.unwrap_or(128),
        lm_head: lm_head(text, LmHead::Tied)?,
        ..Shapes::parse(text)?
    };
    let mamba = Mamba2Config {
        heads: text.number("mamba_num_heads")?.unwrap_or(64),
        head_width: shapes.head_dim,
        groups: 1,
        state_width: text.number("mamba_d_state")?.unwrap_or(64),
        kernel: text.number("mamba_d_conv")?.unwrap_or(4),
        conv_bias: false,
        bias: false,
        step_limit: (0.001, 100.0),
        norm: ScanNorm::Gate,
        step_rank: Some((shapes.hidden_size / 16).max(64)),
    };
    let step = text.number("mamba_step")?.unwrap_or(2u32).max(2);
    let enabled = text.flag("mamba_enabled")?.unwrap_or(true);
    let window = text.number("attention_window_size")?.unwrap_or(2048u32);
    let full = text.numbers("full_attention_idx")?.unwrap_or_default();
    let layers = (0..shapes.layers).map(|index| {
        let attends = match shapes.layers <= step / 2 {
            true => index + 1 == shapes.layers,
            false => index % step == step / 2,
        };
        let attention = AttentionConfig {
            qk_norm: QkNorm::EachHead,
            // As many positions before its own, as in PLaMo 3; mlx-lm sees everything.
            window: (!full.contains(&(index as f32))).then(|| window.saturating_add(1)),
            ..AttentionConfig::new(shapes.heads, shapes.key_heads, shapes.head_dim, Some(0))
        };
        LayerConfig {
            norms: NormPlacement::Sandwich,
            mixer: match attends || !enabled {
                true => Mixer::Attention(attention),
                false => Mixer::Mamba2(mamba),
            },
            feed_forward: FeedForward::dense(shapes.width, Activation::Silu),
        }
    });
    let rope = RopeConfig::parse(text, shapes.head_dim, For::All, Defaults::default())?;
    let mut config = shapes.decoder(vec![rope], layers.collect());
    config.norm.offset = true;
    config.norm.after_offsets = Some([0.2, 5f32.powf(-1.5)]);
    config.renames = &[OUTER, PARTS, INNER];
    config.family()
}

fn lm_head(text: Fields<'_>, default: LmHead) -> Result<LmHead, Error> {
    Ok(match text.flag("tie_word_embeddings")? {
        Some(true) => LmHead::Tied,
        Some(false) => LmHead::Untied,
        None => default,
    })
}
