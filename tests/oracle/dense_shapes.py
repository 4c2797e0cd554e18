"""As `shapes`, for dense decoders that differ from Llama in one part or in names alone."""
from further_shapes import layer_normed
from shapes import CONTEXT, EPS, VOCABULARY, WINDOW, decoder


def minicpm3(**values):
    rope = {
        "type": "longrope",
        "long_factor": [1.0 + 0.21 * index for index in range(16)],
        "short_factor": [1.0 + 0.05 * index for index in range(16)],
        "original_max_position_embeddings": 64,
    }
    latents = {"q_lora_rank": 64, "kv_lora_rank": 96, "qk_nope_head_dim": 64, "qk_rope_head_dim": 32, "num_key_value_heads": 4}
    scales = {"scale_emb": 12.0, "scale_depth": 1.4, "dim_model_base": 64}
    return decoder("minicpm3", "MiniCPM3ForCausalLM", **{"rope_scaling": rope, "attention_bias": False, **latents, **scales, **values})


def youtu_llm(**values):
    latents = {
        "q_lora_rank": 64,
        "kv_lora_rank": 96,
        "qk_nope_head_dim": 64,
        "qk_rope_head_dim": 32,
        "v_head_dim": 64,
        "num_key_value_heads": 4,
        # The norms of latents have that of transformers whatever the file says.
        "rms_norm_eps": 1e-6,
    }
    defaults = {"rope_theta": 1600000.0, "rope_scaling": None, "attention_bias": False, "mlp_bias": False, "tie_word_embeddings": True}
    return decoder("youtu_llm", "YoutuLLMForCausalLM", **{**latents, **defaults, **values})


def glm(**values):
    return decoder("glm", "GlmForCausalLM", **{"head_dim": 32, "attention_bias": True, "partial_rotary_factor": 0.5, **values})


def qwen1(**values):
    defaults = {
        "kv_channels": 32,
        # Gate and what it gates together.
        "intermediate_size": 384,
        "no_bias": True,
        "rotary_emb_base": 10000,
        "rotary_pct": 1.0,
        "seq_length": CONTEXT,
    }
    config = layer_normed("qwen", "QWenLMHeadModel", "layer_norm_epsilon", **{**defaults, **values})
    del config["rope_theta"], config["num_key_value_heads"], config["hidden_act"]
    return config


def lille(**values):
    defaults = {
        "architectures": ["Lille130mForCausalLM"],
        "model_type": "lille-130m",
        "n_embd": 128,
        "n_head": 4,
        "n_kv_heads": 2,
        "n_layer": 3,
        "block_size": CONTEXT,
        "layer_norm_eps": EPS,
        "rope_theta": 10000.0,
        "vocab_size": VOCABULARY,
    }
    return {**defaults, **values}


def openelm(**values):
    defaults = {
        "architectures": ["OpenELMForCausalLM"],
        "model_type": "openelm",
        "model_dim": 128,
        "head_dim": 32,
        "num_transformer_layers": 4,
        "num_query_heads": [4, 6, 4, 8],
        "num_kv_heads": [2, 3, 1, 4],
        "ffn_multipliers": [0.5, 1.1, 1.3, 2.6],
        "ffn_dim_divisor": 64,
        "ffn_with_glu": True,
        "normalize_qk_projections": True,
        "share_input_output_layers": True,
        "rms_norm_eps": EPS,
        "rope_freq_constant": 10000,
        "max_context_length": CONTEXT,
        "vocab_size": VOCABULARY,
    }
    return {**defaults, **values}


def deepseek(**values):
    experts = {
        "moe_intermediate_size": 64,
        "n_routed_experts": 8,
        "n_shared_experts": 2,
        "num_experts_per_tok": 3,
        "first_k_dense_replace": 1,
        "moe_layer_freq": 1,
        "scoring_func": "softmax",
        "norm_topk_prob": False,
    }
    return decoder("deepseek", "DeepseekForCausalLM", **{"num_key_value_heads": 4, "attention_bias": False, "rope_scaling": None, **experts, **values})


def gpt2(model_type="gpt2", architecture="GPT2LMHeadModel", **values):
    defaults = {
        "architectures": [architecture],
        "model_type": model_type,
        "n_ctx": CONTEXT,
        "n_positions": CONTEXT,
        "n_embd": 128,
        "n_head": 4,
        "n_layer": 3,
        "n_inner": None,
        "activation_function": "gelu_new",
        "layer_norm_epsilon": EPS,
        "vocab_size": VOCABULARY,
    }
    return {**defaults, **values}


def gpt_bigcode(**values):
    # mlx-lm takes GELU by the error function whatever the config says.
    defaults = {"activation_function": "gelu", "n_inner": 320, "multi_query": True}
    return gpt2("gpt_bigcode", "GPTBigCodeForCausalLM", **{**defaults, **values})


def gptj(**values):
    return gpt2("gptj", "GPTJForCausalLM", **{"rotary_dim": 16, "tie_word_embeddings": False, **values})


def nanochat(**values):
    # mlx-lm has the epsilon and the cap of logits built in.
    defaults = {"hidden_act": "relu2", "num_key_value_heads": 4, "rms_norm_eps": 1e-5}
    return decoder("nanochat", "NanoChatForCausalLM", **{**defaults, **values})


