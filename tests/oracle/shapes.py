"""The config.json of each family as its real repositories have it, made so small that a forward pass takes milliseconds.

Every width is a multiple of 64, the group most quantised files use, and no two numbers that could be confused are equal.
"""

VOCABULARY = 320
CONTEXT = 512
WINDOW = 16
# Larger than real ones, so that a wrong one shows.
EPS = 1e-3


def decoder(model_type, architecture, **values):
    """The fields that nearly every family writes at the top level of its file."""
    config = {
        "architectures": [architecture],
        "model_type": model_type,
        "intermediate_size": 192,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "rms_norm_eps": EPS,
        "rope_theta": 10000.0,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": CONTEXT,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
    }
    # Heads are 32 wide, so that keys and values can be kept in groups of 32.
    width = 64 if "head_dim" in values else 128
    return {**config, "hidden_size": width, **values}


def llama(**values):
    return decoder("llama", "LlamaForCausalLM", **{"attention_bias": False, "mlp_bias": False, "rope_scaling": None, **values})


def mistral(**values):
    return decoder("mistral", "MistralForCausalLM", **{"head_dim": 32, "sliding_window": None, **values})


def ministral3(**values):
    rope = {
        "type": "yarn",
        "rope_type": "yarn",
        "rope_theta": 1000000.0,
        "factor": 16.0,
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "mscale": 1.0,
        "mscale_all_dim": 1.0,
        "original_max_position_embeddings": 32,
        "llama_4_scaling_beta": 0.1,
    }
    config = decoder("ministral3", "Ministral3ForCausalLM", **{"head_dim": 32, "sliding_window": None, "rope_parameters": rope, **values})
    del config["rope_theta"]
    return config


def mistral3(text):
    """The wrapper of a text model with an image tower."""
    text = {name: value for name, value in text.items() if name not in ("architectures", "tie_word_embeddings")}
    return {
        "architectures": ["Mistral3ForConditionalGeneration"],
        "model_type": "mistral3",
        "image_token_index": 10,
        "text_config": text,
        "vision_config": {"model_type": "pixtral", "hidden_size": 32},
    }


def qwen2(**values):
    return decoder("qwen2", "Qwen2ForCausalLM", **{"rms_norm_eps": EPS, "rope_theta": 1000000.0, "sliding_window": 4096, "use_sliding_window": False, **values})


def qwen3(**values):
    defaults = {"head_dim": 32, "rms_norm_eps": EPS, "rope_theta": 1000000.0, "rope_scaling": None, "attention_bias": False}
    return decoder("qwen3", "Qwen3ForCausalLM", **{**defaults, **values})


def qwen3_moe(**values):
    experts = {
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 64,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [1],
        "norm_topk_prob": True,
    }
    return {**qwen3(), "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", **experts, **values}


def qwen3_5(model_type="qwen3_5", **values):
    """Three layers of four with a recurrent state, images in a tower of their own."""
    text = {
        "model_type": f"{model_type}_text",
        "hidden_size": 64,
        "intermediate_size": 192,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "linear_key_head_dim": 32,
        "linear_value_head_dim": 32,
        "linear_conv_kernel_dim": 4,
        "full_attention_interval": 4,
        "layer_types": ["linear_attention"] * 3 + ["full_attention"],
        "attn_output_gate": True,
        "attention_bias": False,
        "rms_norm_eps": EPS,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": CONTEXT,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10000000.0,
            "partial_rotary_factor": 0.25,
            "mrope_section": [2, 1, 1],
            "mrope_interleaved": True,
        },
        "mtp_num_hidden_layers": 1,
    }
    text.update(values)
    return {
        "architectures": ["Qwen3_5MoeForConditionalGeneration" if "moe" in model_type else "Qwen3_5ForConditionalGeneration"],
        "model_type": model_type,
        "text_config": text,
        "tie_word_embeddings": text["tie_word_embeddings"],
        "vision_config": {"model_type": model_type, "hidden_size": 32},
    }


def qwen3_5_moe(**values):
    experts = {
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 64,
        "shared_expert_intermediate_size": 128,
    }
    return qwen3_5("qwen3_5_moe", **{**experts, **values})


