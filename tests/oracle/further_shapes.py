"""As `shapes`, for older families and for those that few people run."""
from shapes import EPS, VOCABULARY, WINDOW, decoder


def gemma(**values):
    config = decoder("gemma", "GemmaForCausalLM", **{"head_dim": 32, "num_key_value_heads": 1, "hidden_act": "gelu_pytorch_tanh", **values})
    # Tied, and real files do not say so.
    del config["tie_word_embeddings"]
    return config


def gemma2(**values):
    defaults = {
        "num_hidden_layers": 4,
        "query_pre_attn_scalar": 24,
        # Smaller than real ones, so that one that is not applied shows.
        "attn_logit_softcapping": 2.0,
        "final_logit_softcapping": 6.0,
        "sliding_window": WINDOW,
        "hidden_activation": "gelu_pytorch_tanh",
    }
    return {**gemma(), "architectures": ["Gemma2ForCausalLM"], "model_type": "gemma2", "num_key_value_heads": 2, **defaults, **values}


def layer_normed(model_type, architecture, eps, **values):
    """A decoder with layer norms, whose epsilon is called `eps`."""
    config = decoder(model_type, architecture, **{eps: EPS, **values})
    del config["rms_norm_eps"]
    return config


def starcoder2(**values):
    # mlx-lm takes GELU by the error function whatever the config says.
    defaults = {"hidden_act": "gelu", "use_bias": True, "sliding_window": None, "rope_theta": 100000.0, "tie_word_embeddings": True}
    return layer_normed("starcoder2", "Starcoder2ForCausalLM", "norm_epsilon", **{**defaults, **values})


def cohere(**values):
    defaults = {"logit_scale": 0.25, "attention_bias": False, "use_qk_norm": False, "rope_theta": 8000000.0}
    config = layer_normed("cohere", "CohereForCausalLM", "layer_norm_eps", **{**defaults, **values})
    # Tied, and real files do not say so.
    del config["tie_word_embeddings"]
    return config


def cohere2(**values):
    defaults = {"model_type": "cohere2", "architectures": ["Cohere2ForCausalLM"], "num_hidden_layers": 5}
    windows = {"sliding_window": WINDOW, "sliding_window_pattern": 3, "rope_theta": 50000.0, "hidden_size": 128, "head_dim": 32}
    return {**cohere(), **defaults, **windows, **values}


def phi(**values):
    defaults = {"hidden_act": "gelu_new", "partial_rotary_factor": 0.4, "num_key_value_heads": 4, "qk_layernorm": False}
    return layer_normed("phi", "PhiForCausalLM", "layer_norm_eps", **{**defaults, **values})


def stablelm(**values):
    defaults = {"partial_rotary_factor": 0.25, "use_qkv_bias": True, "use_parallel_residual": False, "qk_layernorm": False}
    return layer_normed("stablelm", "StableLmForCausalLM", "layer_norm_eps", **{**defaults, **values})


def internlm2(**values):
    return decoder("internlm2", "InternLM2ForCausalLM", **{"bias": False, "rope_scaling": None, **values})


def internlm3(**values):
    return decoder("internlm3", "InternLM3ForCausalLM", **{"bias": False, "qkv_bias": False, "rope_scaling": None, **values})


def minicpm(**values):
    scales = {"scale_emb": 12.0, "scale_depth": 1.4, "dim_model_base": 64}
    return decoder("minicpm", "MiniCPMForCausalLM", **{"rope_scaling": None, **scales, **values})


def helium(**values):
    defaults = {"head_dim": 32, "hidden_size": 128, "attention_bias": False, "mlp_bias": False, "num_key_value_heads": 4}
    return decoder("helium", "HeliumForCausalLM", **{**defaults, **values})


def nemotron(**values):
    defaults = {"hidden_act": "relu2", "partial_rotary_factor": 0.5, "attention_bias": False, "mlp_bias": False}
    return layer_normed("nemotron", "NemotronForCausalLM", "norm_eps", **{**defaults, **values})


def exaone(**values):
    config = layer_normed("exaone", "ExaoneForCausalLM", "layer_norm_epsilon", **{"tie_word_embeddings": True, **values})
    config["num_layers"] = config.pop("num_hidden_layers")
    config["activation_function"] = config.pop("hidden_act")
    return config


def gpt_neox(**values):
    # mlx-lm takes the approximation of GELU whatever the config says, and four times the width inside.
    defaults = {"hidden_act": "gelu_fast", "rotary_pct": 0.25, "rotary_emb_base": 10000, "use_parallel_residual": True, "intermediate_size": 512}
    config = layer_normed("gpt_neox", "GPTNeoXForCausalLM", "layer_norm_eps", **{**defaults, **values})
    del config["rope_theta"], config["num_key_value_heads"]
    return config


def granitemoe(**values):
    scales = {"embedding_multiplier": 12.0, "attention_multiplier": 0.25, "residual_multiplier": 0.5, "logits_scaling": 2.0}
    experts = {"num_local_experts": 8, "num_experts_per_tok": 3, "intermediate_size": 64, "tie_word_embeddings": True}
    return decoder("granitemoe", "GraniteMoeForCausalLM", **{"attention_bias": False, "rope_scaling": None, **scales, **experts, **values})


def telechat3(**values):
    scaling = {"type": "telechat3-yarn", "rope_type": "telechat3-yarn", "factor": 4.0, "original_max_position_embeddings": 64}
    return decoder("telechat3", "TeleChat3ForCausalLM", **{"rope_scaling": scaling, "attention_bias": False, "mlp_bias": False, **values})


def afm7(**values):
    config = {
        "architectures": ["AFMTextV7ForCausalLM"],
        "model_type": "afm7",
        "vocab_size": VOCABULARY,
        "hidden_dim": 128,
        "num_layers": 5,
        "num_kv_reuse_layers": 2,
        "num_heads": 4,
        "num_kv_heads": 2,
        "hidden_dim_scale_factor": 1.5,
        "rope_theta": 50000.0,
        "rms_norm_eps": 1e-5,
        "max_position_embeddings": 4096,
    }
    return {**config, **values}
