//! ModernBERT: layers that look both ways, most of them not far, with rotary positions, gated networks and norms before
//! each half. Defaults are those of transformers' `ModernBertConfig`.

use super::row::FamilyRow;
use super::shapes::Shapes;
use super::source::Source;
use crate::config::decoder::{
    Activation, AttentionConfig, DecoderConfig, DenseConfig, EmbeddingNorm, FeedForward, LayerConfig, LmHead, Mixer,
    NormKind, NormPlacement,
};
use crate::config::limits::{check_heads, check_layers, check_nonzero};
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::{Family, Fields};
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::embedding("ModernBERT", &["modernbert"], parse)];

/// Names of its checkpoints.
const RENAMES: &[(&str, &str)] = &[
    ("embeddings.tok_embeddings", "embed_tokens"),
    ("embeddings.norm", "embed_norm"),
    ("final_norm", "norm"),
    ("attn_norm", "input_layernorm"),
    ("mlp_norm", "post_attention_layernorm"),
    ("attn.Wqkv", "self_attn.qkv_proj"),
    ("attn.Wo", "self_attn.o_proj"),
    ("mlp.Wi", "mlp.gate_up_proj"),
    ("mlp.Wo", "mlp.down_proj"),
];

/// Index of the ropes.
const SLIDING: usize = 0;
const FULL: usize = 1;

pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let (hidden_size, heads) = (text.required("hidden_size")?, text.required("num_attention_heads")?);
    check_heads("num_attention_heads", hidden_size, heads)?;
    let shapes = Shapes {
        hidden_size,
        vocab_size: text.required("vocab_size")?,
        layers: check_layers(text.required("num_hidden_layers")?)?,
        heads,
        key_heads: heads,
        head_dim: hidden_size / heads,
        width: text.required("intermediate_size")?,
        eps: text.number("norm_eps")?.unwrap_or(1e-5),
        lm_head: LmHead::Absent,
    };
    let bias = text.flag("attention_bias")?.unwrap_or(false);
    let attention = AttentionConfig {
        qkv_bias: bias,
        o_bias: bias,
        ..AttentionConfig::new(heads, heads, shapes.head_dim, None)
    };
    let dense = DenseConfig {
        width: shapes.width,
        activation: activation(text)?,
        bias: text.flag("mlp_bias")?.unwrap_or(false),
    };
    // Half of the window lies before a position, half after it.
    let window = text.number("local_attention")?.unwrap_or(128u32) / 2 + 1;
    let layers = sliding(text, shapes.layers)?.into_iter().enumerate();
    let layers = layers.map(|(layer, slides)| LayerConfig {
        norms: match layer {
            0 => NormPlacement::BeforeNetwork,
            _ => NormPlacement::Pre,
        },
        mixer: Mixer::Attention(AttentionConfig {
            window: slides.then_some(window),
            rope: Some(if slides { SLIDING } else { FULL }),
            ..attention.clone()
        }),
        feed_forward: FeedForward::Dense(dense),
    });
    let mut decoder = shapes.decoder(ropes(text, shapes.head_dim)?, layers.collect());
    decoder.norm.kind = NormKind::Layer {
        bias: text.flag("norm_bias")?.unwrap_or(false),
    };
    DecoderConfig {
        embedding_norm: Some(EmbeddingNorm::OfStream),
        bidirectional: true,
        most_positions: Some(text.number("max_position_embeddings")?.unwrap_or(8192)),
        renames: &[RENAMES],
        ..decoder
    }
    .family()
}

/// True for each layer that does not look far.
fn sliding(text: Fields<'_>, layers: u32) -> Result<Vec<bool>, Error> {
    if let Some(sliding) = text.layer_types(layers, &[("full_attention", false), ("sliding_attention", true)])? {
        return Ok(sliding);
    }
    const EVERY: &str = "global_attn_every_n_layers";
    let every = text.number(EVERY)?.unwrap_or(3u32);
    check_nonzero(EVERY, every)?;
    Ok((0..layers).map(|layer| !layer.is_multiple_of(every)).collect())
}

fn ropes(text: Fields<'_>, head_dim: u32) -> Result<Vec<RopeConfig>, Error> {
    if text.has("rope_scaling") {
        return Err(Error::Unsupported("`rope_scaling`".into()));
    }
    let global = text.number("global_rope_theta")?.unwrap_or(160_000.0);
    let local = match text.says_null("local_rope_theta") {
        true => global,
        false => text.number("local_rope_theta")?.unwrap_or(10_000.0),
    };
    Ok(vec![
        RopeConfig::parse(text, head_dim, For::Only("sliding_attention"), Defaults::new(local))?,
        RopeConfig::parse(text, head_dim, For::Type("full_attention"), Defaults::new(global))?,
    ])
}

fn activation(text: Fields<'_>) -> Result<Activation, Error> {
    match text.text("hidden_activation")?.as_deref() {
        None | Some("gelu") => Ok(Activation::Gelu),
        Some("gelu_pytorch_tanh" | "gelu_new" | "gelu_fast") => Ok(Activation::GeluTanh),
        Some("silu" | "swish") => Ok(Activation::Silu),
        Some(other) => Err(Error::Unsupported(format!("the activation `{other}`"))),
    }
}
