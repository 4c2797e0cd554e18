"""As `shapes`, for families with states in place of keys."""
import math

from shapes import CONTEXT, EPS, VOCABULARY, WINDOW, decoder

# mlx-lm's own limits of steps differ from transformers', so these are written out.
ANY_STEP = [0.0, 1000.0]


def granite_hybrid(**values):
    scales = {"embedding_multiplier": 12.0, "attention_multiplier": 0.25, "residual_multiplier": 0.5, "logits_scaling": 2.0}
    mamba = {
        "mamba_n_heads": 8,
        "mamba_d_head": 32,
        "mamba_d_state": 24,
        "mamba_d_conv": 4,
        "mamba_n_groups": 2,
        "mamba_expand": 2,
        "mamba_conv_bias": True,
        "mamba_proj_bias": False,
        "mamba_chunk_size": 256,
        "time_step_limit": ANY_STEP,
    }
    defaults = {
        "num_hidden_layers": 4,
        "layer_types": ["mamba", "mamba", "attention", "mamba"],
        "position_embedding_type": "nope",
        "intermediate_size": 192,
        "shared_intermediate_size": 192,
        "num_local_experts": 0,
        "num_experts_per_tok": 0,
        "tie_word_embeddings": True,
        "attention_bias": False,
    }
    return decoder("granitemoehybrid", "GraniteMoeHybridForCausalLM", **{**defaults, **scales, **mamba, **values})


def granite_hybrid_experts(**values):
    experts = {"num_local_experts": 8, "num_experts_per_tok": 3, "intermediate_size": 64, "shared_intermediate_size": 128}
    return granite_hybrid(**{**experts, **values})


def falcon_h1(**values):
    # Factors that no published model lacks, none of them the same as another.
    factors = {
        "embedding_multiplier": 5.5,
        "lm_head_multiplier": 0.2,
        "key_multiplier": 0.6,
        "attention_in_multiplier": 1.0,
        "attention_out_multiplier": 0.9,
        "ssm_in_multiplier": 1.25,
        "ssm_out_multiplier": 0.7,
        "ssm_multipliers": [0.8, 0.9, 1.1, 0.75, 1.2],
        "mlp_multipliers": [0.88, 0.58],
    }
    mamba = {
        "mamba_d_ssm": 192,
        "mamba_n_heads": 6,
        "mamba_d_head": 32,
        "mamba_d_state": 24,
        "mamba_d_conv": 4,
        "mamba_n_groups": 2,
        "mamba_expand": 2,
        "mamba_chunk_size": 128,
        "mamba_conv_bias": True,
        "mamba_proj_bias": False,
        "mamba_rms_norm": False,
        "mamba_norm_before_gate": False,
    }
    defaults = {"head_dim": 32, "rope_theta": 100000000000.0, "attention_bias": False, "mlp_bias": False, "projectors_bias": False}
    return decoder("falcon_h1", "FalconH1ForCausalLM", **{**defaults, **factors, **mamba, **values})


def nemotron_h(**values):
    # Every part, and two of one kind in a row.
    defaults = {
        "hybrid_override_pattern": "MM-*M-",
        "num_hidden_layers": 6,
        "head_dim": 32,
        "mamba_num_heads": 8,
        "mamba_head_dim": 24,
        "ssm_state_size": 40,
        "n_groups": 4,
        "conv_kernel": 4,
        "mamba_hidden_act": "silu",
        "mlp_hidden_act": "relu2",
        "use_conv_bias": True,
        "mamba_proj_bias": False,
        "attention_bias": False,
        "mlp_bias": False,
        "use_bias": False,
        "layer_norm_epsilon": EPS,
        "time_step_limit": [0.0, math.inf],
    }
    config = decoder("nemotron_h", "NemotronHForCausalLM", **{**defaults, **values})
    del config["rms_norm_eps"], config["rope_theta"]
    return config


def nemotron_h_experts(**values):
    experts = {
        "hybrid_override_pattern": "MEM*EM",
        "n_routed_experts": 8,
        "num_experts_per_tok": 3,
        "n_shared_experts": 1,
        "moe_intermediate_size": 64,
        "moe_shared_expert_intermediate_size": 128,
        "n_group": 1,
        "topk_group": 1,
        "norm_topk_prob": True,
        "routed_scaling_factor": 2.5,
    }
    return nemotron_h(**{**experts, **values})


