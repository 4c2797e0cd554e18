//! OpenELM: Llama's shape with other names and norms of queries and keys, in which every layer has its own number of
//! heads and its own width. Defaults are those of the `configuration_openelm.py` beside the weights.

use super::row::FamilyRow;
use super::shapes::Shapes;
use super::source::Source;
use crate::config::decoder::{
    Activation, AttentionConfig, FeedForward, LayerConfig, LmHead, Mixer, NormPlacement, QkNorm,
};
use crate::config::limits::check_layers;
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::{Family, Fields};
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("OpenELM", &["openelm"], parse)];

/// Names outside of the layers, and of the layers themselves.
const OUTER: &[(&str, &str)] = &[
    ("transformer.layers", "layers"),
    ("transformer.token_embeddings", "embed_tokens"),
    ("transformer.norm", "norm"),
];

/// Names inside of a layer.
const INNER: &[(&str, &str)] = &[
    ("attn.out_proj", "self_attn.o_proj"),
    ("attn", "self_attn"),
    ("ffn.proj_1", "mlp.gate_up_proj"),
    ("ffn.proj_2", "mlp.down_proj"),
    ("attn_norm", "input_layernorm"),
    ("ffn_norm", "post_attention_layernorm"),
];

/// OpenELM of 270 million to 3 billion parameters.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    if !text.flag("ffn_with_glu")?.unwrap_or(true) {
        return Err(Error::Unsupported("networks without gates (`ffn_with_glu`)".into()));
    }
    let hidden_size = text.either("model_dim", "hidden_size")?;
    let layers = check_layers(text.either("num_transformer_layers", "num_hidden_layers")?)?;
    let head_dim = text.required("head_dim")?;
    let heads: Vec<u32> = text
        .by_layer("num_query_heads", layers)?
        .ok_or(Error::MissingField("num_query_heads"))?;
    let key_heads: Vec<u32> = text
        .by_layer("num_kv_heads", layers)?
        .ok_or(Error::MissingField("num_kv_heads"))?;
    let widths = widths(text, hidden_size, layers)?;
    let shapes = Shapes {
        hidden_size,
        vocab_size: text.required("vocab_size")?,
        layers,
        heads: 0,
        key_heads: 0,
        head_dim,
        width: 0,
        eps: text.number("rms_norm_eps")?.unwrap_or(1e-6),
        lm_head: match text.flag("share_input_output_layers")? {
            Some(false) => LmHead::Untied,
            Some(true) | None => LmHead::Tied,
        },
    };
    let qk_norm = match text.flag("normalize_qk_projections")? {
        Some(false) => QkNorm::None,
        Some(true) | None => QkNorm::PerHead,
    };
    let layers = heads.into_iter().zip(key_heads).zip(widths);
    let layers = layers.map(|((heads, key_heads), width)| LayerConfig {
        norms: NormPlacement::Pre,
        mixer: Mixer::Attention(AttentionConfig {
            qk_norm,
            ..AttentionConfig::new(heads, key_heads, head_dim, Some(0))
        }),
        feed_forward: FeedForward::dense(width, Activation::Silu),
    });
    let defaults = Defaults::new(text.number("rope_freq_constant")?.unwrap_or(10_000.0));
    let rope = RopeConfig::parse(text, head_dim, For::All, defaults)?;
    let mut config = shapes.decoder(vec![rope], layers.collect());
    config.renames = &[OUTER, INNER];
    config.family()
}

/// The width of each network: a multiple of the stream's, as the nearest multiple of `ffn_dim_divisor` that is not less
/// than nine tenths of it.
fn widths(text: Fields<'_>, hidden_size: u32, layers: u32) -> Result<Vec<u32>, Error> {
    let divisor: u32 = text.number("ffn_dim_divisor")?.unwrap_or(256).max(1);
    let divisor = f64::from(divisor);
    let multipliers: Vec<f64> = text
        .by_layer("ffn_multipliers", layers)?
        .ok_or(Error::MissingField("ffn_multipliers"))?;
    let width = |multiplier: f64| {
        let wanted = multiplier * f64::from(hidden_size);
        let nearest = ((wanted + divisor / 2.0) / divisor).floor() * divisor;
        let width = nearest.max(divisor);
        (if width < 0.9 * wanted { width + divisor } else { width }) as u32
    };
    Ok(multipliers.into_iter().map(width).collect())
}