def apertus(**values):
    llama3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
    defaults = {
        "hidden_act": "xielu",
        "rope_scaling": llama3,
        "rope_theta": 12000000.0,
        "attention_bias": False,
        "mlp_bias": False,
        "post_norm": False,
        "qk_norm": True,
    }
    return decoder("apertus", "ApertusForCausalLM", **{**defaults, **values})


def olmo1(**values):
    """The original files, which mlx-lm reads; those of transformers have Llama's names."""
    defaults = {
        "architectures": ["OLMoModelForCausalLM"],
        "model_type": "olmo",
        "d_model": 128,
        "n_layers": 3,
        "n_heads": 4,
        # Gate and what it gates together.
        "mlp_hidden_size": 384,
        "embedding_size": VOCABULARY,
        "vocab_size": VOCABULARY - 5,
        "max_sequence_length": CONTEXT,
        "rope_theta": 10000.0,
        "weight_tying": False,
        "clip_qkv": None,
    }
    return {**defaults, **values}


def nanbeige(**values):
    # Two of them, because every loop makes small differences larger.
    defaults = {"num_hidden_layers": 2, "num_loops": 2, "skip_loop_final_norm": False, "attention_bias": False, "mlp_bias": False}
    return decoder("nanbeige", "NanbeigeForCausalLM", **{"rope_scaling": None, **defaults, **values})


def nemotron_nas(**values):
    absent, linear = {"no_op": True}, {"replace_with_linear": True}
    blocks = [
        {"attention": absent, "ffn": {"ffn_mult": 1.3}},
        {"attention": {"n_heads_in_group": 2}, "ffn": {"ffn_mult": 3.2}},
        {"attention": linear, "ffn": {"ffn_mult": 2.1}},
        {"attention": {"n_heads_in_group": 4}, "ffn": linear},
        {"attention": {"n_heads_in_group": 1}, "ffn": absent},
    ]
    defaults = {"num_hidden_layers": len(blocks), "block_configs": blocks, "attention_bias": False, "mlp_bias": False, "rope_scaling": None}
    config = decoder("nemotron-nas", "DeciLMForCausalLM", **{**defaults, **values})
    return {**config, "intermediate_size": None, "num_key_value_heads": None}


def plamo(**values):
    defaults = {"hidden_size": 192, "num_attention_heads": 6, "n_shared_head": 2, "num_key_value_heads": 6}
    return decoder("plamo", "PlamoForCausalLM", **{**defaults, **values})


def plamo3(**values):
    defaults = {
        "head_dim": 32,
        "num_hidden_layers": 4,
        "window_size": WINDOW,
        "sliding_window": None,
        "sliding_window_pattern": 2,
        "rope_theta": 1000000.0,
        "rope_local_theta": 10000.0,
        "tie_word_embeddings": True,
    }
    return decoder("plamo3", "Plamo3ForCausalLM", **{**defaults, **values})


def bitnet(**values):
    packing = {"quant_method": "bitnet", "linear_class": "autobitlinear", "quantization_mode": "offline", "modules_to_not_convert": ["lm_head"]}
    defaults = {"hidden_act": "relu2", "rope_theta": 500000.0, "tie_word_embeddings": True, "quantization_config": packing}
    return decoder("bitnet", "BitNetForCausalLM", **{**defaults, **values})


def talkie(**values):
    defaults = {"head_dim": 32, "hidden_size": 128, "num_key_value_heads": 4, "rope_theta": 1000000.0}
    return decoder("talkie", "TalkieForCausalLM", **{**defaults, **values})


def baichuan_m1(**values):
    defaults = {
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "num_swa_attention_heads": 2,
        "num_swa_key_value_heads": 1,
        "sliding_window": WINDOW,
        "sliding_window_layers": [1, 3],
        "conv_window": 2,
    }
    return decoder("baichuan_m1", "BaichuanM1ForCausalLM", **{**defaults, **values})


def iquest_loop(**values):
    loops = {"loop_num": 2, "loop_window_size": WINDOW, "rope_scaling": None, "rope_theta": 500000.0}
    defaults = {"head_dim": 32, "num_hidden_layers": 2, "attention_bias": False, "mlp_bias": False}
    return decoder("iquestloopcoder", "IQuestLoopCoderForCausalLM", **{**loops, **defaults, **values})


def phi3small(**values):
    defaults = {
        "ff_intermediate_size": 96,
        "gegelu_limit": 1.0,
        "layer_norm_epsilon": 1e-5,
        "dense_attention_every_n_layers": 2,
        "blocksparse_block_size": 32,
        "blocksparse_num_local_blocks": 1,
        "blocksparse_vert_stride": 3,
        "mup_attn_multiplier": 1.0,
        "mup_use_scaling": True,
        "mup_embedding_multiplier": 10.0,
        "mup_width_multiplier": 8.0,
        "rope_embedding_base": 1000000.0,
        "rope_position_scale": 1.0,
    }
    config = decoder("phi3small", "Phi3SmallForCausalLM", **{**defaults, **values})
    for name in ("intermediate_size", "rms_norm_eps", "rope_theta", "tie_word_embeddings"):
        del config[name]
    return config