def qwen3_next(**values):
    """Qwen 3.5's layers, their projections joined, no wrapper; the first without experts."""
    config = qwen3_5_moe()["text_config"]
    rope = config.pop("rope_parameters")
    del config["layer_types"], config["mtp_num_hidden_layers"]
    config["architectures"] = ["Qwen3NextForCausalLM"]
    config["model_type"] = "qwen3_next"
    config["rope_scaling"] = None
    sparse = {"decoder_sparse_step": 1, "mlp_only_layers": [0], "norm_topk_prob": True}
    return {**config, **{name: rope[name] for name in ("rope_theta", "partial_rotary_factor")}, **sparse, **values}


def gemma4(model_type="gemma4", **values):
    """Gemma 4; as E2B unless the values say otherwise."""
    text = {
        "model_type": "gemma4_text",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 10,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "num_global_key_value_heads": None,
        "head_dim": 16,
        "global_head_dim": 32,
        "hidden_size_per_layer_input": 64,
        "vocab_size": VOCABULARY,
        "vocab_size_per_layer_input": VOCABULARY,
        "num_kv_shared_layers": 4,
        "use_double_wide_mlp": True,
        "attention_k_eq_v": False,
        "enable_moe_block": False,
        "num_experts": None,
        "top_k_experts": None,
        "moe_intermediate_size": None,
        "sliding_window": WINDOW,
        "layer_types": (["sliding_attention"] * 4 + ["full_attention"]) * 2,
        "final_logit_softcapping": 30.0,
        "hidden_activation": "gelu_pytorch_tanh",
        "rms_norm_eps": EPS,
        "max_position_embeddings": CONTEXT,
        "tie_word_embeddings": True,
        "rope_parameters": {
            "full_attention": {"rope_type": "proportional", "rope_theta": 1000000.0, "partial_rotary_factor": 0.25},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
        },
    }
    text.update(values)
    if model_type == "gemma4_text":
        return {"architectures": ["Gemma4ForCausalLM"], **text}
    return {
        "architectures": ["Gemma4ForConditionalGeneration"],
        "model_type": model_type,
        "text_config": text,
        "vocab_size": VOCABULARY,
        "vision_config": {"model_type": "gemma4_vision", "hidden_size": 32},
        "audio_config": None,
    }


def gemma4_31b(**values):
    large = {
        "num_hidden_layers": 6,
        "num_key_value_heads": 2,
        "num_global_key_value_heads": 1,
        "hidden_size_per_layer_input": None,
        "vocab_size_per_layer_input": None,
        "num_kv_shared_layers": 0,
        "use_double_wide_mlp": False,
        "attention_k_eq_v": True,
        "layer_types": ["sliding_attention"] * 5 + ["full_attention"],
    }
    return gemma4(**{**large, **values})


def gemma4_26b(**values):
    return gemma4_31b(**{"enable_moe_block": True, "num_experts": 8, "top_k_experts": 2, "moe_intermediate_size": 64, **values})


def gemma3_text(**values):
    defaults = {
        "num_hidden_layers": 6,
        "head_dim": 32,
        "query_pre_attn_scalar": 24,
        "sliding_window": WINDOW,
        "sliding_window_pattern": 3,
        "rope_theta": 1000000.0,
        "rope_local_base_freq": 10000.0,
        "rms_norm_eps": EPS,
        "hidden_activation": "gelu_pytorch_tanh",
        "rope_scaling": None,
    }
    config = decoder("gemma3_text", "Gemma3ForCausalLM", **{**defaults, **values})
    # Tied unless the file has an output layer; real files do not say.
    del config["tie_word_embeddings"]
    return config


def gemma3(text):
    """The wrapper of a text model with an image tower."""
    text = {name: value for name, value in text.items() if name not in ("architectures", "vocab_size")}
    return {
        "architectures": ["Gemma3ForConditionalGeneration"],
        "model_type": "gemma3",
        "vocab_size": VOCABULARY,
        "text_config": text,
        "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 32},
    }


def gpt_oss(**values):
    defaults = {
        "intermediate_size": 64,
        "num_hidden_layers": 4,
        "head_dim": 32,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
        "sliding_window": WINDOW,
        "layer_types": ["sliding_attention", "full_attention"] * 2,
        "attention_bias": True,
        "swiglu_limit": 7.0,
        "rope_theta": 150000,
        "rope_scaling": {
            "rope_type": "yarn",
            "factor": 32.0,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "original_max_position_embeddings": 4096,
            "truncate": False,
        },
    }
    return decoder("gpt_oss", "GptOssForCausalLM", **{**defaults, **values})


