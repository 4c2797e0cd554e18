//! EmbeddingGemma 2, its text part: layers of Gemma 4 that look both ways, with inputs of their own that are made of
//! the embeddings, and a projection at the end. Defaults are those of transformers' `EmbeddingGemma2TextConfig`.

use super::row::FamilyRow;
use super::shapes::Shapes;
use super::source::Source;
use crate::config::decoder::{
    Activation, AttentionConfig, EmbedderConfig, FeedForward, LayerConfig, LmHead, Mixer, NormPlacement, QkNorm,
};
use crate::config::limits::{check_layers, check_nonzero};
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::{Family, Fields};
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::embedding(
    "EmbeddingGemma 2",
    &["embedding_gemma2", "embedding_gemma2_text"],
    parse,
)];

pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    match text.text("hidden_activation")?.as_deref() {
        None | Some("gelu_pytorch_tanh") => {}
        Some(other) => return Err(Error::Unsupported(format!("the activation `{other}`"))),
    }
    let number = |field, default| Ok::<u32, Error>(text.number(field)?.unwrap_or(default));
    let shapes = Shapes {
        hidden_size: number("hidden_size", 512)?,
        vocab_size: number("vocab_size", 262_144)?,
        layers: check_layers(number("num_hidden_layers", 24)?)?,
        heads: number("num_attention_heads", 4)?,
        key_heads: number("num_key_value_heads", 2)?,
        head_dim: number("head_dim", 256)?,
        width: number("intermediate_size", 2048)?,
        eps: text.number("rms_norm_eps")?.unwrap_or(1e-6),
        lm_head: LmHead::Absent,
    };
    let bias = text.flag("attention_bias")?.unwrap_or(false);
    let window = number("sliding_window", 512)?;
    let (mut ropes, mut layers) = (Vec::new(), Vec::new());
    for (layer, slides) in sliding(text, shapes.layers)?.into_iter().enumerate() {
        let [heads, key_heads, head_dim] = heads(text, &shapes, layer, slides)?;
        let rope = rope(text, head_dim, slides)?;
        let known = ropes.iter().position(|other| *other == rope);
        let index = known.unwrap_or(ropes.len());
        if known.is_none() {
            ropes.push(rope);
        }
        layers.push(LayerConfig {
            norms: NormPlacement::Sandwich,
            mixer: Mixer::Attention(AttentionConfig {
                // It reaches so far to both sides.
                window: slides.then(|| window.saturating_add(1)),
                scale: 1.0,
                qk_norm: QkNorm::PerHeadAndValues,
                qkv_bias: bias,
                o_bias: bias,
                ..AttentionConfig::new(heads, key_heads, head_dim, Some(index))
            }),
            feed_forward: FeedForward::dense(shapes.width, Activation::GeluTanh),
        });
    }
    let mut decoder = shapes.decoder(ropes, layers);
    decoder.embedding_multiplier = Some((shapes.hidden_size as f32).sqrt());
    decoder.bidirectional = true;
    decoder.embedder = Some(EmbedderConfig {
        layer_inputs: number("hidden_size_per_layer_input", 512)?,
        width: number("embedding_dim", 768)?,
    });
    decoder.family()
}

/// True for each layer that does not look far; the last one always does.
fn sliding(text: Fields<'_>, layers: u32) -> Result<Vec<bool>, Error> {
    const EVERY: &str = "sliding_window_pattern";
    let named = text.layer_types(layers, &[("full_attention", false), ("sliding_attention", true)])?;
    let every = text.number(EVERY)?.unwrap_or(6u32);
    check_nonzero(EVERY, every)?;
    let by_place = || (1..=layers).map(|number| !number.is_multiple_of(every)).collect();
    let mut sliding: Vec<bool> = named.unwrap_or_else(by_place);
    if let Some(last) = sliding.last_mut() {
        *last = false;
    }
    Ok(sliding)
}

/// Query heads, key heads and their width in a layer: by `per_layer_config`, or by the numbers that it is made of.
fn heads(text: Fields<'_>, shapes: &Shapes, layer: usize, slides: bool) -> Result<[u32; 3], Error> {
    const FIELD: &str = "per_layer_config";
    if !slides && !text.has(FIELD) {
        return Ok([
            shapes.heads,
            text.number("num_global_key_value_heads")?.unwrap_or(1),
            text.number("global_head_dim")?.unwrap_or(512),
        ]);
    }
    let Some(own) = text.entry(FIELD, layer)? else {
        return Ok([shapes.heads, shapes.key_heads, shapes.head_dim]);
    };
    Ok([
        own.number("num_attention_heads")?.unwrap_or(shapes.heads),
        own.number("num_key_value_heads")?.unwrap_or(shapes.key_heads),
        own.number("head_dim")?.unwrap_or(shapes.head_dim),
    ])
}

fn rope(text: Fields<'_>, head_dim: u32, slides: bool) -> Result<RopeConfig, Error> {
    match slides {
        true => RopeConfig::parse(text, head_dim, For::Only("sliding_attention"), Defaults::default()),
        false => RopeConfig::parse(text, head_dim, For::Type("full_attention"), Defaults::new(1_000_000.0)),
    }
}
