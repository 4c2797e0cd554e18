"""As `shapes`, for the younger families, most of which have experts."""
from shapes import CONTEXT, EPS, VOCABULARY, WINDOW, decoder, deepseek_v3, glm4_moe, ministral3, qwen3_moe
from vlm_shapes import minimax_m3_text


def ernie4_5_moe(**values):
    experts = {
        "head_dim": 32,
        "use_bias": False,
        "rope_theta": 500000.0,
        "moe_num_experts": 8,
        "moe_k": 3,
        "moe_intermediate_size": 64,
        "moe_num_shared_experts": 2,
        "moe_layer_start_index": 1,
        "moe_layer_interval": 1,
        "moe_use_aux_free": True,
    }
    return decoder("ernie4_5_moe", "Ernie4_5_MoeForCausalLM", **{**experts, **values})


def bailing_moe(**values):
    experts = {
        "num_experts": 8,
        "num_experts_per_tok": 3,
        "num_shared_experts": 1,
        "moe_intermediate_size": 64,
        "norm_topk_prob": True,
        "first_k_dense_replace": 1,
        "use_qkv_bias": False,
        "use_qk_norm": True,
        "partial_rotary_factor": 0.5,
        "moe_router_enable_expert_bias": True,
        "routed_scaling_factor": 2.5,
        "score_function": "sigmoid",
        "n_group": 4,
        "topk_group": 2,
        "rope_theta": 600000.0,
    }
    return decoder("bailing_moe", "BailingMoeV2ForCausalLM", **{**experts, **values})


def exaone_moe(**values):
    experts = {
        "head_dim": 32,
        "num_hidden_layers": 4,
        "sliding_window": WINDOW,
        "layer_types": ["sliding_attention"] * 3 + ["full_attention"],
        "is_moe_layer": [False, True, True, True],
        "num_experts": 8,
        "num_experts_per_tok": 3,
        "num_shared_experts": 1,
        "moe_intermediate_size": 64,
        "routed_scaling_factor": 2.5,
        "n_group": 1,
        "topk_group": 1,
        "norm_topk_prob": True,
    }
    return decoder("exaone_moe", "ExaoneMoEForCausalLM", **{**experts, **values})


def solar_open(**values):
    whole = {name: value for name, value in glm4_moe().items() if name != "use_qk_norm"}
    defaults = {"attention_bias": False, "partial_rotary_factor": 1.0, "routed_scaling_factor": 1.25, "scoring_func": "sigmoid"}
    return {**whole, "architectures": ["SolarOpenForCausalLM"], "model_type": "solar_open", **defaults, **values}


def mellum(**values):
    ropes = {
        "full_attention": {
            "rope_type": "yarn",
            "rope_theta": 500000.0,
            "factor": 8.0,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "original_max_position_embeddings": 64,
        },
        "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
    }
    defaults = {
        "architectures": ["MellumForCausalLM"],
        "model_type": "mellum",
        "num_hidden_layers": 4,
        "num_experts_per_tok": 3,
        "sliding_window": WINDOW,
        "layer_types": ["sliding_attention"] * 3 + ["full_attention"],
        "rope_parameters": ropes,
    }
    config = {**qwen3_moe(), **defaults, **values}
    for name in ("rope_theta", "rope_scaling", "mlp_only_layers", "decoder_sparse_step"):
        del config[name]
    return config


def minimax_m2(**values):
    experts = {
        "head_dim": 32,
        "intermediate_size": 64,
        "num_local_experts": 8,
        "num_experts_per_tok": 3,
        "rotary_dim": 20,
        "shared_intermediate_size": 0,
        "scoring_func": "sigmoid",
        "use_qk_norm": True,
        "qk_norm_type": "per_layer",
        "use_routing_bias": True,
        "attn_type_list": [1, 1, 1],
        "rope_theta": 5000000,
    }
    return decoder("minimax_m2", "MiniMaxM2ForCausalLM", **{**experts, **values})


def hunyuan_moe(**values):
    scaling = {"type": "dynamic", "alpha": 1000.0, "factor": 1.0, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0}
    experts = {
        "attention_bias": False,
        "tie_word_embeddings": True,
        "num_experts": 8,
        "moe_topk": [3, 3, 2],
        "num_shared_expert": [1, 1, 1],
        "moe_intermediate_size": [64, 64, 128],
        "use_mixed_mlp_moe": True,
        "use_qk_norm": True,
        "use_cla": False,
        "cla_share_factor": 2,
        "rope_scaling": scaling,
    }
    return decoder("hunyuan", "HunYuanMoEV1ForCausalLM", **{**experts, **values})


