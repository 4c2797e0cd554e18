//! The head that drafts for Qwen 3.5 and Qwen 3 Next, in a folder of its own as mlx-vlm's splitter writes it: the config
//! is that of the model, inside of `text_config`.

use super::qwen_hybrid::qwen3_5;
use super::row::FamilyRow;
use super::source::Source;
use crate::config::decoder::{DecoderConfig, FeedForward, LayerConfig, LmHead, Mixer, OriginalMark};
use crate::config::head::{HeadConfig, HeadLayers};
use crate::config::limits::check_range;
use crate::config::Family;
use crate::error::{unusable, Error};

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::draft(
    "a draft for Qwen 3.5 and Qwen 3 Next",
    &["qwen3_5_mtp"],
    qwen3_5_mtp,
)];

/// The models that such a head belongs to.
const MODELS: &[&str] = &[
    "qwen3_5",
    "qwen3_5_moe",
    "qwen3_5_text",
    "qwen3_5_moe_text",
    "qwen3_next",
];

/// More layers than any head has.
const MOST_LAYERS: u32 = 16;

/// A head with the layers of `mtp_num_hidden_layers`, all of them attention.
pub(super) fn qwen3_5_mtp(source: Source<'_>) -> Result<Family, Error> {
    let count = source.text.number("mtp_num_hidden_layers")?.unwrap_or(1);
    check_range("mtp_num_hidden_layers", count, 1..=MOST_LAYERS)?;
    if source.text.flag("mtp_use_dedicated_embeddings")?.unwrap_or(false) {
        return Err(Error::Unsupported("a draft with embeddings of its own".into()));
    }
    let Family::Decoder(model) = qwen3_5(source)? else {
        return unusable("text_config", "it describes another kind of model");
    };
    let attends = |layer: &&LayerConfig| matches!(layer.mixer, Mixer::Attention(_));
    let Some(attention) = model.layers.iter().find(attends) else {
        return unusable("layer_types", "the draft attends, and no layer of the model does");
    };
    let has_experts = |layer: &&LayerConfig| matches!(layer.feed_forward, FeedForward::Moe(_));
    let layer = LayerConfig {
        feed_forward: match model.layers.iter().find(has_experts) {
            Some(layer) => layer.feed_forward.clone(),
            None => attention.feed_forward.clone(),
        },
        ..attention.clone()
    };
    let layers = DecoderConfig {
        layers: vec![layer; count as usize],
        lm_head: LmHead::Absent,
        norm_offset_in_original: Some(OriginalMark::Segment("mtp")),
        ..(*model).clone()
    };
    Ok(Family::Head(Box::new(HeadConfig {
        hidden_size: model.hidden_size,
        vocab_size: model.vocab_size,
        model_layers: Some(model.layers.len() as u32),
        layers: HeadLayers::Decoder(Box::new(layers.check()?)),
        model_types: MODELS,
    })))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use protocol::ModelKind;
    use serde_json::{json, Value};

    use super::*;
    use crate::ModelConfig;

    /// The shapes of the published 0.8B model.
    fn text() -> Value {
        json!({"model_type": "qwen3_5_text", "hidden_size": 1024, "num_hidden_layers": 24, "intermediate_size": 3584,
               "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 256, "vocab_size": 248320,
               "linear_num_key_heads": 16, "linear_num_value_heads": 16, "linear_key_head_dim": 128,
               "linear_value_head_dim": 128, "full_attention_interval": 4, "tie_word_embeddings": true,
               "mtp_num_hidden_layers": 1, "mtp_use_dedicated_embeddings": false, "max_position_embeddings": 262144,
               "rope_parameters": {"rope_theta": 10000000, "partial_rotary_factor": 0.25, "mrope_section": [11, 11, 10]}})
    }

    fn with(field: &str, value: Value) -> Value {
        let mut text = text();
        text[field] = value;
        text
    }

    fn parse(text: &Value) -> Result<ModelConfig, Error> {
        ModelConfig::parse(&json!({"model_type": "qwen3_5_mtp", "block_size": 3, "text_config": text}).to_string())
    }

    fn model(model_type: &str, text: &Value) -> ModelConfig {
        ModelConfig::parse(&json!({"model_type": model_type, "text_config": text}).to_string()).unwrap()
    }

    #[test]
    fn its_layers_are_the_attention_of_the_model() {
        let config = parse(&text()).unwrap();
        assert_eq!((config.kind, config.context), (ModelKind::Draft, 262_144));
        let HeadLayers::Decoder(layers) = &config.head().unwrap().layers else {
            panic!("another head")
        };
        assert_eq!((layers.layers.len(), layers.hidden_size), (1, 1024));
        let Mixer::Attention(attention) = &layers.layers[0].mixer else {
            panic!("not attention")
        };
        assert!(attention.output_gate.is_some() && attention.head_dim == 256);
        // fc 2 × 1024², queries and gates 4 × 1024 × 1024, keys and values 2 × 512 × 1024, outputs 2 × 1024², network 3 × 3584 × 1024.
        assert_eq!(
            config.parameters(),
            1024 * (2 * 1024 + 4096 + 2 * 512 + 2048 + 3 * 3584)
        );
    }

    #[test]
    fn it_fits_the_model_that_it_was_made_with_alone() {
        let config = parse(&text()).unwrap();
        let head = config.head().unwrap();
        for model_type in ["qwen3_5", "qwen3_5_text"] {
            assert!(model(model_type, &text()).check_head(head).is_ok(), "{model_type}");
        }
        for (field, value) in [
            ("hidden_size", json!(2048)),
            ("vocab_size", json!(1000)),
            ("num_hidden_layers", json!(28)),
        ] {
            let error = model("qwen3_5", &with(field, value)).check_head(head).unwrap_err();
            let said = error.to_string();
            assert!(
                said.contains("24 layers of width 1024 and 248320 tokens"),
                "{field}: {said}"
            );
        }
        let error = model("qwen3", &text()).check_head(head).unwrap_err().to_string();
        assert!(error.contains("`qwen3`"), "{error}");
        assert!(config.check_head(head).is_err());
    }

    #[test]
    fn impossible_heads_are_refused_by_name() {
        for (field, value, named) in [
            ("mtp_num_hidden_layers", json!(0), "mtp_num_hidden_layers"),
            ("mtp_num_hidden_layers", json!(u32::MAX), "mtp_num_hidden_layers"),
            ("mtp_use_dedicated_embeddings", json!(true), "embeddings of its own"),
            ("layer_types", json!(vec!["linear_attention"; 24]), "layer_types"),
            ("hidden_size", json!(0), "hidden_size"),
            ("head_dim", json!(u32::MAX), "head_dim"),
        ] {
            let error = parse(&with(field, value.clone())).unwrap_err().to_string();
            assert!(error.contains(named), "{field} {value}: {error}");
        }
    }
}