def phi3(**values):
    return decoder("phi3", "Phi3ForCausalLM", **{"partial_rotary_factor": 1.0, "original_max_position_embeddings": 64, "rope_scaling": None, **values})


def smollm3(**values):
    defaults = {"num_hidden_layers": 4, "no_rope_layers": [1, 1, 1, 0], "no_rope_layer_interval": 4, "tie_word_embeddings": True}
    return decoder("smollm3", "SmolLM3ForCausalLM", **{**defaults, **values})


def glm4(**values):
    return decoder("glm4", "Glm4ForCausalLM", **{"head_dim": 32, "attention_bias": True, "partial_rotary_factor": 0.5, **values})


def glm4_moe(**values):
    defaults = {
        "head_dim": 32,
        "attention_bias": True,
        "partial_rotary_factor": 0.5,
        "use_qk_norm": True,
        "moe_intermediate_size": 64,
        "n_routed_experts": 8,
        "n_shared_experts": 1,
        "num_experts_per_tok": 2,
        "n_group": 1,
        "topk_group": 1,
        "norm_topk_prob": True,
        "routed_scaling_factor": 1.5,
        "first_k_dense_replace": 1,
        "rope_scaling": None,
    }
    return decoder("glm4_moe", "Glm4MoeForCausalLM", **{**defaults, **values})


def lfm2(**values):
    defaults = {
        "num_hidden_layers": 4,
        "norm_eps": EPS,
        "conv_bias": False,
        "conv_L_cache": 3,
        "block_dim": 128,
        "block_ff_dim": 192,
        "block_multiple_of": 64,
        "block_ffn_dim_multiplier": 1.0,
        "block_auto_adjust_ff_dim": True,
        "layer_types": ["conv", "full_attention"] * 2,
        "rope_theta": 1000000.0,
    }
    config = decoder("lfm2", "Lfm2ForCausalLM", **{**defaults, **values})
    del config["rms_norm_eps"], config["tie_word_embeddings"], config["intermediate_size"]
    return config


def lfm2_moe(**values):
    defaults = {
        "num_hidden_layers": 4,
        "norm_eps": EPS,
        "conv_bias": False,
        "conv_L_cache": 3,
        "layer_types": ["conv", "full_attention"] * 2,
        "rope_theta": 1000000.0,
        "intermediate_size": 192,
        "moe_intermediate_size": 64,
        "num_dense_layers": 1,
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "norm_topk_prob": True,
        "routed_scaling_factor": 1.5,
        "use_expert_bias": True,
    }
    config = decoder("lfm2_moe", "Lfm2MoeForCausalLM", **{**defaults, **values})
    del config["rms_norm_eps"], config["tie_word_embeddings"]
    return config


def granite(**values):
    scales = {"embedding_multiplier": 12.0, "attention_multiplier": 0.25, "residual_multiplier": 0.5, "logits_scaling": 2.0}
    return decoder("granite", "GraniteForCausalLM", **{"attention_bias": False, "mlp_bias": False, "rope_scaling": None, **scales, **values})


def olmo2(**values):
    return decoder("olmo2", "Olmo2ForCausalLM", **{"rope_theta": 500000.0, "attention_bias": False, **values})


def olmo3(**values):
    yarn = {"rope_type": "yarn", "factor": 8.0, "beta_fast": 32.0, "beta_slow": 1.0, "original_max_position_embeddings": 8192}
    defaults = {
        "num_hidden_layers": 4,
        "sliding_window": WINDOW,
        "layer_types": ["sliding_attention"] * 3 + ["full_attention"],
        "rope_scaling": yarn,
        "rope_theta": 500000.0,
    }
    return decoder("olmo3", "Olmo3ForCausalLM", **{**defaults, **values})