def afmoe(**values):
    experts = {
        "head_dim": 32,
        "num_hidden_layers": 4,
        "sliding_window": WINDOW,
        "layer_types": ["sliding_attention"] * 3 + ["full_attention"],
        "num_experts": 8,
        "num_experts_per_tok": 3,
        "num_shared_experts": 1,
        "num_dense_layers": 1,
        "moe_intermediate_size": 64,
        "route_norm": True,
        "route_scale": 2.826,
        "score_func": "sigmoid",
        "n_group": 1,
        "topk_group": 1,
        "mup_enabled": True,
    }
    return decoder("afmoe", "AfmoeForCausalLM", **{**experts, **values})


def laguna(**values):
    ropes = {
        "full_attention": {
            "rope_type": "yarn",
            "rope_theta": 500000.0,
            "factor": 8.0,
            "beta_fast": 64.0,
            "beta_slow": 1.0,
            "original_max_position_embeddings": 64,
            "partial_rotary_factor": 0.5,
        },
        "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 1.0},
    }
    experts = {
        "head_dim": 32,
        "num_hidden_layers": 4,
        "num_attention_heads_per_layer": [4, 6, 6, 6],
        "sliding_window": WINDOW,
        "layer_types": ["full_attention"] + ["sliding_attention"] * 3,
        "mlp_layer_types": ["dense", "sparse", "sparse", "sparse"],
        "rope_parameters": ropes,
        "gating": True,
        "num_experts": 8,
        "num_experts_per_tok": 3,
        "moe_intermediate_size": 64,
        "shared_expert_intermediate_size": 128,
        "moe_routed_scaling_factor": 2.5,
        "moe_router_logit_softcapping": 0.0,
    }
    config = decoder("laguna", "LagunaForCausalLM", **{**experts, **values})
    del config["rope_theta"]
    return config


def klear(**values):
    experts = {
        "attention_bias": False,
        "mlp_only_layers": [1],
        "decoder_sparse_step": 1,
        "num_experts": 8,
        "num_experts_per_tok": 3,
        "n_shared_experts": 1,
        "moe_intermediate_size": 64,
        "norm_topk_prob": True,
        "rope_theta": 500000.0,
    }
    return decoder("Klear", "KlearMoeForCausalLM", **{**experts, **values})


def phimoe(**values):
    scaling = {
        "type": "longrope",
        "short_factor": [1.0 + 0.05 * index for index in range(16)],
        "long_factor": [1.0 + 0.37 * index for index in range(16)],
        "short_mscale": 1.1,
        "long_mscale": 1.05,
        "original_max_position_embeddings": 64,
    }
    experts = {
        "intermediate_size": 64,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
        "attention_bias": True,
        "lm_head_bias": True,
        # Larger than real ones, so that other experts come near.
        "router_jitter_noise": 0.4,
        "original_max_position_embeddings": 64,
        "sliding_window": 512,
        "rope_scaling": scaling,
    }
    return decoder("phimoe", "PhiMoEForCausalLM", **{**experts, **values})


def mistral4(**values):
    """DeepSeek's shape; groups of experts count as their two best."""
    defaults = {"architectures": ["Mistral4ForCausalLM"], "model_type": "mistral4", "routed_scaling_factor": 1.0, "n_group": 1, "topk_group": 1}
    rope = {**ministral3()["rope_parameters"], "partial_rotary_factor": 0.5}
    config = {**deepseek_v3(), **defaults, "rope_parameters": rope, "rope_interleave": True, "n_shared_experts": 1, **values}
    for name in ("topk_method", "scoring_func", "rope_scaling", "rope_theta"):
        del config[name]
    return config


def muse_glimmer(**values):
    defaults = {
        "head_dim": 32,
        "num_hidden_layers": 4,
        "post_norm_eps": 1e-2,
        "sliding_window": WINDOW,
        "layer_types": ["sliding_attention"] * 3 + ["full_attention"],
        "qk_scale_factor": 1.7,
        "rope_parameters": {"rope_type": "default", "rope_theta": 500000.0},
        "output_multiplier": 0.4,
        # Smaller than real ones, so that one that is not applied shows.
        "final_logit_softcapping": 6.0,
    }
    config = decoder("muse_glimmer", "MuseGlimmerForConditionalGeneration", **{**defaults, **values})
    del config["rope_theta"]
    return config


