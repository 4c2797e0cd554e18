//! The predicted memory of a model and MLX's measurement, for models of every kind small enough for a CPU.
#![allow(clippy::unwrap_used)]

use checkpoint::memory::{Backend, Workload};
use checkpoint::ModelConfig;
use engine::MlxEngine;
use protocol::Sampling;
use serde_json::{json, Value};

/// Prompts of these lengths are read: a chunk and a part of one, and several chunks.
const PROMPTS: [usize; 2] = [600, 1300];

/// How far a prediction may be from the truth. Most are within a tenth; how far the host runs ahead of a busy processor
/// decides whether the scores of one layer or of two lie in memory at once, which is a tenth of models as small as
/// these.
const TOLERANCE: f64 = 0.15;

fn shapes() -> [(&'static str, Value); 19] {
    let common = json!({"hidden_size": 384, "num_hidden_layers": 6, "intermediate_size": 1152, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 64, "rms_norm_eps": 1e-6, "vocab_size": 2048, "max_position_embeddings": 8192,
        "rope_theta": 1_000_000.0, "tie_word_embeddings": true, "torch_dtype": "bfloat16", "hidden_act": "silu",
        "eos_token_id": 1});
    let with = |more: Value| {
        let mut config = common.clone();
        config
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        config
    };
    let quantised = json!({"group_size": 64, "bits": 4, "mode": "affine"});
    let full = |layer: u32| {
        if layer % 5 == 4 {
            "full_attention"
        } else {
            "sliding_attention"
        }
    };
    let kinds: Vec<&str> = (0..10).map(full).collect();
    let hybrid = with(
        json!({"full_attention_interval": 3, "linear_num_value_heads": 4, "linear_num_key_heads": 2,
        "linear_key_head_dim": 32, "linear_value_head_dim": 32, "linear_conv_kernel_dim": 4,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10_000_000.0, "partial_rotary_factor": 0.25}}),
    );
    let first = |one, others| {
        (0..6)
            .map(|layer| if layer == 0 { one } else { others })
            .collect::<Vec<&str>>()
    };
    let (blocks, mlps) = (first("full_attention", "minimax_m3_sparse"), first("dense", "sparse"));
    let indexes = ["full", "full", "shared", "shared", "shared", "full"];
    let scans: Vec<&str> = (0..6)
        .map(|layer| if layer % 3 == 2 { "attention" } else { "mamba" })
        .collect();
    [
        (
            "granite_hybrid",
            with(
                json!({"model_type": "granitemoehybrid", "layer_types": scans, "shared_intermediate_size": 1152,
                "num_local_experts": 0, "mamba_n_heads": 12, "mamba_d_head": 64, "mamba_d_state": 64, "mamba_d_conv": 4,
                "mamba_n_groups": 2, "mamba_expand": 2, "residual_multiplier": 0.5, "attention_multiplier": 0.125}),
            ),
        ),
        (
            "nemotron_h",
            with(
                json!({"model_type": "nemotron_h", "hybrid_override_pattern": "M-M-M*-M-M-*-", "mamba_num_heads": 12,
                "mamba_head_dim": 64, "ssm_state_size": 64, "n_groups": 4, "conv_kernel": 4, "tie_word_embeddings": false}),
            ),
        ),
        (
            "falcon_h1",
            with(
                json!({"model_type": "falcon_h1", "mamba_d_ssm": 768, "mamba_n_heads": 12, "mamba_d_head": 64,
                "mamba_d_state": 64, "mamba_d_conv": 4, "mamba_n_groups": 2, "mamba_rms_norm": true,
                "mamba_norm_before_gate": false}),
            ),
        ),
        (
            "mamba",
            with(
                json!({"model_type": "mamba", "intermediate_size": 768, "state_size": 16, "conv_kernel": 4,
                "time_step_rank": 24}),
            ),
        ),
        (
            "recurrent_gemma",
            with(
                json!({"model_type": "recurrent_gemma", "lru_width": 384, "conv1d_width": 4, "num_key_value_heads": 1,
                "head_dim": 96, "attention_window_size": 128, "block_types": ["recurrent", "recurrent", "attention"],
                "intermediate_size": 2304}),
            ),
        ),
        (
            "phi3small",
            with(
                json!({"model_type": "phi3small", "ff_intermediate_size": 1152, "layer_norm_epsilon": 1e-5,
                "dense_attention_every_n_layers": 2, "blocksparse_num_local_blocks": 2}),
            ),
        ),
        (
            "longcat_lite",
            with(
                json!({"model_type": "longcat_flash_ngram", "num_layers": 3, "ffn_hidden_size": 1152, "q_lora_rank": 192,
                "kv_lora_rank": 128, "qk_nope_head_dim": 64, "qk_rope_head_dim": 32, "v_head_dim": 64,
                "n_routed_experts": 6, "zero_expert_num": 2, "moe_topk": 2, "expert_ffn_hidden_size": 384,
                "ngram_vocab_size_ratio": 3, "emb_neighbor_num": 4, "emb_split_num": 2, "tie_word_embeddings": false}),
            ),
        ),
        (
            "rwkv7",
            with(
                json!({"model_type": "rwkv7", "norm_eps": 1e-5, "decay_low_rank_dim": 64, "a_low_rank_dim": 64,
                "v_low_rank_dim": 32, "gate_low_rank_dim": 96, "hidden_act": "sqrelu"}),
            ),
        ),
        (
            "llama, 4 bit",
            with(json!({"model_type": "llama", "tie_word_embeddings": false, "quantization": quantised})),
        ),
        ("qwen3", with(json!({"model_type": "qwen3"}))),
        (
            "gemma4",
            with(
                json!({"model_type": "gemma4_text", "num_hidden_layers": 10, "layer_types": kinds, "num_kv_shared_layers": 4,
                "hidden_size_per_layer_input": 32, "vocab_size_per_layer_input": 2048, "sliding_window": 128,
                "global_head_dim": 128, "use_double_wide_mlp": true, "final_logit_softcapping": 30.0}),
            ),
        ),
        (
            "qwen3_moe",
            with(
                json!({"model_type": "qwen3_moe", "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 384,
                "norm_topk_prob": true, "decoder_sparse_step": 1, "mlp_only_layers": []}),
            ),
        ),
        (
            "gpt_oss",
            with(
                json!({"model_type": "gpt_oss", "num_local_experts": 4, "num_experts_per_tok": 2, "intermediate_size": 384,
                "sliding_window": 128, "swiglu_limit": 7.0, "attention_bias": true, "tie_word_embeddings": false,
                "rope_scaling": {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": false,
                "original_max_position_embeddings": 4096}}),
            ),
        ),
        (
            "afmoe",
            with(
                json!({"model_type": "afmoe", "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 384,
                "num_shared_experts": 1, "num_dense_layers": 1, "sliding_window": 128, "mup_enabled": true}),
            ),
        ),
        (
            "deepseek_v32",
            with(
                json!({"model_type": "deepseek_v32", "num_attention_heads": 8, "num_key_value_heads": 8, "q_lora_rank": 192,
                "kv_lora_rank": 128, "qk_nope_head_dim": 64, "qk_rope_head_dim": 32, "v_head_dim": 64, "index_n_heads": 8,
                "index_head_dim": 64, "index_topk": 256, "num_experts": 8, "n_routed_experts": 8, "num_experts_per_tok": 2,
                "moe_intermediate_size": 384, "n_shared_experts": 1, "first_k_dense_replace": 1}),
            ),
        ),
        (
            "deepseek_v4",
            with(
                json!({"model_type": "deepseek_v4", "num_attention_heads": 8, "num_key_value_heads": 1, "q_lora_rank": 192,
                "qk_rope_head_dim": 32, "o_groups": 2, "o_lora_rank": 96, "sliding_window": 128, "num_hash_layers": 0,
                "compress_ratios": [0, 4, 128, 4, 128, 0], "index_n_heads": 8, "index_head_dim": 64, "index_topk": 64,
                "num_experts": 8, "n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 384,
                "n_shared_experts": 1, "hc_mult": 4, "tie_word_embeddings": false}),
            ),
        ),
        (
            "hy_v4",
            with(
                json!({"model_type": "hy_v4", "num_attention_heads": 8, "num_key_value_heads": 8, "q_lora_rank": 192,
                "kv_lora_rank": 128, "qk_nope_head_dim": 64, "qk_rope_head_dim": 32, "v_head_dim": 64, "index_n_heads": 8,
                "index_head_dim": 64, "index_topk": 256, "num_experts": 8, "n_routed_experts": 8, "num_experts_per_tok": 2,
                "moe_intermediate_size": 384, "n_shared_experts": 1, "first_k_dense_replace": 1,
                "indexer_types": indexes, "hc_mult": 4, "tie_word_embeddings": false}),
            ),
        ),
        (
            "minimax_m3",
            with(
                json!({"model_type": "minimax_m3", "num_attention_heads": 8, "num_key_value_heads": 4, "index_n_heads": 4,
                "index_head_dim": 64, "index_block_size": 32, "index_topk_blocks": 8, "index_local_blocks": 1,
                "layer_types": blocks, "mlp_layer_types": mlps, "rotary_dim": 32, "num_local_experts": 8, "num_experts": 8,
                "num_experts_per_tok": 2, "intermediate_size": 384, "moe_intermediate_size": 384,
                "shared_intermediate_size": 384, "dense_intermediate_size": 1152}),
            ),
        ),
        (
            "qwen3_5",
            json!({"model_type": "qwen3_5", "tie_word_embeddings": true, "torch_dtype": "bfloat16", "text_config": hybrid}),
        ),
    ]
}

