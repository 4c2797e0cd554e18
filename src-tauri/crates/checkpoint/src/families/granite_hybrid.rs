//! Granite 4.0 H: Mamba 2 in most layers and attention without positions in the others, Granite's multipliers, and a
//! network for all tokens that stands beside experts in the larger ones. Those without Mamba go by the same type.

use super::granite;
use super::llama;
use super::mamba_fields::{expanded, mamba2};
use super::row::FamilyRow;
use super::source::Source;
use crate::config::decoder::{Activation, DecoderConfig, FeedForward, Mixer, ScanNorm};
use crate::config::moe::SharedExpertConfig;
use crate::config::{Family, Fields};
use crate::error::Error;

/// The rows of the family.
pub(super) const FAMILIES: &[FamilyRow] = &[FamilyRow::text("Granite 4.0 H", &["granitemoehybrid"], parse)];

/// Names of the network for all tokens beside experts. Conversions keep its joined projections.
const BESIDE_EXPERTS: &[(&str, &str)] = &[
    ("shared_mlp.input_linear", "mlp.shared_experts.gate_up_proj"),
    ("shared_mlp.output_linear", "mlp.shared_experts.down_proj"),
];

/// Its names where it is the only one.
const ALONE: &[(&str, &str)] = &[
    ("shared_mlp.input_linear", "mlp.gate_up_proj"),
    ("shared_mlp.output_linear", "mlp.down_proj"),
];

/// Granite 4.0 H.
pub(super) fn parse(source: Source<'_>) -> Result<Family, Error> {
    let text = source.text;
    let shared = match text.number("shared_intermediate_size")? {
        Some(width) => width,
        None => text.required("intermediate_size")?,
    };
    let has_experts = text
        .number::<u32>("num_local_experts")?
        .is_some_and(|experts| experts > 0);
    let mut config = granite::scaled(text, llama::sliding(text, Vec::new())?)?;
    if has_experts {
        let beside = SharedExpertConfig::beside(shared);
        granite::place_experts(&mut config, text, Some(beside))?;
    } else {
        config.each_layer(|layer| layer.feed_forward = FeedForward::dense(shared, Activation::Silu));
    }
    place_mixers(&mut config, text)?;
    let has_positions = text.text("position_embedding_type")?.as_deref() == Some("rope");
    config.each_attention(|attention| attention.rope = attention.rope.filter(|_| has_positions));
    config.renames = match has_experts {
        true => &[BESIDE_EXPERTS, granite::EXPERTS],
        false => &[ALONE],
    };
    config.family()
}

/// Puts Mamba 2 into the layers that `layer_types` does not name attention; into all without such a list.
fn place_mixers(config: &mut DecoderConfig, text: Fields<'_>) -> Result<(), Error> {
    let kinds = [
        ("mamba", false),
        ("attention", true),
        // As transformers writes them since its version 5.
        ("linear_attention", false),
        ("full_attention", true),
    ];
    let count = config.layers.len();
    let attends = text
        .layer_types(count as u32, &kinds)?
        .unwrap_or_else(|| vec![false; count]);
    if attends.iter().all(|attends| *attends) {
        return Ok(());
    }
    let mamba = mamba2(text, expanded(text)?, ScanNorm::AfterGate { groups: 1 })?;
    for (layer, attends) in config.layers.iter_mut().zip(attends) {
        if !attends {
            layer.mixer = Mixer::Mamba2(mamba);
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{json, Value};

    use super::*;
    use crate::ModelConfig;

    /// The shapes of Granite 4.0 H Tiny.
    fn tiny(changes: Value) -> Result<Box<DecoderConfig>, Error> {
        let kinds: Vec<&str> = (0..40)
            .map(|layer| if layer % 10 == 5 { "attention" } else { "mamba" })
            .collect();
        let mut config = json!({"model_type": "granitemoehybrid", "hidden_size": 1536, "num_hidden_layers": 40,
            "intermediate_size": 512, "shared_intermediate_size": 1024, "num_local_experts": 64, "num_experts_per_tok": 6,
            "num_attention_heads": 12, "num_key_value_heads": 4, "vocab_size": 100352, "layer_types": kinds,
            "position_embedding_type": "nope", "attention_multiplier": 0.0078125, "embedding_multiplier": 12,
            "residual_multiplier": 0.22, "logits_scaling": 6, "mamba_n_heads": 48, "mamba_d_head": 64,
            "mamba_d_state": 128, "mamba_n_groups": 1, "mamba_d_conv": 4, "mamba_expand": 2});
        let changes = changes.as_object().unwrap().clone();
        config.as_object_mut().unwrap().extend(changes);
        match ModelConfig::parse(&config.to_string())?.family {
            Family::Decoder(config) => Ok(config),
            Family::Gemma4(_) | Family::Encoder(_) | Family::Head(_) => panic!("another family"),
        }
    }

    #[test]
    fn attention_stands_where_the_config_says_and_knows_no_positions() {
        let config = tiny(json!({})).unwrap();
        let attends = config.layers.iter().map(|layer| layer.mixer.attention());
        let attends: Vec<bool> = attends
            .map(|attention| attention.is_some_and(|attention| attention.rope.is_none()))
            .collect();
        assert!(attends
            .iter()
            .enumerate()
            .all(|(layer, attends)| *attends == (layer % 10 == 5)));
        let Mixer::Mamba2(mamba) = config.layers[0].mixer else {
            panic!("it has a state")
        };
        assert_eq!((mamba.inner(), mamba.channels()), (3072, 3328));
        assert_eq!(mamba.step_limit, (0.0, f32::INFINITY));
        let FeedForward::Moe(experts) = config.layers[0].feed_forward else {
            panic!("it has experts")
        };
        assert_eq!(experts.shared.map(|shared| shared.width), Some(1024));
    }

    #[test]
    fn without_experts_the_shared_network_is_the_only_one() {
        let dense = tiny(json!({"num_local_experts": 0, "layer_types": null, "mamba_d_head": "auto"})).unwrap();
        let FeedForward::Dense(network) = dense.layers[0].feed_forward else {
            panic!("it has experts")
        };
        assert_eq!(network.width, 1024);
        let turning = tiny(json!({"layer_types": vec!["attention"; 40], "position_embedding_type": "rope"})).unwrap();
        assert!(turning.layers[7].mixer.attention().unwrap().rope.is_some());
    }

    #[test]
    fn impossible_states_are_refused_by_name() {
        for (field, value, named) in [
            ("mamba_n_heads", json!(0), "mamba_n_heads"),
            ("mamba_n_groups", json!(5), "n_groups"),
            ("mamba_n_groups", json!(0), "n_groups"),
            ("mamba_d_head", json!(u32::MAX), "mamba_head_dim"),
            ("mamba_d_head", json!("wide"), "mamba_d_head"),
            ("mamba_d_state", json!(1 << 15), "state_size"),
            ("mamba_d_conv", json!(1), "conv_kernel"),
            ("time_step_limit", json!([0.5, 0.1]), "time_step_limit"),
            ("time_step_limit", json!([-1.0, 0.1]), "time_step_limit"),
            ("layer_types", json!(vec!["rwkv"; 40]), "rwkv"),
        ] {
            let error = tiny(json!({field: value.clone()})).unwrap_err().to_string();
            assert!(error.contains(named), "{field} {value}: {error}");
        }
    }
}
