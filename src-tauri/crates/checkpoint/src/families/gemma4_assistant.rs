//! The assistants of Gemma 4, which draft for it.

use super::row::FamilyRow;
use super::source::Source;
use crate::config::gemma4::AssistantConfig;
use crate::config::head::{HeadConfig, HeadLayers};
use crate::config::Family;
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::draft(
    "a draft for Gemma 4",
    &["gemma4_assistant", "gemma4_unified_assistant"],
    parse,
)];

/// The models that an assistant belongs to.
const MODELS: &[&str] = &["gemma4", "gemma4_text", "gemma4_unified"];

/// An assistant.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let assistant = AssistantConfig::parse(source.top, source.text)?;
    Ok(Family::Head(Box::new(HeadConfig {
        hidden_size: assistant.model_width,
        vocab_size: assistant.text.vocab_size,
        model_layers: None,
        model_types: MODELS,
        layers: HeadLayers::Assistant(Box::new(assistant)),
    })))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use protocol::ModelKind;
    use serde_json::{json, Value};

    use super::*;
    use crate::ModelConfig;

    /// The shapes of the published assistant of E2B.
    fn assistant() -> Value {
        json!({"model_type": "gemma4_assistant", "backbone_hidden_size": 1536, "use_ordered_embeddings": true,
               "num_centroids": 2048, "centroid_intermediate_top_k": 32, "tie_word_embeddings": true,
               "text_config": {"model_type": "gemma4_text", "hidden_size": 256, "intermediate_size": 2048,
                   "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256,
                   "global_head_dim": 512, "vocab_size": 262144, "hidden_size_per_layer_input": 0,
                   "vocab_size_per_layer_input": 0, "num_kv_shared_layers": 4, "sliding_window": 512,
                   "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"]}})
    }

    fn parse(config: &Value) -> Result<ModelConfig, Error> {
        ModelConfig::parse(&config.to_string())
    }

    fn model(hidden: u32, head_dim: u32) -> ModelConfig {
        let text = json!({"hidden_size": hidden, "num_hidden_layers": 35, "intermediate_size": 6144,
            "num_attention_heads": 8, "num_key_value_heads": 1, "num_kv_shared_layers": 20, "sliding_window_pattern": 5,
            "head_dim": head_dim, "hidden_size_per_layer_input": 256});
        parse(&json!({"model_type": "gemma4", "vocab_size": 262144, "text_config": text})).unwrap()
    }

    #[test]
    fn it_attends_to_the_keys_of_the_model_that_it_was_made_with() {
        let config = parse(&assistant()).unwrap();
        assert_eq!(config.kind, ModelKind::Draft);
        let head = config.head().unwrap();
        let HeadLayers::Assistant(layers) = &head.layers else {
            panic!("another head")
        };
        assert_eq!(
            (layers.text.own_kv_layers(), layers.centroids.unwrap().count),
            (0, 2048)
        );
        assert!(model(1536, 256).check_head(head).is_ok());
        for other in [model(2560, 256), model(1536, 128)] {
            let error = other.check_head(head).unwrap_err().to_string();
            assert!(error.contains("width 1536"), "{error}");
        }
        // Embeddings, groups, projections, and four layers of which one has wider heads.
        let layers = 3 * 2 * 4 * 256 + 2 * 4 * 512 + 4 * 3 * 2048;
        let expected = 256 * (262_144 + 2048 + 3 * 1536 + layers);
        assert_eq!(config.parameters(), expected);
    }

    #[test]
    fn impossible_assistants_are_refused_by_name() {
        for (field, value) in [
            ("backbone_hidden_size", json!(0)),
            ("backbone_hidden_size", json!(null)),
            ("backbone_hidden_size", json!(u32::MAX)),
            ("num_centroids", json!(0)),
            ("num_centroids", json!(2047)),
            ("num_centroids", json!(u32::MAX)),
            ("centroid_intermediate_top_k", json!(4096)),
        ] {
            let mut config = assistant();
            config[field] = value.clone();
            let error = parse(&config).unwrap_err().to_string();
            assert!(error.contains(field), "{field} {value}: {error}");
        }
        for (field, value, named) in [
            ("num_kv_shared_layers", json!(2), "num_kv_shared_layers"),
            ("enable_moe_block", json!(true), "num_experts"),
            ("hidden_size_per_layer_input", json!(256), "inputs for each layer"),
            ("use_double_wide_mlp", json!(true), "wider network"),
            ("hidden_size", json!(u32::MAX), "hidden_size"),
        ] {
            let mut config = assistant();
            config["text_config"][field] = value.clone();
            let error = parse(&config).unwrap_err().to_string();
            assert!(error.contains(named), "{field} {value}: {error}");
        }
    }
}