def mamba2(**values):
    config = {
        "architectures": ["Mamba2ForCausalLM"],
        "model_type": "mamba2",
        "hidden_size": 128,
        "num_hidden_layers": 4,
        "num_heads": 8,
        "head_dim": 32,
        "expand": 2,
        "intermediate_size": 256,
        "state_size": 24,
        "conv_kernel": 4,
        "n_groups": 2,
        "chunk_size": 256,
        "use_bias": False,
        "use_conv_bias": True,
        "hidden_act": "silu",
        # mlx-lm leaves out that of the norms before layers, whose default this is.
        "layer_norm_epsilon": 1e-5,
        "time_step_rank": "auto",
        "time_step_limit": [0.0, math.inf],
        "tie_word_embeddings": False,
        "vocab_size": VOCABULARY,
    }
    return {**config, **values}


def olmo_hybrid(**values):
    defaults = {
        "num_hidden_layers": 4,
        "linear_num_key_heads": 3,
        "linear_num_value_heads": 6,
        "linear_key_head_dim": 24,
        "linear_value_head_dim": 32,
        "linear_conv_kernel_dim": 4,
        "linear_allow_neg_eigval": True,
        "layer_types": ["linear_attention", "full_attention", "linear_attention", "linear_attention"],
        "attention_bias": False,
        # Without one, no position turns.
        "rope_parameters": {"rope_theta": None, "rope_type": "default"},
    }
    config = decoder("olmo_hybrid", "OlmoHybridForCausalLM", **{**defaults, **values})
    del config["rope_theta"]
    return config


def mamba(**values):
    config = {
        "architectures": ["MambaForCausalLM"],
        "model_type": "mamba",
        "hidden_size": 128,
        "num_hidden_layers": 4,
        "expand": 2,
        "intermediate_size": 256,
        "state_size": 16,
        "conv_kernel": 4,
        "use_bias": False,
        "use_conv_bias": True,
        "hidden_act": "silu",
        # mlx-lm leaves it out; this is the default of what it has instead.
        "layer_norm_epsilon": 1e-5,
        "time_step_rank": 40,
        "vocab_size": VOCABULARY,
    }
    return {**config, **values}


def jamba(**values):
    defaults = {
        "num_hidden_layers": 4,
        "attn_layer_period": 4,
        "attn_layer_offset": 2,
        "expert_layer_period": 2,
        "expert_layer_offset": 1,
        "num_experts": 1,
        "num_experts_per_tok": 1,
        "mamba_d_conv": 4,
        "mamba_d_state": 12,
        "mamba_expand": 2,
        "mamba_dt_rank": "auto",
        "mamba_conv_bias": True,
        "mamba_proj_bias": False,
    }
    config = decoder("jamba", "JambaForCausalLM", **{**defaults, **values})
    del config["rope_theta"]
    return config


def recurrent_gemma(**values):
    defaults = {
        "num_hidden_layers": 4,
        "intermediate_size": 384,
        "num_key_value_heads": 1,
        "lru_width": 128,
        "conv1d_width": 4,
        # Smaller than real ones, so that one that is not applied shows.
        "attention_window_size": WINDOW,
        "logits_soft_cap": 6.0,
        "attention_bias": False,
        "hidden_activation": "gelu_pytorch_tanh",
        "partial_rotary_factor": 0.5,
        "block_types": ["recurrent", "recurrent", "attention"],
        # mlx-lm leaves it out in layers; this is the default of what it has instead.
        "rms_norm_eps": 1e-5,
    }
    return decoder("recurrent_gemma", "RecurrentGemmaForCausalLM", **{**defaults, **values})


