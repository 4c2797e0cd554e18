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
