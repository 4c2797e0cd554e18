"""As `shapes`, for dense decoders that differ from Llama in one part or in names alone."""
from further_shapes import layer_normed
from shapes import CONTEXT, EPS, VOCABULARY, decoder


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
