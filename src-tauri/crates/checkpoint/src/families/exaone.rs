//! EXAONE 3 and 3.5: Llama's shape with other names. Defaults are those of the `configuration_exaone.py` beside the
//! weights.

use super::row::FamilyRow;
use super::shapes::Shapes;
use super::source::Source;
use crate::config::decoder::{Activation, AttentionConfig, FeedForward, LayerConfig, Mixer, NormPlacement};
use crate::config::limits::check_layers;
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::Family;
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("EXAONE 3 and 3.5", &["exaone"], parse)];

/// Names outside of the layers, and of the layers themselves.
const OUTER: &[(&str, &str)] = &[
    ("transformer.h", "layers"),
    ("transformer.wte", "embed_tokens"),
    ("transformer.ln_f", "norm"),
];

/// Names inside of a layer.
const INNER: &[(&str, &str)] = &[
    ("attn.attention.out_proj", "self_attn.o_proj"),
    ("attn.attention", "self_attn"),
    ("mlp.c_fc_0", "mlp.gate_proj"),
    ("mlp.c_fc_1", "mlp.up_proj"),
    ("mlp.c_proj", "mlp.down_proj"),
    ("ln_1", "input_layernorm"),
    ("ln_2", "post_attention_layernorm"),
];

/// EXAONE 3 and 3.5.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let (hidden_size, heads) = (text.required("hidden_size")?, text.required("num_attention_heads")?);
    let shapes = Shapes {
        hidden_size,
        vocab_size: text.required("vocab_size")?,
        layers: check_layers(text.either("num_layers", "num_hidden_layers")?)?,
        heads,
        key_heads: text.number("num_key_value_heads")?.unwrap_or(heads),
        head_dim: text.number("head_dim")?.unwrap_or(hidden_size / heads),
        width: text.required("intermediate_size")?,
        eps: text.number("layer_norm_epsilon")?.unwrap_or(1e-5),
        lm_head: Shapes::lm_head(text)?,
    };
    let layer = LayerConfig {
        norms: NormPlacement::Pre,
        mixer: Mixer::Attention(AttentionConfig::new(heads, shapes.key_heads, shapes.head_dim, Some(0))),
        feed_forward: FeedForward::dense(shapes.width, Activation::Silu),
    };
    let rope = RopeConfig::parse(text, shapes.head_dim, For::All, Defaults::default())?;
    let mut config = shapes.decoder(vec![rope], vec![layer; shapes.layers as usize]);
    config.renames = &[OUTER, INNER];
    config.family()
}
