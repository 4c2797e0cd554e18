//! AFM 7B: norms of heads after they turned, keys and values that are rounded to 8 bits, and layers at the end that
//! read those of the last layer before them. Defaults are those of mlx-lm's `afm7.py`.

use super::row::FamilyRow;
use super::shapes::Shapes;
use super::source::Source;
use crate::config::decoder::{
    Activation, AttentionConfig, FeedForward, KeySource, LayerConfig, LmHead, Mixer, NormPlacement, QkNorm,
};
use crate::config::limits::{check_heads, check_layers};
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::Family;
use crate::error::{unusable, Error};

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("AFM 7B", &["afm7"], parse)];

/// Names in its checkpoints.
const NAMES: &[(&str, &str)] = &[
    ("embedding", "embed_tokens"),
    ("output_norm", "norm"),
    ("self_attn.out_proj", "self_attn.o_proj"),
];

/// Added to the mean square of a head, whatever the config says.
const HEAD_EPS: f32 = 1e-5;

/// AFM 7B.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    const REUSING: &str = "num_kv_reuse_layers";
    let text = source.text;
    let (hidden_size, heads) = (text.required("hidden_dim")?, text.required("num_heads")?);
    check_heads("num_heads", hidden_size, heads)?;
    let eps = text.number("rms_norm_eps")?.unwrap_or(HEAD_EPS);
    if eps != HEAD_EPS {
        return Err(Error::Unsupported(format!(
            "norms of the stream with {eps} beside norms of heads"
        )));
    }
    let factor: f32 = text.number("hidden_dim_scale_factor")?.unwrap_or(3.25);
    let shapes = Shapes {
        hidden_size,
        vocab_size: text.required("vocab_size")?,
        layers: check_layers(text.required("num_layers")?)?,
        heads,
        key_heads: text.required("num_kv_heads")?,
        head_dim: hidden_size / heads,
        width: (f64::from(hidden_size) * f64::from(factor)) as u32,
        eps,
        lm_head: LmHead::Tied,
    };
    let reusing = text.required(REUSING)?;
    if reusing >= shapes.layers {
        return unusable(REUSING, "no layer would have keys of its own");
    }
    let own = shapes.layers - reusing;
    let layer = |layer: u32| LayerConfig {
        norms: NormPlacement::Pre,
        mixer: Mixer::Attention(AttentionConfig {
            qk_norm: QkNorm::PerHeadTurned,
            keys: match layer {
                _ if layer >= own => KeySource::Earlier,
                _ if layer + 1 == own => KeySource::Kept,
                _ => KeySource::Own,
            },
            rounded: layer < own,
            ..AttentionConfig::new(heads, shapes.key_heads, shapes.head_dim, Some(0))
        }),
        feed_forward: FeedForward::dense(shapes.width, Activation::Silu),
    };
    let defaults = Defaults {
        traditional: true,
        ..Defaults::new(50_000.0)
    };
    let rope = RopeConfig::parse(text, shapes.head_dim, For::All, defaults)?;
    let mut config = shapes.decoder(vec![rope], (0..shapes.layers).map(layer).collect());
    config.renames = &[NAMES];
    config.family()
}
