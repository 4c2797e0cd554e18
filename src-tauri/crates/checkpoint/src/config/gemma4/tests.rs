#![allow(clippy::unwrap_used)]

use super::*;
use serde_json::{json, Value};

fn parse(value: Value) -> Result<Gemma4Config, Error> {
    Gemma4Config::parse(Fields::new(value.as_object().unwrap()), Some(262_144))
}

fn text_config(hidden: u32, layers: u32, shared: u32, pattern: u32) -> Value {
    json!({"hidden_size": hidden, "num_hidden_layers": layers, "intermediate_size": 4 * hidden, "num_attention_heads": 8,
           "num_key_value_heads": 1, "num_kv_shared_layers": shared, "sliding_window_pattern": pattern})
}

#[test]
fn shared_layers_of_the_published_models_find_their_donors() {
    let e2b = parse(text_config(1536, 35, 20, 5)).unwrap();
    assert_eq!(
        (e2b.donor(15), e2b.donor(19), e2b.donor(34), e2b.donor(3)),
        (13, 14, 14, 3)
    );
    let e4b = parse(text_config(2560, 42, 18, 6)).unwrap();
    assert_eq!((e4b.donor(24), e4b.donor(29), e4b.donor(41)), (22, 23, 23));
}

#[test]
fn layers_with_shared_keys_are_twice_as_wide_where_the_config_says_so() {
    let widths = |wide: bool| {
        let mut config = text_config(1536, 35, 20, 5);
        config["use_double_wide_mlp"] = json!(wide);
        let config = parse(config).unwrap();
        (config.mlp_width(14), config.mlp_width(15), config.mlp_width(34))
    };
    assert_eq!(widths(true), (6144, 12288, 12288));
    assert_eq!(widths(false), (6144, 6144, 6144));
}

/// The large models as their repositories describe them, `null`s included.
fn large(layers: u32, experts: Value) -> Value {
    let mut config = json!({"hidden_size": 5376, "num_hidden_layers": layers, "intermediate_size": 21504,
        "num_attention_heads": 32, "num_key_value_heads": 16, "num_global_key_value_heads": 4, "head_dim": 256,
        "global_head_dim": 512, "sliding_window": 1024, "num_kv_shared_layers": 0, "attention_k_eq_v": true,
        "hidden_size_per_layer_input": null, "final_logit_softcapping": 30.0, "use_double_wide_mlp": false,
        "enable_moe_block": false, "num_experts": null, "top_k_experts": null, "moe_intermediate_size": null});
    config
        .as_object_mut()
        .unwrap()
        .extend(experts.as_object().unwrap().clone());
    config
}

#[test]
fn full_layers_of_the_large_models_have_other_heads() {
    let dense = parse(large(60, json!({}))).unwrap();
    assert_eq!(
        (
            dense.layers.iter().filter(|kind| **kind == Attention::Full).count(),
            dense.layers[5]
        ),
        (10, Attention::Full)
    );
    assert_eq!(
        (
            dense.key_heads(4),
            dense.head_width(4),
            dense.key_heads(5),
            dense.head_width(5)
        ),
        (16, 256, 4, 512)
    );
    assert_eq!(
        (dense.hidden_size_per_layer_input, dense.experts, dense.own_kv_layers()),
        (None, None, 60)
    );
    // Without `attention_k_eq_v` full layers have as many key heads as the others.
    assert_eq!(
        parse(large(60, json!({"attention_k_eq_v": false})))
            .unwrap()
            .key_heads(5),
        16
    );
    assert_eq!(
        parse(large(60, json!({"global_head_dim": null})))
            .unwrap()
            .head_width(5),
        256
    );
}

#[test]
fn experts_are_read_where_they_are_switched_on() {
    let experts = |count: u32, chosen: u32| {
        let fields = json!({"enable_moe_block": true, "num_experts": count, "top_k_experts": chosen, "moe_intermediate_size": 704});
        parse(large(30, fields)).map(|config| config.experts)
    };
    let expected = Gemma4MoeConfig {
        num_experts: 128,
        top_k_experts: 8,
        moe_intermediate_size: 704,
    };
    assert_eq!(experts(128, 8).unwrap(), Some(expected));
    assert!(experts(128, 129).unwrap_err().to_string().contains("top_k_experts"));
    assert!(experts(1 << 20, 8).unwrap_err().to_string().contains("num_experts"));
    let error = parse(large(30, json!({"enable_moe_block": true})))
        .unwrap_err()
        .to_string();
    assert!(error.contains("num_experts"), "{error}");
}

#[test]
fn the_last_layer_without_a_given_type_is_full() {
    let config = parse(text_config(64, 8, 0, 6)).unwrap();
    assert_eq!(config.layers.iter().filter(|kind| **kind == Attention::Full).count(), 2);
    assert_eq!(config.layers[7], Attention::Full);
}

#[test]
fn impossible_shapes_are_refused_by_name() {
    let mut config = text_config(64, 8, 8, 6);
    assert!(parse(config.clone())
        .unwrap_err()
        .to_string()
        .contains("num_kv_shared_layers"));
    config["num_kv_shared_layers"] = json!(2);
    config["num_key_value_heads"] = json!(3);
    assert!(parse(config).unwrap_err().to_string().contains("num_key_value_heads"));
}

#[test]
fn shapes_beyond_all_reason_are_refused_before_anything_is_allocated() {
    for (field, value) in [
        ("num_hidden_layers", u32::MAX),
        ("hidden_size", u32::MAX),
        ("intermediate_size", u32::MAX),
        ("head_dim", 1 << 31),
        ("head_dim", 0),
        ("global_head_dim", u32::MAX - 1),
        ("num_global_key_value_heads", 0),
        ("hidden_size_per_layer_input", u32::MAX),
        ("sliding_window", u32::MAX),
    ] {
        let mut config = text_config(64, 8, 2, 6);
        config[field] = json!(value);
        let error = parse(config).unwrap_err().to_string();
        assert!(error.contains(&format!("`{field}`")), "{field} {value}: {error}");
    }
    let mut heads = text_config(64, 8, 2, 6);
    heads["num_attention_heads"] = json!(2_000_000_000);
    assert!(parse(heads).unwrap_err().to_string().contains("head_dim"));
}