def kimi_linear(**values):
    defaults = {
        "num_hidden_layers": 4,
        "head_dim": 32,
        "linear_attn_config": {"num_heads": 3, "head_dim": 24, "short_conv_kernel_size": 4, "kda_layers": [1, 2, 4], "full_attn_layers": [3]},
        "model_max_length": CONTEXT,
        "kv_lora_rank": 96,
        "qk_nope_head_dim": 32,
        "qk_rope_head_dim": 16,
        "v_head_dim": 64,
        "mla_use_nope": True,
        "num_experts": 8,
        "num_experts_per_token": 3,
        "num_shared_experts": 1,
        "moe_intermediate_size": 64,
        "moe_router_activation_func": "sigmoid",
        "moe_renormalize": True,
        "routed_scaling_factor": 2.5,
        "first_k_dense_replace": 1,
        "moe_layer_freq": 1,
        "num_expert_group": 4,
        "topk_group": 2,
    }
    return decoder("kimi_linear", "KimiLinearForCausalLM", **{**defaults, **values})


def _bailing_hybrid(model_type, architecture, values):
    defaults = {
        "num_hidden_layers": 5,
        "head_dim": 32,
        "layer_group_size": 2,
        "num_experts": 8,
        "num_experts_per_tok": 3,
        "num_shared_experts": 1,
        "moe_intermediate_size": 64,
        "moe_shared_expert_intermediate_size": 128,
        "first_k_dense_replace": 1,
        "norm_topk_prob": True,
        "routed_scaling_factor": 2.5,
        "score_function": "sigmoid",
        "moe_router_enable_expert_bias": True,
        "n_group": 4,
        "topk_group": 2,
        "use_qk_norm": True,
        "use_qkv_bias": False,
        "use_bias": False,
        "partial_rotary_factor": 0.5,
    }
    return decoder(model_type, architecture, **{**defaults, **values})


def bailing_moe_linear(**values):
    defaults = {"group_norm_size": 4, "hidden_size": 128}
    return _bailing_hybrid("bailing_moe_linear", "BailingMoeLinearV2ForCausalLM", {**defaults, **values})


LATENTS = {"q_lora_rank": 64, "kv_lora_rank": 96, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 64, "rope_interleave": True}


def bailing_hybrid(**values):
    defaults = {"group_norm_size": 2}
    return _bailing_hybrid("bailing_hybrid", "BailingMoeV2_5ForCausalLM", {**LATENTS, **defaults, **values})


def bailing_moe_v3(**values):
    defaults = {"short_conv_kernel_size": 4, "kda_lower_bound": -5.0, "kda_safe_gate": True, "no_kda_lora": True, "layer_group_size": 3}
    return _bailing_hybrid("bailing_hybrid", "BailingMoeV3ForCausalLM", {**LATENTS, **defaults, **values})


def plamo2(**values):
    defaults = {
        "num_hidden_layers": 4,
        "hidden_size_per_head": 32,
        "attention_window_size": 2048,
        "mamba_d_state": 24,
        "mamba_d_conv": 4,
        "mamba_num_heads": 6,
        "mamba_step": 2,
        "mamba_enabled": True,
        "tie_word_embeddings": True,
    }
    config = decoder("plamo2", "Plamo2ForCausalLM", **{**defaults, **values})
    # mlx-lm and the original have both fixed.
    return {**config, "rms_norm_eps": 1e-6, "rope_theta": 10000.0}


def gear(**values):
    defaults = {
        "head_dim": 32,
        "num_hidden_layers": 5,
        "layer_types": ["conv_mixer", "sliding_attention", "conv_mixer", "full_attention", "conv_mixer"],
        "hidden_activation": "gelu_pytorch_tanh",
        "query_pre_attn_scalar": 24,
        "sliding_window": WINDOW,
        "conv_L_cache": 3,
        "rope_theta": 1000000.0,
        "rope_local_base_freq": 10000.0,
        "tie_word_embeddings": True,
        "attention_bias": False,
    }
    return decoder("gear", "GearForCausalLM", **{**defaults, **values})


def rwkv7(**values):
    defaults = {
        "hidden_size": 96,
        "head_dim": 32,
        "norm_eps": 1e-5,
        "a_low_rank_dim": 24,
        "v_low_rank_dim": 10,
        "gate_low_rank_dim": 40,
        "decay_low_rank_dim": 20,
        "hidden_act": "sqrelu",
        "norm_first": True,
        "norm_bias": True,
    }
    config = decoder("rwkv7", "RWKV7ForCausalLM", **{**defaults, **values})
    for name in ("num_attention_heads", "num_key_value_heads", "rms_norm_eps", "rope_theta"):
        del config[name]
    return config
