//! GPT-2, GPT-BigCode (StarCoder 1, SantaCoder) and GPT-J: layer norms, networks without gates and biases nearly
//! everywhere. The first two add a learned vector for each position to the embeddings; GPT-J turns neighbors of a part
//! of a head, and has attention and network beside each other. Defaults are those of transformers' `GPT2Config`,
//! `GPTBigCodeConfig` and `GPTJConfig`.

use super::row::FamilyRow;
use super::shapes::Shapes;
use super::source::Source;
use crate::config::decoder::{
    AttentionConfig, DecoderConfig, EncoderActivation, FeedForward, LayerConfig, LmHead, Mixer, NormKind,
    NormPlacement, PlainConfig,
};
use crate::config::limits::{check_heads, check_layers, check_rotation};
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::{Family, Fields};
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::text("GPT-2", &["gpt2"], gpt2),
    FamilyRow::text("StarCoder 1, SantaCoder", &["gpt_bigcode"], gpt_bigcode),
    FamilyRow::text("GPT-J", &["gptj"], gptj),
];

/// Names outside of the layers, and of the layers themselves; files of mlx-lm have them without `transformer`.
const OUTER: &[(&str, &str)] = &[
    ("transformer.h", "layers"),
    ("transformer.wte", "embed_tokens"),
    ("transformer.wpe", "embed_positions"),
    ("transformer.ln_f", "norm"),
    ("h", "layers"),
    ("wte", "embed_tokens"),
    ("wpe", "embed_positions"),
    ("ln_f", "norm"),
];

/// Names inside of a layer.
const INNER: &[(&str, &str)] = &[
    ("attn.c_attn", "self_attn.qkv_proj"),
    ("attn.c_proj", "self_attn.o_proj"),
    ("attn.out_proj", "self_attn.o_proj"),
    ("attn", "self_attn"),
    ("mlp.c_fc", "mlp.up_proj"),
    ("mlp.c_proj", "mlp.down_proj"),
    ("mlp.fc_in", "mlp.up_proj"),
    ("mlp.fc_out", "mlp.down_proj"),
    ("ln_1", "input_layernorm"),
    ("ln_2", "post_attention_layernorm"),
];

/// GPT-2 of all sizes.
pub(super) fn gpt2(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let shapes = shapes(text, LmHead::Tied)?;
    let attention = attention(text, &shapes)?;
    let by_layer = text.flag("scale_attn_by_inverse_layer_idx")?.unwrap_or(false);
    let mut config = decoder(text, shapes, attention, "gelu_new")?;
    if by_layer {
        for (number, attention) in (1u16..).zip(config.attention()) {
            attention.scale /= f32::from(number);
        }
    }
    config.inputs_first_unless_sanitized = true;
    positioned(text, config, 1024)?.family()
}

/// GPT-BigCode, whose heads share one key unless the file says otherwise.
pub(super) fn gpt_bigcode(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let shared = text.flag("multi_query")?.unwrap_or(true);
    let mut shapes = shapes(text, LmHead::Tied)?;
    if shared {
        shapes.key_heads = 1;
    }
    let bias = text.flag("attention_bias")?.unwrap_or(true);
    let attention = AttentionConfig {
        qkv_bias: bias,
        o_bias: bias,
        joined_by_key_head: !shared,
        ..attention(text, &shapes)?
    };
    let config = decoder(text, shapes, attention, "gelu_pytorch_tanh")?;
    positioned(text, config, 1024)?.family()
}

/// GPT-J of 6 billion parameters.
pub(super) fn gptj(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let shapes = shapes(text, LmHead::Untied)?;
    let (rotary, head_dim) = (text.number("rotary_dim")?.unwrap_or(shapes.head_dim), shapes.head_dim);
    check_rotation("rotary_dim", rotary, head_dim)?;
    let defaults = Defaults {
        traditional: true,
        ..Defaults::default()
    };
    let rope = RopeConfig::parse(text, rotary, For::All, defaults)?;
    let attention = AttentionConfig {
        qkv_bias: false,
        o_bias: false,
        rope: Some(0),
        ..attention(text, &shapes)?
    };
    let mut config = decoder(text, shapes, attention, "gelu_new")?;
    config.each_layer(|layer| layer.norms = NormPlacement::Parallel);
    config.ropes = vec![rope];
    config.family()
}

fn shapes(text: Fields<'_>, lm_head: LmHead) -> Result<Shapes, Error> {
    let hidden_size = text.either("n_embd", "hidden_size")?;
    let heads = text.either("n_head", "num_attention_heads")?;
    check_heads("n_head", hidden_size, heads)?;
    Ok(Shapes {
        hidden_size,
        vocab_size: text.required("vocab_size")?,
        layers: check_layers(text.either("n_layer", "num_hidden_layers")?)?,
        heads,
        key_heads: heads,
        head_dim: hidden_size / heads,
        width: text.number("n_inner")?.unwrap_or(hidden_size.saturating_mul(4)),
        eps: text.number("layer_norm_epsilon")?.unwrap_or(1e-5),
        lm_head: match text.flag("tie_word_embeddings")? {
            Some(true) => LmHead::Tied,
            Some(false) => LmHead::Untied,
            None => lm_head,
        },
    })
}

/// Attention with biases that knows nothing of positions.
fn attention(text: Fields<'_>, shapes: &Shapes) -> Result<AttentionConfig, Error> {
    let plain = AttentionConfig::new(shapes.heads, shapes.key_heads, shapes.head_dim, None);
    Ok(AttentionConfig {
        qkv_bias: true,
        o_bias: true,
        scale: match text.flag("scale_attn_weights")? {
            Some(false) => 1.0,
            Some(true) | None => plain.scale,
        },
        ..plain
    })
}

fn decoder(
    text: Fields<'_>,
    shapes: Shapes,
    attention: AttentionConfig,
    activation: &str,
) -> Result<DecoderConfig, Error> {
    let named = text.text("activation_function")?;
    let layer = LayerConfig {
        norms: NormPlacement::Pre,
        mixer: Mixer::Attention(attention),
        feed_forward: FeedForward::Plain(PlainConfig {
            width: shapes.width,
            activation: EncoderActivation::named(named.as_deref().unwrap_or(activation))?,
            bias: text.flag("mlp_bias")?.unwrap_or(true),
        }),
    };
    let mut config = shapes.decoder(Vec::new(), vec![layer; shapes.layers as usize]);
    config.norm.kind = NormKind::Layer { bias: true };
    config.renames = &[OUTER, INNER];
    Ok(config)
}

/// The same with a learned vector for each position.
fn positioned(text: Fields<'_>, config: DecoderConfig, default: u32) -> Result<DecoderConfig, Error> {
    Ok(DecoderConfig {
        most_positions: Some(text.first(&["n_positions", "n_ctx"])?.unwrap_or(default)),
        learned_positions: true,
        ..config
    })
}