def spark2_5(**values):
    ropes = {
        "full_attention": {"rope_theta": 500000.0, "partial_rotary_factor": 0.5},
        "sliding_attention": {"rope_theta": 10000.0, "partial_rotary_factor": 1.0},
    }
    defaults = {
        "head_dim": 32,
        "num_hidden_layers": 4,
        "num_attention_heads": 6,
        "sliding_window": WINDOW,
        "layer_types": ["sliding_attention"] * 3 + ["full_attention"],
        "rope_parameters": ropes,
        "hidden_act": "gelu",
        "gate_attn_act_mode": "sigmoid",
        "headwise_attn_output_gate": True,
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": True,
    }
    config = decoder("spark2_5", "Spark2_5ForCausalLM", **{**defaults, **values})
    del config["rope_theta"]
    return config


def step3p5(**values):
    kinds = ["full_attention"] + ["sliding_attention"] * 3
    experts = {
        "head_dim": 32,
        "num_hidden_layers": 4,
        "num_attention_groups": 2,
        "sliding_window": WINDOW,
        # Real lists go on with layers that guess tokens ahead.
        "layer_types": kinds + ["sliding_attention"],
        "attention_other_setting": {"attention_type": "sliding_attention", "num_attention_heads": 6, "num_attention_groups": 3, "head_dim": 32},
        "rope_theta": [500000.0, 10000.0, 10000.0, 10000.0, 10000.0],
        "partial_rotary_factors": [0.5, 1.0, 1.0, 1.0, 1.0],
        "rope_scaling": {"rope_type": "llama3", "factor": 2.0, "low_freq_factor": 1.0, "high_freq_factor": 32.0, "original_max_position_embeddings": 128},
        "yarn_only_types": ["full_attention"],
        "use_head_wise_attn_gate": True,
        "moe_num_experts": 8,
        "moe_top_k": 3,
        "moe_intermediate_size": 64,
        "share_expert_dim": 128,
        "moe_layers_enum": "1,2,3",
        "moe_router_scaling_factor": 3.0,
        "norm_expert_weight": True,
        "swiglu_limits": [0.0, 0.0, 0.5, 0.7, 0.0],
        "swiglu_limits_shared": [0.0, 0.0, 0.0, 0.6, 0.0],
    }
    config = decoder("step3p5", "Step3p5ForCausalLM", **{**experts, **values})
    del config["num_key_value_heads"]
    return config


def dbrx(**values):
    config = decoder("dbrx", "DbrxForCausalLM")
    kept = ("architectures", "model_type", "vocab_size", "tie_word_embeddings")
    shape = {
        "d_model": 128,
        "n_heads": 4,
        "n_layers": 3,
        "attn_config": {"clip_qkv": 1.5, "kv_n_heads": 2, "rope_theta": 500000},
        "ffn_config": {"ffn_hidden_size": 64, "moe_num_experts": 8, "moe_top_k": 3},
    }
    return {**{name: config[name] for name in kept}, **shape, **values}


def llama4(**values):
    """A chunk is longer than those in which tests read, and shorter than their prompts."""
    text = {
        "model_type": "llama4_text",
        "hidden_size": 64,
        "head_dim": 32,
        "intermediate_size": 64,
        "intermediate_size_mlp": 192,
        "num_hidden_layers": 5,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        # mlx-lm norms heads with this one, whatever the config says.
        "rms_norm_eps": 1e-6,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": CONTEXT,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "attention_bias": False,
        "attention_chunk_size": 24,
        "interleave_moe_layer_step": 1,
        "num_local_experts": 8,
        "num_experts_per_tok": 1,
        "use_qk_norm": True,
        "no_rope_layers": [],
        "rope_theta": 500000.0,
        "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 1.0, "original_max_position_embeddings": 64},
        "attn_temperature_tuning": 4,
        # Smaller than real ones, so that queries grow within the prompt.
        "floor_scale": 16,
        "attn_scale": 0.1,
        **values,
    }
    return {
        "architectures": ["Llama4ForConditionalGeneration"],
        "model_type": "llama4",
        "text_config": text,
        "vision_config": {"model_type": "llama4_vision_model", "hidden_size": 32},
    }


