//! OLMo 1: Llama's shape with layer norms that have neither factors nor biases. Files are those of transformers, or the
//! original ones with other names of fields and tensors. Defaults are those of transformers' `OlmoConfig` and of the
//! `configuration_olmo.py` beside the original weights.

use super::llama;
use super::row::FamilyRow;
use super::shapes::Shapes;
use super::source::Source;
use crate::config::decoder::{
    Activation, AttentionConfig, DecoderConfig, FeedForward, LayerConfig, LmHead, Mixer, NormKind, NormPlacement,
};
use crate::config::limits::{check_heads, check_layers};
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::{Family, Fields};
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("OLMo 1", &["hf_olmo", "olmo"], parse)];

/// Names in the original files outside of the layers, and of the layers themselves.
const OUTER: &[(&str, &str)] = &[
    ("transformer.ff_out", "lm_head"),
    ("transformer.blocks", "layers"),
    ("transformer.wte", "embed_tokens"),
];

/// Names inside of a layer of theirs.
const INNER: &[(&str, &str)] = &[
    ("att_proj", "self_attn.qkv_proj"),
    ("attn_out", "self_attn.o_proj"),
    ("ff_proj", "mlp.up_gate_proj"),
    ("ff_out", "mlp.down_proj"),
];

/// Fields of the original files that switch on what no published model has.
const SWITCHES: [&str; 6] = [
    "alibi",
    "attention_layer_norm",
    "include_bias",
    "layer_norm_with_affine",
    "multi_query_attention",
    "scale_logits",
];

/// OLMo of 1 and 7 billion parameters.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let mut config = match text.has("d_model") {
        true => original(text)?,
        false => llama::decoder(text)?,
    };
    let clip = text.number("clip_qkv")?;
    config.each_attention(|attention| attention.clip = clip);
    config.norm.kind = NormKind::Layer { bias: false };
    (config.norm.eps, config.norm.bare, config.norm.bare_end) = (1e-5, true, true);
    config.family()
}

/// The decoder by the fields of the original files.
fn original(text: Fields<'_>) -> Result<DecoderConfig, Error> {
    for field in SWITCHES {
        if text.flag(field)?.unwrap_or(false) {
            return Err(Error::Unsupported(format!("OLMo with `{field}`")));
        }
    }
    let (hidden_size, heads) = (text.required("d_model")?, text.required("n_heads")?);
    check_heads("n_heads", hidden_size, heads)?;
    let multiple = text.number::<u32>("mlp_ratio")?.unwrap_or(4);
    let shapes = Shapes {
        hidden_size,
        vocab_size: text.either("embedding_size", "vocab_size")?,
        layers: check_layers(text.required("n_layers")?)?,
        heads,
        key_heads: heads,
        head_dim: hidden_size / heads,
        // Gate and what it gates are counted together.
        width: text
            .number("mlp_hidden_size")?
            .unwrap_or(hidden_size.saturating_mul(multiple))
            / 2,
        eps: 1e-5,
        lm_head: match text.flag("weight_tying")? {
            Some(false) => LmHead::Untied,
            Some(true) | None => LmHead::Tied,
        },
    };
    let layer = LayerConfig {
        norms: NormPlacement::Pre,
        mixer: Mixer::Attention(AttentionConfig::new(heads, heads, shapes.head_dim, Some(0))),
        feed_forward: FeedForward::dense(shapes.width, Activation::Silu),
    };
    let rope = RopeConfig::parse(text, shapes.head_dim, For::All, Defaults::default())?;
    let mut config = shapes.decoder(vec![rope], vec![layer; shapes.layers as usize]);
    config.renames = &[OUTER, INNER];
    Ok(config)
}
