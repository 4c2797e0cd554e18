"""Embedding models that mlx-vlm has: their tensors, and the states that it computes for the tokens of a text."""
import importlib
import math

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx.utils import tree_flatten

WORDS = 200
MODERNBERT = {
    "architectures": ["ModernBertModel"], "model_type": "modernbert", "attention_bias": False, "global_attn_every_n_layers": 3,
    "global_rope_theta": 160000.0, "hidden_activation": "gelu", "hidden_size": 64, "intermediate_size": 96, "local_attention": 16,
    "local_rope_theta": 10000.0, "max_position_embeddings": 700, "mlp_bias": False, "norm_bias": False, "norm_eps": 1e-5,
    "num_attention_heads": 4, "num_hidden_layers": 5, "pad_token_id": 1, "vocab_size": WORDS, "classifier_bias": False,
    "classifier_activation": "gelu", "classifier_pooling": "mean",
}
LLAMA = {
    "architectures": ["LlamaBidirectionalModel"], "model_type": "llama_bidirec", "attention_bias": False, "hidden_act": "silu", "hidden_size": 64,
    "intermediate_size": 128, "max_position_embeddings": 700, "mlp_bias": False, "num_attention_heads": 4, "num_hidden_layers": 3,
    "num_key_value_heads": 2, "pooling": "avg", "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "tie_word_embeddings": False, "vocab_size": WORDS,
}
LFM2 = {
    "architectures": ["Lfm2BidirectionalModel"], "model_type": "lfm2_embedding", "block_auto_adjust_ff_dim": True, "block_dim": 64, "block_ff_dim": 192,
    "block_ffn_dim_multiplier": 1.0, "block_multiple_of": 64, "conv_L_cache": 3, "conv_bias": False, "full_attn_idxs": [1, 3], "hidden_size": 64,
    "max_position_embeddings": 700, "norm_eps": 1e-5, "num_attention_heads": 4, "num_hidden_layers": 5, "num_key_value_heads": 2,
    "rope_theta": 1000000.0, "vocab_size": WORDS,
}
LFM2_ENCODER = {**LFM2, "architectures": ["Lfm2ForMaskedLM"], "model_type": "lfm2_encoder", "conv_L_cache": 5, "conv_bias": True}
GEMMA2_TEXT = {
    "model_type": "embedding_gemma2_text", "attention_bias": False, "embedding_dim": 96, "head_dim": 32, "hidden_activation": "gelu_pytorch_tanh",
    "hidden_size": 64, "hidden_size_per_layer_input": 32, "intermediate_size": 128, "max_position_embeddings": 700, "num_attention_heads": 4,
    "num_hidden_layers": 4, "num_key_value_heads": 2,
    "per_layer_config": {"01": {"head_dim": 64, "num_key_value_heads": 1}, "03": {"head_dim": 64, "num_key_value_heads": 1}},
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"], "rms_norm_eps": 1e-6, "sliding_window": 8,
    "rope_parameters": {"full_attention": {"rope_theta": 1000000.0, "rope_type": "default"}, "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"}},
    "vocab_size": WORDS,
}
GEMMA2 = {"architectures": ["EmbeddingGemma2Model"], "model_type": "embedding_gemma2", "text_config": GEMMA2_TEXT}
PEERS = {"modernbert", "llama_bidirec", "lfm2_embedding", "lfm2_encoder", "embedding_gemma2"}


def build(config):
    """mlx-vlm's model of a config."""
    module = importlib.import_module(f"mlx_vlm.models.{config['model_type']}")
    ranks = config["architectures"][0].endswith("ForSequenceClassification")
    made = getattr(module, "SequenceClassificationModel" if ranks else "Model")
    model = made(module.ModelConfig.from_dict(config))
    if config["model_type"] == "modernbert":
        # GELU by the error function, as transformers has it.
        for part in [layer.mlp for layer in model.layers] + ([model.head] if ranks else []):
            part.act = nn.GELU()
    return model


def shapes(config):
    """Names of tensors as repositories have them, and their shapes."""
    for name, value in tree_flatten(build(config).parameters()):
        if config["model_type"] == "lfm2_encoder":
            channels, kernel = value.shape[0], value.shape[1:2]
            yield name.replace("model.", "lfm2.", 1), (channels, 1, *kernel) if name.endswith("conv.conv.weight") else value.shape
        else:
            yield f"model.{name}" if is_wrapped(config, name) else name, value.shape


def is_wrapped(config, name):
    """True for tensors that stand inside of `model` where there is a head beside it."""
    return config["architectures"][0].endswith("ForSequenceClassification") and not name.startswith(("head.", "classifier."))


def width(config):
    """Numbers of a state."""
    return config["text_config"]["embedding_dim"] if "text_config" in config else config["hidden_size"]


def draw(random, config, name, shape):
    """Random numbers that suit a weight."""
    noise = random.standard_normal(shape)
    if name.endswith("bias"):
        return 0.2 * noise
    if len(shape) == 1:
        return 1 + 0.2 * noise
    if "embed" in name and "proj" not in name:
        return 0.5 * noise / (math.sqrt(shape[-1]) if "text_config" in config else 1)
    # One row is a score.
    return (0.7 if shape[0] == 1 else 1.4) * noise / math.sqrt(np.prod(shape[1:]))


def loaded(config, weights):
    """The model with these numbers, in 32 bits."""
    model = build(config)
    weights = model.sanitize({name: mx.array(numbers.astype(np.float32)) for name, numbers in weights.items()})
    model.load_weights(list(weights.items()))
    return model


def states(model, ids):
    """The states after the last layer, [length, width]."""
    with mx.stream(mx.cpu):
        ids = mx.array(ids)[None]
        # One of them makes logits of its states.
        made = model._encode(ids)[0] if model.model_type == "lfm2_encoder" else model(ids).last_hidden_state
        return np.array(made[0], np.float64)


def score(model, ids):
    """The score of a pair."""
    with mx.stream(mx.cpu):
        return np.array(model(mx.array(ids)[None]).logits[0], np.float64)
