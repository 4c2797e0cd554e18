//! The `config.json` of each shape, as published, without what a forward pass does not read.

use serde_json::{json, Value};

/// The config of a shape that reads text alone; `None` for other shapes.
pub fn config(name: &str) -> Option<Value> {
    let (real, small) = match name.strip_suffix("-small") {
        Some(real) => (real, true),
        None => (name, false),
    };
    let mut config = real_config(real)?;
    let bits = match real {
        "gpt-oss-20b" => json!({"group_size": 32, "bits": 4, "mode": "mxfp4"}),
        _ => json!({"group_size": 64, "bits": 4, "mode": "affine"}),
    };
    if small {
        for (key, value) in small_values(real).as_object()? {
            config[key] = value.clone();
        }
    } else {
        config["quantization"] = bits.clone();
        config["quantization_config"] = bits;
    }
    config["torch_dtype"] = json!("bfloat16");
    config["eos_token_id"] = json!(1);
    Some(config)
}

fn real_config(name: &str) -> Option<Value> {
    Some(match name {
        "gemma4-e2b" => gemma4(
            1536,
            35,
            6144,
            (8, 1),
            5,
            json!({"num_kv_shared_layers": 20, "hidden_size_per_layer_input": 256,
            "use_double_wide_mlp": true, "sliding_window": 512}),
        ),
        "gemma4-e4b" => gemma4(
            2560,
            42,
            10240,
            (8, 2),
            6,
            json!({"num_kv_shared_layers": 18, "hidden_size_per_layer_input": 256,
            "use_double_wide_mlp": false, "sliding_window": 512}),
        ),
        "gemma4-26b-a4b" => gemma4(
            2816,
            30,
            2112,
            (16, 8),
            6,
            json!({"num_kv_shared_layers": 0, "hidden_size_per_layer_input": null,
            "use_double_wide_mlp": false, "sliding_window": 1024, "attention_k_eq_v": true, "num_global_key_value_heads": 2,
            "enable_moe_block": true, "num_experts": 128, "top_k_experts": 8, "moe_intermediate_size": 704}),
        ),
        "gemma4-31b" => gemma4(
            5376,
            60,
            21504,
            (32, 16),
            6,
            json!({"num_kv_shared_layers": 0, "hidden_size_per_layer_input": null,
            "use_double_wide_mlp": false, "sliding_window": 1024, "attention_k_eq_v": true, "num_global_key_value_heads": 4}),
        ),
        "qwen3-4b" => {
            json!({"model_type": "qwen3", "hidden_size": 2560, "num_hidden_layers": 36, "intermediate_size": 9728,
            "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "rms_norm_eps": 1e-6, "vocab_size": 151_936,
            "max_position_embeddings": 40960, "rope_theta": 1_000_000.0, "rope_scaling": null, "tie_word_embeddings": true,
            "attention_bias": false, "hidden_act": "silu"})
        }
        "qwen3-30b-a3b" => json!({"model_type": "qwen3_moe", "hidden_size": 2048, "num_hidden_layers": 48,
            "intermediate_size": 6144, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "rms_norm_eps": 1e-6,
            "vocab_size": 151_936, "max_position_embeddings": 40960, "rope_theta": 1_000_000.0, "rope_scaling": null,
            "tie_word_embeddings": false, "attention_bias": false, "hidden_act": "silu", "num_experts": 128,
            "num_experts_per_tok": 8, "moe_intermediate_size": 768, "norm_topk_prob": true, "decoder_sparse_step": 1,
            "mlp_only_layers": []}),
        "qwen3.5-4b" => {
            json!({"model_type": "qwen3_5", "tie_word_embeddings": true, "text_config": {"model_type": "qwen3_5_text",
            "hidden_size": 2560, "num_hidden_layers": 32, "intermediate_size": 9216, "num_attention_heads": 16,
            "num_key_value_heads": 4, "head_dim": 256, "rms_norm_eps": 1e-6, "vocab_size": 248_320,
            "max_position_embeddings": 262_144, "full_attention_interval": 4, "linear_num_value_heads": 32,
            "linear_num_key_heads": 16, "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4,
            "tie_word_embeddings": true, "attention_bias": false, "hidden_act": "silu",
            "rope_parameters": {"rope_type": "default", "rope_theta": 10_000_000.0, "partial_rotary_factor": 0.25}}})
        }
        "llama-8b" => {
            json!({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "intermediate_size": 14336,
            "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "rms_norm_eps": 1e-5, "vocab_size": 128_256,
            "max_position_embeddings": 131_072, "rope_theta": 500_000.0, "tie_word_embeddings": false, "attention_bias": false,
            "mlp_bias": false, "hidden_act": "silu", "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
            "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}})
        }
        "gpt-oss-20b" => {
            json!({"model_type": "gpt_oss", "hidden_size": 2880, "num_hidden_layers": 24, "intermediate_size": 2880,
            "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "rms_norm_eps": 1e-5, "vocab_size": 201_088,
            "max_position_embeddings": 131_072, "rope_theta": 150_000, "sliding_window": 128, "num_local_experts": 32,
            "num_experts_per_tok": 4, "attention_bias": true, "tie_word_embeddings": false, "swiglu_limit": 7.0,
            "rope_scaling": {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": false,
            "original_max_position_embeddings": 4096}})
        }
        _ => return None,
    })
}

/// Gemma 4: the last layer of every `pattern` sees everything.
fn gemma4(hidden: u32, layers: u32, inter: u32, (heads, key_heads): (u32, u32), pattern: u32, more: Value) -> Value {
    let kind = |layer: u32| {
        if (layer + 1).is_multiple_of(pattern) {
            "full_attention"
        } else {
            "sliding_attention"
        }
    };
    let mut config = json!({"model_type": "gemma4_text", "hidden_size": hidden, "num_hidden_layers": layers,
        "intermediate_size": inter, "num_attention_heads": heads, "num_key_value_heads": key_heads, "head_dim": 256,
        "global_head_dim": 512, "rms_norm_eps": 1e-6, "vocab_size": 262_144, "vocab_size_per_layer_input": 262_144,
        "max_position_embeddings": 131_072, "final_logit_softcapping": 30.0, "tie_word_embeddings": true,
        "attention_k_eq_v": false, "enable_moe_block": false, "hidden_activation": "gelu_pytorch_tanh",
        "layer_types": (0..layers).map(kind).collect::<Vec<_>>(),
        "rope_parameters": {
            "full_attention": {"rope_type": "proportional", "rope_theta": 1_000_000.0, "partial_rotary_factor": 0.25},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0}}});
    if let (Some(config), Value::Object(more)) = (config.as_object_mut(), more) {
        config.extend(more);
    }
    config
}

/// The changes of a shape's small variant: 40 to 150 million parameters.
fn small_values(name: &str) -> Value {
    let layers: Vec<&str> = (1..=20)
        .map(|layer| {
            if layer % 5 == 0 {
                "full_attention"
            } else {
                "sliding_attention"
            }
        })
        .collect();
    match name {
        "gemma4-e2b" => {
            json!({"hidden_size": 384, "num_hidden_layers": 20, "intermediate_size": 1536, "num_attention_heads": 4,
            "head_dim": 64, "global_head_dim": 128, "vocab_size": 32_768, "vocab_size_per_layer_input": 32_768,
            "hidden_size_per_layer_input": 64, "num_kv_shared_layers": 10, "layer_types": layers})
        }
        "qwen3-4b" => {
            json!({"hidden_size": 512, "num_hidden_layers": 18, "intermediate_size": 1792, "num_attention_heads": 8,
            "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 32_768})
        }
        "qwen3-30b-a3b" => {
            json!({"hidden_size": 384, "num_hidden_layers": 12, "num_attention_heads": 8, "num_key_value_heads": 2,
            "head_dim": 64, "vocab_size": 32_768, "num_experts": 16, "num_experts_per_tok": 4, "moe_intermediate_size": 256})
        }
        "qwen3.5-4b" => {
            json!({"text_config": {"model_type": "qwen3_5_text", "hidden_size": 512, "num_hidden_layers": 12,
            "intermediate_size": 1536, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64, "rms_norm_eps": 1e-6,
            "vocab_size": 32_768, "max_position_embeddings": 32_768, "full_attention_interval": 4, "linear_num_value_heads": 8,
            "linear_num_key_heads": 4, "linear_key_head_dim": 64, "linear_value_head_dim": 64, "linear_conv_kernel_dim": 4,
            "tie_word_embeddings": true, "attention_bias": false, "hidden_act": "silu",
            "rope_parameters": {"rope_type": "default", "rope_theta": 10_000_000.0, "partial_rotary_factor": 0.25}}})
        }
        "llama-8b" => {
            json!({"hidden_size": 512, "num_hidden_layers": 16, "intermediate_size": 1792, "num_attention_heads": 8,
            "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 32_768})
        }
        "gpt-oss-20b" => {
            json!({"hidden_size": 384, "num_hidden_layers": 12, "intermediate_size": 384, "num_attention_heads": 8,
            "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 32_768, "num_local_experts": 8})
        }
        _ => json!({}),
    }
}