def deepseek_v2(**values):
    """V2-Lite: queries are not compressed, keys and values are."""
    defaults = {
        "num_key_value_heads": 4,
        "q_lora_rank": None,
        "kv_lora_rank": 64,
        "qk_rope_head_dim": 32,
        "qk_nope_head_dim": 64,
        "v_head_dim": 32,
        "moe_intermediate_size": 64,
        "n_routed_experts": 8,
        "n_shared_experts": 2,
        "num_experts_per_tok": 2,
        "n_group": 1,
        "topk_group": 1,
        "topk_method": "greedy",
        "scoring_func": "softmax",
        "norm_topk_prob": False,
        "routed_scaling_factor": 1.0,
        "first_k_dense_replace": 1,
        "moe_layer_freq": 1,
        "attention_bias": False,
        "rope_scaling": {
            "type": "yarn",
            "factor": 8,
            "beta_fast": 32,
            "beta_slow": 1,
            "mscale": 0.707,
            "mscale_all_dim": 0.707,
            "original_max_position_embeddings": 4096,
        },
    }
    return decoder("deepseek_v2", "DeepseekV2ForCausalLM", **{**defaults, **values})


def deepseek_v3(**values):
    """Queries are compressed too, and experts are chosen from groups."""
    defaults = {
        "architectures": ["DeepseekV3ForCausalLM"],
        "model_type": "deepseek_v3",
        "q_lora_rank": 64,
        "topk_method": "noaux_tc",
        "scoring_func": "sigmoid",
        "norm_topk_prob": True,
        "n_group": 4,
        "topk_group": 2,
        "routed_scaling_factor": 2.5,
    }
    return {**deepseek_v2(), **defaults, **values}


def glm4_moe_lite(**values):
    defaults = {
        "architectures": ["Glm4MoeLiteForCausalLM"],
        "model_type": "glm4_moe_lite",
        "n_shared_experts": 1,
        "n_group": 1,
        "topk_group": 1,
        "routed_scaling_factor": 1.8,
        "rope_scaling": None,
        "num_nextn_predict_layers": 1,
    }
    return {**deepseek_v3(), **defaults, **values}


def dots1(**values):
    whole = glm4_moe(n_group=2, topk_group=1)
    kept = {name: value for name, value in whole.items() if name not in ("partial_rotary_factor", "use_qk_norm")}
    return {**kept, "architectures": ["Dots1ForCausalLM"], "model_type": "dots1", "attention_bias": False, **values}


def mixtral(**values):
    experts = {"num_local_experts": 8, "num_experts_per_tok": 2, "sliding_window": None}
    return decoder("mixtral", "MixtralForCausalLM", **{**experts, **values})


def qwen2_moe(**values):
    experts = {
        "num_experts": 8,
        "num_experts_per_tok": 3,
        "moe_intermediate_size": 64,
        "shared_expert_intermediate_size": 128,
        "decoder_sparse_step": 1,
        "norm_topk_prob": False,
    }
    return {**qwen2(), "architectures": ["Qwen2MoeForCausalLM"], "model_type": "qwen2_moe", **experts, **values}


def olmoe(**values):
    experts = {"num_experts": 8, "num_experts_per_tok": 3, "norm_topk_prob": False, "clip_qkv": None}
    return decoder("olmoe", "OlmoeForCausalLM", **{**experts, **values})


def seed_oss(**values):
    return decoder("seed_oss", "SeedOssForCausalLM", **{"head_dim": 32, "attention_bias": True, "attention_out_bias": False, "mlp_bias": False, **values})


def ernie4_5(**values):
    return decoder("ernie4_5", "Ernie4_5ForCausalLM", **{"head_dim": 32, "use_bias": False, "rope_theta": 500000.0, **values})


def hunyuan(**values):
    scaling = {"type": "dynamic", "alpha": 1000.0, "factor": 1.0, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0}
    defaults = {"head_dim": 32, "use_qk_norm": True, "attention_bias": False, "tie_word_embeddings": True, "rope_scaling": scaling}
    return decoder("hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM", **{**defaults, **values})


def exaone4(**values):
    llama3 = {"rope_type": "llama3", "factor": 16.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
    defaults = {"head_dim": 32, "rope_scaling": llama3, "num_hidden_layers": 4, "sliding_window": WINDOW, "sliding_window_pattern": "LLLG"}
    return decoder("exaone4", "Exaone4ForCausalLM", **{**defaults, **values})


def mimo(**values):
    return decoder("mimo", "MiMoForCausalLM", **{"attention_bias": True, "num_nextn_predict_layers": 1, **values})
