"""As `shapes`, for families that mlx-vlm has and mlx-lm lacks; all read text alone."""
from shapes import WINDOW, decoder, qwen3_5_moe

# MiniMax M3's index.
BLOCKS = {
    "use_sparse_attention": True,
    "sparse_index_dim": 32,
    "sparse_num_index_heads": 2,
    "sparse_topk_blocks": 4,
    "sparse_block_size": 7,
    "sparse_disable_index_value": [0, 1, 1, 1],
    "sparse_score_type": "max",
    "sparse_init_block": 0,
    "sparse_local_block": 1,
    "sparse_attention_freq": [0, 1, 1, 1],
}


def k2_horizon(**values):
    return decoder("k2_horizon", "K2HorizonForCausalLM", **{"head_dim": 32, "attention_bias": False, "rope_theta": 10000000.0, **values})


def cohere2_moe(**values):
    defaults = {
        "head_dim": 32,
        "num_hidden_layers": 4,
        "intermediate_size": 64,
        "layer_norm_eps": 1e-4,
        "logit_scale": 0.25,
        "sliding_window": WINDOW,
        "sliding_window_pattern": 2,
        "num_experts": 8,
        "num_experts_per_tok": 3,
        "num_shared_experts": 2,
        "first_k_dense_replace": 1,
        "prefix_dense_intermediate_size": 192,
        "expert_selection_fn": "sigmoid",
        "shared_expert_combination_strategy": "average",
        "attention_bias": False,
        "layer_norm_bias": False,
        "tie_word_embeddings": True,
    }
    config = decoder("cohere2_moe", "Cohere2MoeForCausalLM", **{**defaults, **values})
    if "rms_norm_eps" not in values:
        del config["rms_norm_eps"]
    return config


def kolibri1(**values):
    defaults = {
        "head_dim": 32,
        "num_hidden_layers": 4,
        "sliding_window": WINDOW,
        "layer_types": ["sliding_attention", "sliding_attention", "full_attention", "sliding_attention"],
        "num_experts": 8,
        "num_experts_per_tok": 3,
        "moe_intermediate_size": 64,
        "shared_expert_intermediate_size": 128,
        "norm_topk_prob": True,
        "attention_bias": False,
    }
    config = decoder("kolibri1", "Kolibri1ForCausalLM", **{**defaults, **values})
    del config["intermediate_size"]
    return config


# Other numbers than usual.
HY_V4_STREAMS = {
    "hc_mult": 2,
    "hc_magnitude": 1.5,
    "hc_eps": 1e-3,
    "rms_norm_eps": 1e-4,
    "n_shared_experts": 2,
    "n_group": 4,
    "topk_group": 2,
    "indexer_types": ["full", "shared", "shared", "full"],
}


def hy_v4(**values):
    defaults = {
        "num_key_value_heads": 4,
        "num_hidden_layers": 4,
        "q_lora_rank": 64,
        "kv_lora_rank": 96,
        "qk_nope_head_dim": 32,
        "qk_rope_head_dim": 16,
        "v_head_dim": 64,
        "index_head_dim": 48,
        "index_n_heads": 3,
        "index_topk": 24,
        "n_routed_experts": 8,
        "n_shared_experts": 1,
        "num_experts_per_tok": 3,
        "moe_intermediate_size": 64,
        "first_k_dense_replace": 1,
        "moe_layer_freq": 1,
        "n_group": 1,
        "topk_group": 1,
        "norm_topk_prob": True,
        "routed_scaling_factor": 2.827,
        "swiglu_limit": 1.0,
        "rope_theta": 10000000.0,
        "hc_mult": 4,
        "hc_eps": 1e-6,
        "hc_magnitude": 2.0,
    }
    return decoder("hy_v4", "HYV4ForCausalLM", **{**defaults, **values})


def deepseek_v4(**values):
    defaults = {
        "hidden_size": 128,
        "num_hidden_layers": 5,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "head_dim": 64,
        "q_lora_rank": 64,
        "qk_rope_head_dim": 16,
        "o_groups": 2,
        "o_lora_rank": 32,
        "sliding_window": WINDOW,
        "compress_ratios": [0, 4, 8, 4, 0],
        "compress_rope_theta": 160000.0,
        "rope_scaling": {"type": "yarn", "factor": 4.0, "beta_fast": 32, "beta_slow": 1, "original_max_position_embeddings": 64},
        "index_head_dim": 32,
        # Enough that hardly any position scores nothing: which of those are chosen would be anybody's choice.
        "index_n_heads": 16,
        "index_topk": 8,
        "n_routed_experts": 8,
        "n_shared_experts": 1,
        "num_experts_per_tok": 3,
        "num_hash_layers": 2,
        "moe_intermediate_size": 64,
        "norm_topk_prob": True,
        "routed_scaling_factor": 1.5,
        "scoring_func": "sqrtsoftplus",
        "swiglu_limit": 1.0,
        "hc_mult": 4,
        "hc_sinkhorn_iters": 20,
        "hc_eps": 1e-6,
        "tie_word_embeddings": False,
    }
    return decoder("deepseek_v4", "DeepseekV4ForCausalLM", **{**defaults, **values})


