"""As `shapes`, for families that mlx-vlm has and mlx-lm lacks; all read text alone."""
from shapes import WINDOW, decoder


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
