//! RecurrentGemma (Griffin): recurrent units, and attention with a window in every third layer. Defaults are those of
//! transformers' `RecurrentGemmaConfig`.

use super::row::FamilyRow;
use super::shapes::Shapes;
use super::source::Source;
use crate::config::decoder::{
    Activation, AttentionConfig, DecoderConfig, DenseConfig, FeedForward, LayerConfig, LmHead, Mixer, NormPlacement,
    RgLruConfig,
};
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::{Family, Fields};
use crate::error::{unusable, Error};

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("RecurrentGemma", &["recurrent_gemma"], parse)];

/// The names of its tensors beside Llama's.
const RENAMES: &[(&str, &str)] = &[
    ("temporal_pre_norm", "input_layernorm"),
    ("channel_pre_norm", "post_attention_layernorm"),
    ("final_norm", "norm"),
    ("mlp_block", "mlp"),
    ("temporal_block.q_proj", "self_attn.q_proj"),
    ("temporal_block.k_proj", "self_attn.k_proj"),
    ("temporal_block.v_proj", "self_attn.v_proj"),
    ("temporal_block.o_proj", "self_attn.o_proj"),
    ("temporal_block", "recurrent"),
];

/// RecurrentGemma.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let activation = text.text("hidden_activation")?;
    if !matches!(activation.as_deref(), None | Some("gelu_pytorch_tanh")) {
        let activation = activation.unwrap_or_default();
        return Err(Error::Unsupported(format!("the activation `{activation}`")));
    }
    let shapes = Shapes {
        // Whatever the file says, of which transformers' default differs.
        lm_head: LmHead::UntiedIfPresent,
        ..Shapes::parse(text)?
    };
    let attention = AttentionConfig {
        window: Some(text.number("attention_window_size")?.unwrap_or(2048)),
        qkv_bias: text.flag("attention_bias")?.unwrap_or(false),
        o_bias: true,
        ..AttentionConfig::new(shapes.heads, shapes.key_heads, shapes.head_dim, Some(0))
    };
    let unit = RgLruConfig {
        width: text.number("lru_width")?.unwrap_or(shapes.hidden_size),
        heads: shapes.heads,
        kernel: text.number("conv1d_width")?.unwrap_or(4),
    };
    let feed_forward = FeedForward::Dense(DenseConfig {
        // Of gate and up together.
        width: shapes.width / 2,
        activation: Activation::GeluTanh,
        bias: true,
    });
    let kinds = kinds(text)?;
    let layers = (0..shapes.layers as usize).map(|layer| LayerConfig {
        norms: NormPlacement::Pre,
        mixer: match kinds[layer % kinds.len()] {
            true => Mixer::Attention(attention.clone()),
            false => Mixer::RgLru(unit),
        },
        feed_forward: feed_forward.clone(),
    });
    let defaults = Defaults {
        partial: 0.5,
        ..Defaults::default()
    };
    let rope = RopeConfig::parse(text, shapes.head_dim, For::All, defaults)?;
    let mut config = DecoderConfig {
        renames: &[RENAMES],
        logits_softcap: Some(text.number("logits_soft_cap")?.unwrap_or(30.0)),
        ..shapes.decoder(vec![rope], layers.collect())
    };
    config.norm.offset = true;
    if text.flag("embeddings_scale_by_sqrt_dim")?.unwrap_or(true) {
        config.embedding_multiplier = Some((shapes.hidden_size as f32).sqrt());
    }
    config.family()
}

/// The kinds of layers, which repeat: true for attention. The larger model has them under another name.
fn kinds(text: Fields<'_>) -> Result<Vec<bool>, Error> {
    const FIELD: &str = "block_types";
    let names = match text.texts(FIELD)? {
        Some(names) => Some(names),
        None => text.texts("_block_types")?,
    };
    let Some(names) = names else {
        return Ok(vec![false, false, true]);
    };
    let kind = |name: &str| match name {
        "recurrent" => Ok(false),
        "attention" => Ok(true),
        other => Err(Error::Unsupported(format!("layers of type `{other}`"))),
    };
    match names.is_empty() {
        true => unusable(FIELD, "it names no layer"),
        false => names.into_iter().map(kind).collect(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{json, Value};

    use super::*;
    use crate::ModelConfig;

    /// Fields as the model of 2 billion parameters has them.
    fn with(field: &str, value: Value) -> Result<Box<DecoderConfig>, Error> {
        let mut config = json!({"model_type": "recurrent_gemma", "hidden_size": 2560, "num_hidden_layers": 26,
            "intermediate_size": 15360, "num_attention_heads": 10, "num_key_value_heads": 1, "lru_width": 2560,
            "vocab_size": 256000, "attention_window_size": 2048, "conv1d_width": 4, "logits_soft_cap": 30.0,
            "rms_norm_eps": 1e-6, "partial_rotary_factor": 0.5});
        config[field] = value;
        match ModelConfig::parse(&config.to_string())?.family {
            Family::Decoder(config) => Ok(config),
            Family::Gemma4(_) | Family::Encoder(_) | Family::Head(_) => panic!("another family"),
        }
    }

    #[test]
    fn every_third_layer_is_attention_with_a_window_or_what_the_list_says() {
        let attends = |config: &DecoderConfig| -> Vec<bool> {
            let mixers = config.layers.iter().take(4).map(|layer| layer.mixer.attention());
            mixers.map(|attention| attention.is_some()).collect()
        };
        let config = with("attention_bias", json!(false)).unwrap();
        assert_eq!(attends(&config), [false, false, true, false]);
        assert_eq!((config.ropes[0].dims, config.norm.offset), (128, true));
        assert_eq!(config.layers[2].mixer.attention().unwrap().window, Some(2048));
        let other = with("_block_types", json!(["attention", "recurrent"])).unwrap();
        assert_eq!(attends(&other), [true, false, true, false]);
    }

    #[test]
    fn what_is_missing_or_impossible_is_refused_by_name() {
        for (field, value, named) in [
            ("block_types", json!([]), "block_types"),
            ("block_types", json!(["rwkv"]), "rwkv"),
            ("lru_width", json!(2561), "lru_width"),
            ("lru_width", json!(0), "lru_width"),
            ("conv1d_width", json!(1), "conv1d_width"),
            ("hidden_activation", json!("relu"), "relu"),
            ("logits_soft_cap", json!(0.0), "softcapping"),
        ] {
            let error = with(field, value.clone()).unwrap_err().to_string();
            assert!(error.contains(named), "{field} {value}: {error}");
        }
    }
}