def llama4_text(**values):
    """MobileLLM-R1: dense, and all of it in one chunk."""
    defaults = {
        "head_dim": 32,
        "intermediate_size": 64,
        "intermediate_size_mlp": 192,
        "num_hidden_layers": 4,
        "attention_chunk_size": 512,
        "interleave_moe_layer_step": 0,
        "num_local_experts": 0,
        # mlx-lm norms heads without positions as well.
        "no_rope_layers": [1, 1, 1, 1],
        "use_qk_norm": True,
        "attn_temperature_tuning": False,
        "tie_word_embeddings": True,
        "rope_theta": 500000.0,
    }
    return decoder("llama4_text", "Llama4ForCausalLM", **{**defaults, **values})


def mimo_v2_flash(**values):
    experts = {
        "head_dim": 64,
        "v_head_dim": 32,
        "swa_num_attention_heads": 6,
        "swa_num_key_value_heads": 3,
        "swa_head_dim": 64,
        "swa_v_head_dim": 32,
        "num_hidden_layers": 4,
        "hybrid_layer_pattern": [0, 1, 1, 0],
        "sliding_window_size": WINDOW,
        "sliding_window": WINDOW,
        "add_swa_attention_sink_bias": True,
        "add_full_attention_sink_bias": False,
        "attention_value_scale": 0.707,
        "layernorm_epsilon": EPS,
        "partial_rotary_factor": 0.38,
        "rope_theta": 5000000.0,
        "swa_rope_theta": 10000.0,
        "moe_layer_freq": [0, 1, 1, 1],
        "moe_intermediate_size": 64,
        "n_routed_experts": 8,
        "n_shared_experts": None,
        "num_experts_per_tok": 3,
        "n_group": 1,
        "topk_group": 1,
        "topk_method": "noaux_tc",
        "scoring_func": "sigmoid",
        "norm_topk_prob": True,
        "routed_scaling_factor": None,
    }
    config = decoder("mimo_v2_flash", "MiMoV2FlashForCausalLM", **{**experts, **values})
    del config["rms_norm_eps"]
    return config


def deepseek_v32(**values):
    """DeepSeek V3.2: an index chooses fewer positions than a prompt has."""
    index = {
        "architectures": ["DeepseekV32ForCausalLM"],
        "model_type": "deepseek_v32",
        "index_head_dim": 64,
        "index_n_heads": 3,
        "index_topk": 24,
    }
    return {**deepseek_v3(), **index, **values}


def glm_moe_dsa(**values):
    defaults = {
        "architectures": ["GlmMoeDsaForCausalLM"],
        "model_type": "glm_moe_dsa",
        "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0},
        "indexer_rope_interleave": True,
        "n_shared_experts": 1,
        "n_group": 1,
        "topk_group": 1,
    }
    config = {**deepseek_v32(), **defaults, **values}
    del config["rope_theta"], config["rope_scaling"]
    return config


def longcat_flash(**values):
    defaults = {
        "attention_method": "MLA",
        "num_layers": 2,
        "ffn_hidden_size": 192,
        "expert_ffn_hidden_size": 64,
        "n_routed_experts": 6,
        "zero_expert_num": 3,
        "zero_expert_type": "identity",
        "moe_topk": 4,
        "routed_scaling_factor": 3.0,
        "q_lora_rank": 64,
        "kv_lora_rank": 96,
        "qk_nope_head_dim": 32,
        "qk_rope_head_dim": 16,
        "v_head_dim": 64,
        "mla_scale_q_lora": True,
        "mla_scale_kv_lora": True,
        "attention_bias": False,
        "norm_topk_prob": False,
        "router_bias": False,
    }
    config = decoder("longcat_flash", "LongcatFlashForCausalLM", **{**defaults, **values})
    for name in ("num_hidden_layers", "intermediate_size", "num_key_value_heads"):
        del config[name]
    return config


def longcat_lite(**values):
    runs = {"ngram_vocab_size_ratio": 3, "emb_neighbor_num": 4, "emb_split_num": 2, "rope_theta": 5000000.0}
    return {**longcat_flash(), "model_type": "longcat_flash_ngram", **runs, **values}


def phixtral(**values):
    config = {
        "architectures": ["PhiForCausalLM"],
        "model_type": "phixtral",
        "num_vocab": VOCABULARY,
        "model_dim": 128,
        "num_heads": 4,
        "num_layers": 3,
        "rotary_dim": 16,
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
    }
    return {**config, **values}


def minimax_m3(**values):
    """MiniMax M3 as published, without a tower."""
    text = minimax_m3_text(**values)
    return {"architectures": ["MiniMaxM3SparseForConditionalGeneration"], "model_type": "minimax_m3_vl", "text_config": text}
