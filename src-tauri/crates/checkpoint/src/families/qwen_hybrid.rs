//! Qwen 3.5 and Qwen 3 Next: three of four layers are gated delta nets, every fourth is attention whose output is
//! gated.

use super::qwen;
use super::qwen_moe::{experts, place_experts, SHARED};
use super::row::FamilyRow;
use super::shapes::Shapes;
use super::source::Source;
use crate::config::decoder::{
    Activation, AttentionConfig, DecoderConfig, DeltaNetConfig, DeltaProjections, FeedForward, GateFunction,
    GateSource, LayerConfig, Mixer, NormPlacement, OriginalMark, OutputGate, QkNorm,
};
use crate::config::limits::check_nonzero;
use crate::config::rope::{Defaults, For, RopeConfig};
use crate::config::{Family, Fields};
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[
    FamilyRow::vision("Qwen 3.5 and 3.6", &["qwen3_5", "qwen3_5_moe"], qwen3_5, qwen::VISION),
    FamilyRow::text(
        "Qwen 3.5 and 3.6, text only",
        &["qwen3_5_moe_text", "qwen3_5_text"],
        qwen3_5,
    ),
    FamilyRow::text("Qwen 3 Next", &["qwen3_next"], qwen3_next),
];

/// Qwen 3.5 and 3.6, dense or with experts in every layer.
pub(super) fn qwen3_5(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let has_experts = text.number::<u32>("num_experts")?.is_some_and(|experts| experts > 0);
    // Configs with experts alone need not tell the width of a dense network.
    let width = match text.number("intermediate_size")? {
        Some(width) => width,
        None if has_experts => 0,
        None => return Err(Error::MissingField("intermediate_size")),
    };
    let mut config = decoder(text, width, DeltaProjections::Apart, 100_000.0, &KINDS)?;
    if has_experts {
        let normalised = text.flag("norm_topk_prob")?.unwrap_or(true);
        place_experts(&mut config, text, experts(text, normalised)?)?;
    }
    config.family()
}

/// Qwen 3 Next.
pub(super) fn qwen3_next(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let mut config = decoder(
        text,
        text.required("intermediate_size")?,
        DeltaProjections::ByKeyHead,
        10_000.0,
        &KINDS,
    )?;
    let normalised = text.flag("norm_topk_prob")?.unwrap_or(false);
    place_experts(&mut config, text, experts(text, normalised)?)?;
    config.family()
}

/// Layers by their names in `layer_types`, true for those that are attention.
const KINDS: [(&str, bool); 2] = [("full_attention", true), ("linear_attention", false)];