def hrm_text(**values):
    defaults = {
        "num_hidden_layers": 2,
        "num_key_value_heads": 4,
        "head_dim": 32,
        "attention_bias": False,
        "mlp_bias": False,
        "H_cycles": 2,
        "L_cycles": 3,
        "L_bp_cycles": [2],
        "embedding_scale": 12.0,
        "prefix_lm": True,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
        "tie_word_embeddings": False,
    }
    return decoder("hrm_text", "HrmTextForCausalLM", **{**defaults, **values})


def longcat_sparse(**values):
    """LongCat Flash with an index, whose shapes are those of the one without."""
    # That file reads this one.
    from expert_shapes import longcat_flash

    index = {
        "attention_method": "LSA",
        # Enough that hardly any position scores nothing.
        "index_n_heads": 16,
        "index_head_dim": 32,
        "index_topk": 24,
        "index_init_tokens": 2,
        "index_local_tokens": 5,
        "index_k_norm_type": "rms",
        "indexer_rope_interleave": True,
        "oe_vocab_size_ratio": 3,
        "oe_neighbor_num": 4,
        "oe_split_num": 2,
        "rope_theta": 1000000.0,
    }
    return {**longcat_flash(), "model_type": "longcat_flash_sparse", **index, **values}


def xing4_0(**values):
    defaults = {
        "num_key_value_heads": 4,
        "q_lora_rank": 64,
        "kv_lora_rank": 96,
        "qk_nope_head_dim": 32,
        "qk_rope_head_dim": 16,
        "v_head_dim": 64,
        "n_routed_experts": 8,
        "n_shared_experts": 1,
        "num_experts_per_tok": 3,
        "moe_intermediate_size": 64,
        "first_k_dense_replace": 1,
        "moe_layer_freq": 1,
        "n_group": 4,
        "topk_group": 2,
        "norm_topk_prob": True,
        "routed_scaling_factor": 2.5,
        "topk_method": "noaux_tc",
        "scoring_func": "sigmoid",
        "attention_bias": False,
        "rope_scaling": None,
        "hc_mult": 4,
        "hc_sinkhorn_iters": 20,
        "hc_eps": 1e-6,
        "mhc_h_res_clamp_min": -30.0,
        "mhc_h_res_clamp_max": 30.0,
    }
    return decoder("xing4_0", "Xing4ForCausalLM", **{**defaults, **values})


def minimax_m3_text(**values):
    """MiniMax M3's language part, which is a whole file for mlx-vlm."""
    defaults = {
        "head_dim": 32,
        "num_hidden_layers": 4,
        "intermediate_size": 64,
        "dense_intermediate_size": 192,
        "shared_intermediate_size": 64,
        "rotary_dim": 16,
        "partial_rotary_factor": 0.5,
        "rope_theta": 5000000,
        "hidden_act": "swigluoai",
        "swiglu_alpha": 1.702,
        "swiglu_limit": 7.0,
        "use_qk_norm": True,
        "qk_norm_type": "per_head",
        "use_gemma_norm": True,
        "num_local_experts": 8,
        "num_experts_per_tok": 3,
        "n_shared_experts": 1,
        "scoring_func": "sigmoid",
        "use_routing_bias": True,
        "routed_scaling_factor": 2.0,
        "moe_layer_freq": [0, 1, 1, 1],
        "sparse_attention_config": BLOCKS,
        "attention_output_gate": False,
    }
    return decoder("minimax_m3", "MiniMaxM3SparseForCausalLM", **{**defaults, **values})


# Other numbers than usual.
QWEN4_TWO_STREAMS = {
    "hc_count": 2,
    "hc_lowrank": 17,
    "output_gate_type": "silu",
    "rms_norm_eps": 1e-4,
    "indexer_compress_ratio": 3,
    "indexer_budget": 15,
    "indexer_n_heads": 9,
    "ple_layer_ids": [2],
    "ngram_size": 2,
    "heads_per_ngram": 4,
    "ple_conv_kernel_size": 3,
    "split_ngram_parts": 1,
    "num_hidden_layers": 3,
    "layer_types": ["full_attention", "linear_attention", "full_attention"],
}


def qwen4_exp(**values):
    """Qwen 3.5 with experts between several streams, with an index and tables of runs."""
    defaults = {
        "layer_types": ["linear_attention", "linear_attention", "qwen_sparse_attention", "linear_attention"],
        "hc_count": 4,
        "hc_lowrank": 24,
        "ple_layer_ids": [1, 4],
        "ple_embed_dim": 64,
        "ngram_size": 3,
        "heads_per_ngram": 2,
        "ngram_vocab_size_base": 50,
        "make_ngram_vocab_size_divisible_by": 16,
        "split_ngram_parts": 5,
        "indexer_n_heads": 8,
        "indexer_head_dim": 16,
        "indexer_budget": 24,
        "indexer_compress_ratio": 4,
        "eos_token_id": 5,
    }
    config = qwen3_5_moe(**{**defaults, **values})
    config["model_type"], config["architectures"] = "qwen4_exp", ["Qwen4ExpForConditionalGeneration"]
    config["text_config"]["model_type"] = "qwen4_exp_text"
    config["vision_config"] = {"model_type": "qwen4_exp", "deepstack_visual_indexes": []}
    return config
