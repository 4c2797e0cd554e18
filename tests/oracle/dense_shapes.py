"""As `shapes`, for dense decoders that differ from Llama in one part or in names alone."""
from shapes import CONTEXT, EPS, VOCABULARY


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