/// The part that the prediction for a prompt is off, printed beside what was measured.
pub(crate) fn compared(name: &str, config: &ModelConfig, stored: u64, prompt: usize, peak: u64) -> f64 {
    let workload = Workload {
        context: prompt as u32,
        kv_bits: None,
        backend: Backend::Cpu,
        prefix_cached: false,
    };
    let need = config.estimate_memory(stored, &workload);
    let off = need.total() as f64 / peak as f64 - 1.0;
    let [predicted, weights, keys, working, measured] =
        [need.total(), need.weights, need.kv, need.working, peak].map(|bytes| bytes as f64 / 1e6);
    println!(
        "report: estimate {name:40} {prompt:5} tokens: predicted {predicted:6.1} MB (weights {weights:6.2}, keys {keys:5.2}, working {working:6.2}), measured {measured:6.2} MB, {:+5.1} %",
        off * 100.0
    );
    off
}

#[test]
fn predictions_are_near_what_is_measured() {
    let _alone = crate::ALONE.blocking_lock();
    let (mut wrong, engine) = (Vec::new(), MlxEngine::start());
    for (name, json) in shapes() {
        let folder = tempfile::tempdir().unwrap();
        let model = random_models::write_model(&json, folder.path()).unwrap();
        let config = ModelConfig::read(folder.path()).unwrap();
        let weights = folder.path().join("model-00001-of-00001.safetensors");
        let stored = std::fs::metadata(weights).unwrap().len();
        let measured = engine.bench(model, PROMPTS.to_vec(), 1, Sampling::greedy()).unwrap();
        for (prompt, figures) in PROMPTS.into_iter().zip(measured) {
            let off = compared(name, &config, stored, prompt, figures.peak_bytes);
            if off.abs() > TOLERANCE {
                wrong.push((name, prompt, off));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
