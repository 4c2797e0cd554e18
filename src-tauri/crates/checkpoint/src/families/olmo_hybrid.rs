//! OLMo Hybrid: three of four layers are gated delta nets with norms before their parts; every fourth is attention as
//! in OLMo 3, with norms after them, and mostly without positions. Defaults are those of transformers'
//! `OlmoHybridConfig`.

use super::row::FamilyRow;
use super::shapes::Shapes;
use super::source::Source;
use crate::config::decoder::{
    Activation, AttentionConfig, DecoderConfig, DeltaNetConfig, DeltaProjections, FeedForward, LayerConfig, Mixer,
    NormPlacement, QkNorm,
};
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::{Family, Fields};
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("OLMo Hybrid", &["olmo_hybrid"], parse)];

/// The names of the delta nets' tensors beside Qwen's.
const RENAMES: &[(&str, &str)] = &[
    ("linear_attn.o_norm", "linear_attn.norm"),
    ("linear_attn.o_proj", "linear_attn.out_proj"),
];

/// OLMo Hybrid.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let shapes = Shapes::parse(text)?;
    let activation = text.text("hidden_act")?;
    if !matches!(activation.as_deref(), None | Some("silu" | "swish")) {
        let activation = activation.unwrap_or_default();
        return Err(Error::Unsupported(format!("the activation `{activation}`")));
    }
    let turns = match text.object("rope_parameters")? {
        Some(rope) => rope.has("rope_theta"),
        None => text.has("rope_theta"),
    };
    let bias = text.flag("attention_bias")?.unwrap_or(false);
    let attention = AttentionConfig {
        qkv_bias: bias,
        o_bias: bias,
        qk_norm: QkNorm::Whole,
        ..AttentionConfig::new(shapes.heads, shapes.key_heads, shapes.head_dim, turns.then_some(0))
    };
    let delta_net = delta_net(text, &shapes)?;
    let layers = full_layers(text, shapes.layers)?.into_iter().map(|full| {
        let (norms, mixer) = match full {
            true => (NormPlacement::Post, Mixer::Attention(attention.clone())),
            false => (NormPlacement::Pre, Mixer::DeltaNet(delta_net)),
        };
        LayerConfig {
            norms,
            mixer,
            feed_forward: FeedForward::dense(shapes.width, Activation::Silu),
        }
    });
    let rope = || RopeConfig::parse(text, shapes.head_dim, For::All, Defaults::default());
    let ropes = turns.then(rope).transpose()?.into_iter().collect();
    let config = DecoderConfig {
        renames: &[RENAMES],
        ..shapes.decoder(ropes, layers.collect())
    };
    config.family()
}

fn delta_net(text: Fields<'_>, shapes: &Shapes) -> Result<DeltaNetConfig, Error> {
    let key_heads = text.number("linear_num_key_heads")?.unwrap_or(shapes.heads);
    let key_width = match text.number("linear_key_head_dim")? {
        Some(width) => width,
        None => (0.75 * f64::from(shapes.hidden_size) / f64::from(key_heads.max(1))) as u32,
    };
    Ok(DeltaNetConfig {
        key_heads,
        value_heads: text.number("linear_num_value_heads")?.unwrap_or(shapes.heads),
        key_width,
        value_width: text
            .number("linear_value_head_dim")?
            .unwrap_or(key_width.saturating_mul(2)),
        kernel: text.number("linear_conv_kernel_dim")?.unwrap_or(4),
        projections: DeltaProjections::Single,
        channels: None,
        logistic: false,
        negates: text.flag("linear_allow_neg_eigval")?.unwrap_or(true),
        // transformers has no field for it.
        norm_eps: text.number("layer_norm_epsilon")?.unwrap_or(1e-5),
    })
}

/// Which layers are attention: by `layer_types`, else every fourth, and the last if there are fewer.
fn full_layers(text: Fields<'_>, layers: u32) -> Result<Vec<bool>, Error> {
    if let Some(full) = text.layer_types(layers, &[("full_attention", true), ("linear_attention", false)])? {
        return Ok(full);
    }
    Ok((1..=layers)
        .map(|layer| layer.is_multiple_of(4) || (layers < 4 && layer == layers))
        .collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{json, Value};

    use super::*;
    use crate::ModelConfig;

    fn with(field: &str, value: Value) -> Result<Box<DecoderConfig>, Error> {
        let mut config = json!({"model_type": "olmo_hybrid", "hidden_size": 3840, "num_hidden_layers": 32,
            "intermediate_size": 11008, "num_attention_heads": 30, "vocab_size": 100352});
        config[field] = value;
        match ModelConfig::parse(&config.to_string())?.family {
            Family::Decoder(config) => Ok(config),
            Family::Gemma4(_) | Family::Encoder(_) | Family::Head(_) => panic!("another family"),
        }
    }

    #[test]
    fn what_the_file_leaves_out_is_as_in_transformers() {
        let config = with("hidden_act", json!("silu")).unwrap();
        let Mixer::DeltaNet(delta_net) = config.layers[0].mixer else {
            panic!("it has a state")
        };
        assert_eq!(
            (delta_net.key_heads, delta_net.key_width, delta_net.value_width),
            (30, 96, 192)
        );
        assert!(delta_net.negates && delta_net.norm_eps == 1e-5);
        let attention = config.layers[3].mixer.attention().unwrap();
        assert!(attention.rope.is_none() && config.ropes.is_empty());
        assert_eq!(
            (config.layers[2].norms, config.layers[3].norms),
            (NormPlacement::Pre, NormPlacement::Post)
        );
    }

    #[test]
    fn positions_turn_if_the_config_has_a_base() {
        for (field, value, turns) in [
            (
                "rope_parameters",
                json!({"rope_theta": 5e5, "rope_type": "default"}),
                true,
            ),
            (
                "rope_parameters",
                json!({"rope_theta": null, "rope_type": "default"}),
                false,
            ),
            ("rope_theta", json!(10000.0), true),
        ] {
            let config = with(field, value).unwrap();
            assert_eq!(config.layers[31].mixer.attention().unwrap().rope.is_some(), turns);
        }
    }

    #[test]
    fn impossible_shapes_are_refused_by_name() {
        for (field, value) in [
            ("linear_num_key_heads", json!(0)),
            ("linear_num_key_heads", json!(7)),
            ("layer_norm_epsilon", json!(0.0)),
            ("linear_conv_kernel_dim", json!(1)),
            ("layer_types", json!(["full_attention"])),
        ] {
            let error = with(field, value.clone()).unwrap_err().to_string();
            assert!(error.contains(field), "{field} {value}: {error}");
        }
        let error = with("hidden_act", json!("relu")).unwrap_err().to_string();
        assert!(error.contains("relu"), "{error}");
    }
}
