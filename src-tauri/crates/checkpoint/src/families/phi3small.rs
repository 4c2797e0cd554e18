//! Phi 3 small: layer norms and biases, a gate clipped as in gpt-oss with another limit, and attention that sees the last
//! blocks of positions and stripes of those before in most layers. Defaults are those of the
//! `configuration_phi3_small.py` beside the weights.

use super::row::FamilyRow;
use super::shapes::Shapes;
use super::source::Source;
use crate::config::decoder::{
    Activation, AttentionConfig, DenseConfig, FeedForward, LayerConfig, LmHead, Mixer, NormKind, NormPlacement,
    StripesConfig,
};
use crate::config::limits::{check_heads, check_layers, check_positive};
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::{Family, Fields};
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("Phi 3 small", &["phi3small"], parse)];

/// Names in the checkpoints.
const NAMES: &[(&str, &str)] = &[
    ("self_attn.query_key_value", "self_attn.qkv_proj"),
    ("self_attn.dense", "self_attn.o_proj"),
    ("mlp.up_proj", "mlp.gate_up_pairs"),
    ("final_layernorm", "norm"),
];

/// Tokens of its vocabulary that stand for nothing.
const UNWRITTEN: &[(u32, u32)] = &[
    (100_256, 100_257),
    (100_258, 100_261),
    (100_264, 100_266),
    (100_267, 100_352),
];

/// Phi 3 small.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    refuse_unknown(text)?;
    let (hidden_size, heads) = (text.required("hidden_size")?, text.required("num_attention_heads")?);
    check_heads("num_attention_heads", hidden_size, heads)?;
    let shapes = Shapes {
        hidden_size,
        vocab_size: text.required("vocab_size")?,
        layers: check_layers(text.required("num_hidden_layers")?)?,
        heads,
        key_heads: text.number("num_key_value_heads")?.unwrap_or(heads),
        head_dim: hidden_size / heads,
        width: text.number("ff_intermediate_size")?.unwrap_or(14_336),
        eps: text.number("layer_norm_epsilon")?.unwrap_or(1e-5),
        lm_head: LmHead::Tied,
    };
    let plain = AttentionConfig::new(heads, shapes.key_heads, shapes.head_dim, Some(0));
    let scale = match text.flag("mup_use_scaling")?.unwrap_or(true) {
        true => text.number("mup_attn_multiplier")?.unwrap_or(1.0f32) / shapes.head_dim as f32,
        false => plain.scale,
    };
    let attention = AttentionConfig {
        scale,
        qkv_bias: true,
        o_bias: true,
        joined_by_key_head: true,
        ..plain
    };
    let stripes = StripesConfig {
        block: text.number("blocksparse_block_size")?.unwrap_or(64),
        local: text.number("blocksparse_num_local_blocks")?.unwrap_or(16),
        stride: text.number("blocksparse_vert_stride")?.unwrap_or(8),
    };
    let limit = text.number("gegelu_limit")?.unwrap_or(20.0);
    check_positive("gegelu_limit", limit)?;
    let dense = DenseConfig {
        width: shapes.width,
        activation: Activation::ClippedSiluAt { limit },
        bias: true,
    };
    // None is none, as 0 is.
    let full = text
        .number::<u32>("dense_attention_every_n_layers")?
        .filter(|every| *every > 0);
    let layers = (1..=shapes.layers).map(|number| LayerConfig {
        norms: NormPlacement::Pre,
        mixer: Mixer::Attention(AttentionConfig {
            stripes: (!full.is_some_and(|every| number.is_multiple_of(every))).then_some(stripes),
            ..attention.clone()
        }),
        feed_forward: FeedForward::Dense(dense),
    });
    let theta = text.number("rope_embedding_base")?.unwrap_or(1_000_000.0);
    let rope = RopeConfig::parse(text, shapes.head_dim, For::All, Defaults::new(theta))?;
    let mut config = shapes.decoder(vec![rope], layers.collect());
    let factor = |field: &'static str, usual: f32| -> Result<Option<f32>, Error> {
        let factor = text.number(field)?.unwrap_or(usual);
        Ok(Some(factor).filter(|factor| *factor != 0.0))
    };
    config.embedding_multiplier = factor("mup_embedding_multiplier", 10.0)?;
    config.logits_divisor = factor("mup_width_multiplier", 8.0)?;
    config.norm.kind = NormKind::Layer { bias: true };
    config.unwritten = UNWRITTEN;
    config.renames = &[NAMES];
    config.family()
}

/// Refuses what is not read here, by its name.
fn refuse_unknown(text: Fields<'_>) -> Result<(), Error> {
    if text.object("rope_scaling")?.is_some() {
        return Err(Error::Unsupported("a stretched context of Phi 3 small".into()));
    }
    if let Some(scale) = text.number::<f32>("rope_position_scale")?.filter(|scale| *scale != 1.0) {
        return Err(Error::Unsupported(format!("positions times {scale}")));
    }
    if text.flag("blocksparse_homo_head_pattern")? == Some(true) {
        return Err(Error::Unsupported("the same stripes for all heads".into()));
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{json, Value};

    use super::*;
    use crate::{DecoderConfig, ModelConfig};

    fn parse(changes: Value) -> Result<Box<DecoderConfig>, Error> {
        let mut config = json!({"model_type": "phi3small", "hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 100352,
            "num_attention_heads": 32, "num_key_value_heads": 8, "dense_attention_every_n_layers": 2,
            "ff_intermediate_size": 14336, "rope_embedding_base": 1000000, "rope_position_scale": 1.0});
        config
            .as_object_mut()
            .unwrap()
            .extend(changes.as_object().unwrap().clone());
        match ModelConfig::parse(&config.to_string())?.family {
            Family::Decoder(config) => Ok(config),
            Family::Gemma4(_) | Family::Encoder(_) | Family::Head(_) => panic!("another family"),
        }
    }

    #[test]
    fn every_second_layer_sees_all_and_heads_see_other_stripes() {
        let config = parse(json!({})).unwrap();
        let stripes = |layer: usize| config.layers[layer].mixer.attention().unwrap().stripes;
        assert!(stripes(0).is_some() && stripes(1).is_none());
        assert_eq!(stripes(0).unwrap().remainders(10), [1, 2, 3, 4, 5, 6, 7, 0, 1, 2]);
        assert_eq!(stripes(0).unwrap().remainders(2), [1, 5]);
        let attention = config.layers[0].mixer.attention().unwrap();
        assert_eq!((attention.scale, config.logits_divisor), (1.0 / 128.0, Some(8.0)));
    }

    #[test]
    fn impossible_stripes_and_other_kinds_are_refused_by_name() {
        for (changes, named) in [
            (json!({"blocksparse_block_size": 0}), "blocksparse_block_size"),
            (
                json!({"blocksparse_num_local_blocks": 0}),
                "blocksparse_num_local_blocks",
            ),
            (json!({"blocksparse_vert_stride": 0}), "blocksparse_vert_stride"),
            (json!({"blocksparse_vert_stride": u32::MAX}), "blocksparse_vert_stride"),
            (json!({"blocksparse_homo_head_pattern": true}), "stripes"),
            (json!({"rope_scaling": {"type": "su"}}), "stretched"),
            (json!({"rope_position_scale": 2.0}), "positions"),
            (json!({"num_attention_heads": 30}), "num_attention_heads"),
            (json!({"gegelu_limit": -1.0}), "gegelu_limit"),
        ] {
            let error = parse(changes.clone()).unwrap_err().to_string();
            assert!(error.contains(named), "{changes}: {error}");
        }
    }
}