/// The layers, those of `kinds` with attention, and dense networks `width` wide in each.
pub(super) fn decoder(
    text: Fields<'_>,
    width: u32,
    projections: DeltaProjections,
    theta: f32,
    kinds: &[(&'static str, bool)],
) -> Result<DecoderConfig, Error> {
    let shapes = Shapes::with_width(text, width)?;
    let bias = text.flag("attention_bias")?.unwrap_or(false);
    let attention = AttentionConfig {
        qkv_bias: bias,
        o_bias: bias,
        qk_norm: QkNorm::PerHead,
        output_gate: Some(OutputGate {
            source: GateSource::Queries,
            function: GateFunction::Sigmoid,
        }),
        ..AttentionConfig::new(shapes.heads, shapes.key_heads, shapes.head_dim, Some(0))
    };
    let delta_net = DeltaNetConfig {
        key_heads: text.required("linear_num_key_heads")?,
        value_heads: text.required("linear_num_value_heads")?,
        key_width: text.required("linear_key_head_dim")?,
        value_width: text.required("linear_value_head_dim")?,
        kernel: text.number("linear_conv_kernel_dim")?.unwrap_or(4),
        projections,
        channels: None,
        logistic: false,
        negates: false,
        norm_eps: shapes.eps,
    };
    let feed_forward = FeedForward::dense(shapes.width, Activation::Silu);
    let layers = full_layers(text, shapes.layers, kinds)?
        .into_iter()
        .map(|full| LayerConfig {
            norms: NormPlacement::Pre,
            mixer: if full {
                Mixer::Attention(attention.clone())
            } else {
                Mixer::DeltaNet(delta_net)
            },
            feed_forward: feed_forward.clone(),
        });
    let defaults = Defaults {
        theta,
        partial: 0.25,
        ..Defaults::default()
    };
    let rope = RopeConfig::parse(text, shapes.head_dim, For::All, defaults)?;
    Ok(DecoderConfig {
        norm_offset_in_original: Some(OriginalMark::Convolutions),
        renames: &[SHARED],
        ..shapes.decoder(vec![rope], layers.collect())
    })
}

/// Which layers are attention: by `layer_types`, else every `full_attention_interval`th.
fn full_layers(text: Fields<'_>, layers: u32, kinds: &[(&'static str, bool)]) -> Result<Vec<bool>, Error> {
    if let Some(full) = text.layer_types(layers, kinds)? {
        return Ok(full);
    }
    let interval = text.number("full_attention_interval")?.unwrap_or(4);
    check_nonzero("full_attention_interval", interval)?;
    Ok((1..=layers).map(|layer| layer.is_multiple_of(interval)).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{json, Value};

    use super::*;
    use crate::ModelConfig;

    /// The shapes of the published 0.8B model.
    fn small() -> Value {
        json!({"hidden_size": 1024, "num_hidden_layers": 24, "intermediate_size": 3584, "num_attention_heads": 8,
               "num_key_value_heads": 2, "head_dim": 256, "vocab_size": 248320, "linear_num_key_heads": 16,
               "linear_num_value_heads": 16, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
               "linear_conv_kernel_dim": 4, "full_attention_interval": 4, "tie_word_embeddings": true,
               "rope_parameters": {"rope_type": "default", "rope_theta": 10000000, "partial_rotary_factor": 0.25,
                                   "mrope_section": [11, 11, 10], "mrope_interleaved": true}})
    }

    fn parse(text: &Value) -> Result<Box<DecoderConfig>, Error> {
        let config = json!({"model_type": "qwen3_5", "text_config": text}).to_string();
        match ModelConfig::parse(&config)?.family {
            Family::Decoder(config) => Ok(config),
            Family::Gemma4(_) | Family::Encoder(_) | Family::Head(_) => panic!("another family"),
        }
    }

    fn with(field: &str, value: Value) -> Result<Box<DecoderConfig>, Error> {
        let mut text = small();
        text[field] = value;
        parse(&text)
    }

    fn full(config: &DecoderConfig) -> Vec<usize> {
        let is_full = |(_, layer): &(usize, &LayerConfig)| matches!(layer.mixer, Mixer::Attention(_));
        config
            .layers
            .iter()
            .enumerate()
            .filter(is_full)
            .map(|(index, _)| index)
            .collect()
    }

    #[test]
    fn every_fourth_layer_is_attention_that_turns_a_quarter_of_a_head() {
        let config = parse(&small()).unwrap();
        assert_eq!(full(&config), [3, 7, 11, 15, 19, 23]);
        assert_eq!((config.ropes[0].dims, config.ropes[0].periods.len()), (64, 32));
        assert!((config.ropes[0].periods[1] / 1e7f32.powf(1.0 / 32.0) - 1.0).abs() < 1e-6);
        let Mixer::Attention(attention) = &config.layers[3].mixer else {
            panic!("not attention")
        };
        assert!(attention.output_gate.is_some() && attention.qk_norm == QkNorm::PerHead);
    }

    #[test]
    fn layer_types_say_it_layer_by_layer() {
        let mut types = vec!["linear_attention"; 24];
        types[5] = "full_attention";
        assert_eq!(full(&with("layer_types", json!(types)).unwrap()), [5]);
        types.pop();
        assert!(with("layer_types", json!(types)).is_err());
    }

    #[test]
    fn impossible_shapes_are_refused_by_name() {
        for (field, value, named) in [
            ("full_attention_interval", json!(0), "full_attention_interval"),
            ("linear_num_key_heads", json!(3), "linear_num_key_heads"),
            ("linear_num_key_heads", json!(0), "linear_num_key_heads"),
            ("linear_key_head_dim", json!(0), "linear_key_head_dim"),
            ("linear_key_head_dim", json!(u32::MAX), "linear_num_key_heads"),
            ("linear_value_head_dim", json!(u32::MAX), "linear_num_value_heads"),
            ("linear_key_head_dim", json!(1 << 18), "linear_key_head_dim"),
            ("linear_conv_kernel_dim", json!(0), "linear_conv_kernel_dim"),
            ("linear_conv_kernel_dim", json!(1 << 20), "linear_conv_kernel_dim"),
            ("head_dim", json!(u32::MAX), "head_dim"),
            ("num_attention_heads", json!(u32::MAX), "num_key_value_heads"),
        ] {
            let error = with(field, value.clone()).unwrap_err().to_string();
            assert!(error.contains(named), "{field} {value}: {error}");
        }
    }
}
