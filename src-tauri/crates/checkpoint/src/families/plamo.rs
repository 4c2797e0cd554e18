//! PLaMo 1 and 3. In the first, attention and network stand beside each other after one norm, and query heads share
//! keys in turn. The other has norms around both, stored as their difference from several numbers, and a few layers
//! that see everything among those that slide. Defaults are those of the `modeling_plamo.py` beside the weights.

use super::llama;
use super::row::FamilyRow;
use super::shapes::Shapes;
use super::source::Source;
use crate::config::decoder::{
    Activation, AttentionConfig, FeedForward, LayerConfig, LmHead, Mixer, NormPlacement, QkNorm,
};
use crate::config::limits::check_nonzero;
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::{Family, Fields};
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::text("PLaMo 1", &["plamo"], plamo),
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

fn lm_head(text: Fields<'_>, default: LmHead) -> Result<LmHead, Error> {
    Ok(match text.flag("tie_word_embeddings")? {
        Some(true) => LmHead::Tied,
        Some(false) => LmHead::Untied,
        None => default,
    })
}
