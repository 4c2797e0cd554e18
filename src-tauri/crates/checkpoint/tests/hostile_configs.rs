//! Whatever stands in a `config.json`, it is read or refused: no panic, no overflow, no allocation of what it claims.
#![allow(clippy::unwrap_used)]

use std::panic::{catch_unwind, AssertUnwindSafe};

use checkpoint::ModelConfig;
use serde_json::{json, Map, Value};

/// Fields that many families share, so that each change meets every reader of them.
const COMMON: &str = r#"{
        "hidden_size": 64, "num_hidden_layers": 4, "intermediate_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2,
        "head_dim": 16, "vocab_size": 256, "rms_norm_eps": 1e-6, "norm_eps": 1e-6, "max_position_embeddings": 1024,
        "rope_theta": 10000.0, "sliding_window": 8, "tie_word_embeddings": true, "attention_bias": false,
        "partial_rotary_factor": 0.5, "query_pre_attn_scalar": 16, "final_logit_softcapping": 30.0,
        "num_experts": 8, "num_local_experts": 8, "n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
        "shared_expert_intermediate_size": 32, "n_shared_experts": 1, "n_group": 2, "topk_group": 1, "norm_topk_prob": true,
        "routed_scaling_factor": 1.5, "first_k_dense_replace": 1, "decoder_sparse_step": 1, "mlp_only_layers": [1],
        "num_dense_layers": 1, "use_expert_bias": true, "moe_layer_freq": 1,
        "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 16,
        "linear_conv_kernel_dim": 4, "full_attention_interval": 4, "conv_L_cache": 3, "conv_bias": false, "block_ff_dim": 128,
        "block_multiple_of": 16, "block_ffn_dim_multiplier": 1.0, "block_auto_adjust_ff_dim": true, "full_attn_idxs": [1, 3],
        "kv_lora_rank": 16, "q_lora_rank": 16, "qk_nope_head_dim": 16, "qk_rope_head_dim": 16, "v_head_dim": 16,
        "attention_multiplier": 0.25, "embedding_multiplier": 12.0, "residual_multiplier": 0.5, "logits_scaling": 2.0,
        "no_rope_layer_interval": 4, "max_window_layers": 2, "use_sliding_window": true, "sliding_window_pattern": 2,
        "hidden_size_per_layer_input": 16, "vocab_size_per_layer_input": 256, "num_kv_shared_layers": 1, "global_head_dim": 32,
        "num_global_key_value_heads": 1, "original_max_position_embeddings": 64, "rope_local_base_freq": 10000.0,
        "num_query_heads": [4, 2, 4, 4], "num_kv_heads": [2, 1, 2, 4], "ffn_multipliers": [0.5, 1.0, 1.5, 2.25],
        "ffn_dim_divisor": 16, "loop_num": 2, "loop_window_size": 8, "num_loops": 2, "n_shared_head": 2, "clip_qkv": 8.0,
        "block_configs": [
            {"attention": {"n_heads_in_group": 2}, "ffn": {"ffn_mult": 2.5}},
            {"attention": {"no_op": true}, "ffn": {"replace_with_linear": true}},
            {"attention": {"replace_with_linear": true}, "ffn": {"no_op": true}},
            {"attention": {"n_heads_in_group": 1}, "ffn": {"ffn_mult": 1.0}}
        ],
        "quantization": {"group_size": 64, "bits": 4, "mode": "affine"}
}"#;

/// Kinds of rotary positions with everything they read.
fn ropes() -> Vec<Value> {
    let long: Vec<f32> = vec![1.5; 4];
    let mut all = vec![json!({"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5})];
    for kind in ["linear", "dynamic", "llama3", "yarn", "longrope", "proportional"] {
        all.push(
            json!({"rope_type": kind, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 64, "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 0.7,
            "attention_factor": 1.1, "long_factor": long, "short_factor": long, "llama_4_scaling_beta": 0.1}),
        );
    }
    all
}

fn bases() -> Vec<Value> {
    let mut bases = Vec::new();
    for (index, model_type) in checkpoint::KNOWN_MODEL_TYPES.iter().enumerate() {
        let ropes = ropes();
        let mut config: Value = serde_json::from_str(COMMON).unwrap();
        config["model_type"] = json!(model_type);
        let place = if index % 2 == 0 {
            "rope_parameters"
        } else {
            "rope_scaling"
        };
        config[place] = ropes[index % ropes.len()].clone();
        bases.push(config);
    }
    // The other ropes for one family.
    for rope in ropes() {
        let mut config: Value = serde_json::from_str(COMMON).unwrap();
        config["model_type"] = json!("llama");
        config["rope_scaling"] = rope;
        bases.push(config);
    }
    bases
}

fn hostile() -> Vec<Value> {
    let mut values: Vec<Value> = [
        0i64,
        1,
        2,
        3,
        7,
        -1,
        i64::MAX,
        4_294_967_295,
        2_147_483_648,
        16_777_216,
        65_536,
    ]
    .iter()
    .map(|number| json!(number))
    .collect();
    values.extend([0.5, -0.5, 1e-300, 1e-40, 1e38, 1e300].map(|number| json!(number)));
    values.extend(["Infinity", "-Infinity", "NaN"].map(|text| json!({ "__float__": text })));
    values.extend([
        json!(u64::MAX),
        json!("x"),
        json!(true),
        json!(null),
        json!([]),
        json!({}),
        json!([[1e300]]),
        json!([-1, 1e30]),
    ]);
    values
}

/// Every place in a value.
fn places(value: &Value) -> Vec<String> {
    let inside = |map: &Map<String, Value>| -> Vec<String> {
        let all = map.iter().flat_map(|(name, inner)| {
            let deeper = places(inner).into_iter().map(move |place| format!("/{name}{place}"));
            std::iter::once(format!("/{name}")).chain(deeper)
        });
        all.collect()
    };
    value.as_object().map(inside).unwrap_or_default()
}

fn read(config: &Value) {
    let text = config.to_string();
    let read = catch_unwind(AssertUnwindSafe(|| ModelConfig::parse(&text).is_ok()));
    assert!(read.is_ok(), "this config made the reader panic: {text}");
}

#[test]
fn the_bases_are_sound_where_their_family_has_such_a_rope() {
    let good = bases()
        .iter()
        .filter(|base| ModelConfig::parse(&base.to_string()).is_ok())
        .count();
    assert!(
        good * 2 > bases().len(),
        "only {good} of {} bases are read",
        bases().len()
    );
}

#[test]
fn one_hostile_value_anywhere_does_no_harm() {
    for base in bases() {
        for place in places(&base) {
            for value in hostile() {
                let mut config = base.clone();
                *config.pointer_mut(&place).unwrap() = value;
                read(&config);
            }
        }
    }
}

#[test]
fn several_hostile_values_together_do_no_harm() {
    let (bases, values) = (bases(), hostile());
    let mut state = 20_261_121u64;
    let mut below = |limit: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % limit
    };
    for _ in 0..5_000 {
        let mut config = bases[below(bases.len())].clone();
        for _ in 0..2 + below(4) {
            let places = places(&config);
            if let Some(place) = places.get(below(places.len().max(1))) {
                *config.pointer_mut(place).unwrap() = values[below(values.len())].clone();
            }
        }
        read(&config);
        // The same inside a wrapper.
        read(&json!({"model_type": config["model_type"], "vocab_size": 256, "text_config": config}));
    }
}
