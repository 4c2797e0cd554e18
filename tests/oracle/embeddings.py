"""Tiny random embedding models as their repositories have them, and the vectors that they stand for.

    embeddings.py --out FOLDER --seed N     writes FOLDER/NAME for each model, and FOLDER/table.json with inputs and vectors

The oracle's environment has no torch, so the models are computed here, in 64 bit floats, by the equations of transformers'
`modeling_bert`, `modeling_xlm_roberta`, `modeling_nomic_bert`, `modeling_qwen3` and `modeling_gemma3`, and sentence-transformers'
`Pooling`, `Dense` and `Normalize`; those of `embedders.py` by mlx-vlm, in 32 bits. Texts are tokenized by Hugging Face's tokenizers."""
import argparse
import functools
import json
import math
from pathlib import Path

import mlx.core as mx
import numpy as np
from tokenizers import Tokenizer

import embedders
from embedders import GEMMA2, LFM2, LFM2_ENCODER, LLAMA, MODERNBERT

WORDS = 200
# The second one pads, as in RoBERTa, which counts positions from there on.
SPECIAL = ["[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]"]

BERT = {
    "architectures": ["BertModel"], "model_type": "bert", "hidden_act": "gelu", "hidden_size": 64, "intermediate_size": 128,
    "layer_norm_eps": 1e-12, "max_position_embeddings": 96, "num_attention_heads": 4, "num_hidden_layers": 3, "pad_token_id": 0,
    "position_embedding_type": "absolute", "type_vocab_size": 2, "vocab_size": WORDS,
}
ROBERTA = {**BERT, "architectures": ["XLMRobertaModel"], "model_type": "xlm-roberta", "layer_norm_eps": 1e-5, "pad_token_id": 1,
           "max_position_embeddings": 98, "type_vocab_size": 1}
RANKS = {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}
NOMIC = {
    "architectures": ["NomicBertModel"], "model_type": "nomic_bert", "activation_function": "swiglu", "layer_norm_epsilon": 1e-12,
    "mlp_fc1_bias": False, "mlp_fc2_bias": False, "n_embd": 64, "n_head": 4, "n_inner": 128, "n_layer": 3, "n_positions": 128,
    "prenorm": False, "qkv_proj_bias": False, "rotary_emb_base": 1000, "rotary_emb_fraction": 1.0, "rotary_emb_interleaved": False,
    "rotary_scaling_factor": None, "type_vocab_size": 2, "use_rms_norm": False, "vocab_size": WORDS,
    "auto_map": {"AutoModel": "modeling_hf_nomic_bert.NomicBertModel"},
}
QWEN3 = {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_act": "silu", "hidden_size": 64, "head_dim": 32,
    "intermediate_size": 128, "max_position_embeddings": 700, "num_attention_heads": 4, "num_hidden_layers": 3,
    "num_key_value_heads": 2, "rms_norm_eps": 1e-6, "rope_theta": 1000000, "tie_word_embeddings": True, "vocab_size": WORDS,
}
# The root of 64 is a number of 8 bits: the factor of the embedding is rounded so, whatever the weights are.
GEMMA = {
    "architectures": ["Gemma3TextModel"], "model_type": "gemma3_text", "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 64,
    "head_dim": 32, "intermediate_size": 128, "max_position_embeddings": 700, "num_attention_heads": 3, "num_hidden_layers": 4,
    "num_key_value_heads": 1, "query_pre_attn_scalar": 32, "rms_norm_eps": 1e-6, "rope_local_base_freq": 10000.0,
    "rope_theta": 1000000.0, "sliding_window": 16, "use_bidirectional_attention": True, "vocab_size": WORDS,
    "layer_types": ["sliding_attention", "sliding_attention", "full_attention", "sliding_attention"],
}


def rotate(x, theta):
    """Heads [heads, length, width], halves against each other."""
    half = x.shape[-1] // 2
    angles = np.arange(x.shape[1])[:, None] / theta ** (np.arange(half) / half)
    cos, sin = np.cos(angles), np.sin(angles)
    first, second = x[..., :half], x[..., half:]
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], -1)


def attention(q, k, v, scale, sees):
    groups = q.shape[0] // k.shape[0]
    k, v = np.repeat(k, groups, 0), np.repeat(v, groups, 0)
    scores = np.where(sees, q @ k.transpose(0, 2, 1) * scale, -np.inf)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    out = shares / shares.sum(-1, keepdims=True) @ v
    return out.transpose(1, 0, 2).reshape(out.shape[1], -1)


def heads(x, count):
    return x.reshape(x.shape[0], count, -1).transpose(1, 0, 2)


def layer_norm(x, w, path, eps):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + eps) * w[f"{path}.weight"] + w[f"{path}.bias"]


def rms_norm(x, weight, eps):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * weight


gelu = np.vectorize(lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2))))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def silu(x):
    return x / (1 + np.exp(-x))


def bert(config, w, ids, types=None):
    def linear(x, path):
        return x @ w[f"{path}.weight"].T + w[f"{path}.bias"]

    first = config["pad_token_id"] + 1 if config["model_type"] == "xlm-roberta" else 0
    eps, count = config["layer_norm_eps"], config["num_attention_heads"]
    x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][first : first + len(ids)]
    kinds = np.zeros(len(ids), int) if types is None else np.minimum(types, config["type_vocab_size"] - 1)
    x = layer_norm(x + w["embeddings.token_type_embeddings.weight"][kinds], w, "embeddings.LayerNorm", eps)
    for layer in range(config["num_hidden_layers"]):
        path = f"encoder.layer.{layer}"
        q, k, v = (heads(linear(x, f"{path}.attention.self.{name}"), count) for name in ("query", "key", "value"))
        mixed = linear(attention(q, k, v, q.shape[-1] ** -0.5, True), f"{path}.attention.output.dense")
        x = layer_norm(x + mixed, w, f"{path}.attention.output.LayerNorm", eps)
        fed = linear(gelu(linear(x, f"{path}.intermediate.dense")), f"{path}.output.dense")
        x = layer_norm(x + fed, w, f"{path}.output.LayerNorm", eps)
    return x


def nomic(config, w, ids):
    eps, count = config["layer_norm_epsilon"], config["n_head"]
    x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.token_type_embeddings.weight"][0]
    x = layer_norm(x, w, "emb_ln", eps)
    for layer in range(config["n_layer"]):
        path = f"encoder.layers.{layer}"
        q, k, v = (heads(part, count) for part in np.split(x @ w[f"{path}.attn.Wqkv.weight"].T, 3, -1))
        q, k = rotate(q, config["rotary_emb_base"]), rotate(k, config["rotary_emb_base"])
        mixed = attention(q, k, v, q.shape[-1] ** -0.5, True) @ w[f"{path}.attn.out_proj.weight"].T
        x = layer_norm(x + mixed, w, f"{path}.norm1", eps)
        inner = x @ w[f"{path}.mlp.fc11.weight"].T * silu(x @ w[f"{path}.mlp.fc12.weight"].T)
        x = layer_norm(x + inner @ w[f"{path}.mlp.fc2.weight"].T, w, f"{path}.norm2", eps)
    return x


def decoder(config, w, ids):
    gemma = config["model_type"] == "gemma3_text"
    eps, count, groups = config["rms_norm_eps"], config["num_attention_heads"], config["num_key_value_heads"]
    root = next(name for name in w if name.endswith("embed_tokens.weight"))[: -len("embed_tokens.weight")]

    def norm(x, path):
        weight = w[f"{root}{path}.weight"]
        return rms_norm(x, 1 + weight if gemma else weight, eps)

    def linear(x, path):
        return x @ w[f"{root}{path}.weight"].T

    x = w[f"{root}embed_tokens.weight"][ids] * (math.sqrt(config["hidden_size"]) if gemma else 1)
    places = np.arange(len(ids))
    distance = places[:, None] - places[None, :]
    for layer in range(config["num_hidden_layers"]):
        path, sees, theta = f"layers.{layer}", distance >= 0, config["rope_theta"]
        if gemma:
            sees = np.ones_like(distance, bool)
            if config["layer_types"][layer] == "sliding_attention":
                # transformers: `sliding_window // 2 + 1`, exclusive, to both sides.
                sees, theta = abs(distance) < config["sliding_window"] // 2 + 1, config["rope_local_base_freq"]
        y = norm(x, f"{path}.input_layernorm")
        q, k, v = (heads(linear(y, f"{path}.self_attn.{name}_proj"), n) for name, n in (("q", count), ("k", groups), ("v", groups)))
        q, k = norm(q, f"{path}.self_attn.q_norm"), norm(k, f"{path}.self_attn.k_norm")
        scale = (config["query_pre_attn_scalar"] if gemma else config["head_dim"]) ** -0.5
        mixed = linear(attention(rotate(q, theta), rotate(k, theta), v, scale, sees), f"{path}.self_attn.o_proj")
        if gemma:
            x = x + norm(mixed, f"{path}.post_attention_layernorm")
            y = norm(x, f"{path}.pre_feedforward_layernorm")
        else:
            x = x + mixed
            y = norm(x, f"{path}.post_attention_layernorm")
        gate = linear(y, f"{path}.mlp.gate_proj")
        fed = linear((gelu_tanh(gate) if gemma else silu(gate)) * linear(y, f"{path}.mlp.up_proj"), f"{path}.mlp.down_proj")
        x = x + (norm(fed, f"{path}.post_feedforward_layernorm") if gemma else fed)
    return norm(x, "norm")


FORWARD = {"bert": bert, "xlm-roberta": bert, "nomic_bert": nomic, "qwen3": decoder, "gemma3_text": decoder}


def ranks(config):
    """True for a cross-encoder: transformers' `BertForSequenceClassification` or `XLMRobertaForSequenceClassification` with one label."""
    return config["architectures"][0].endswith("ForSequenceClassification")


def score(config, w, ids, types):
    """Of a pair: the first token's state through the head."""
    inner, last = ("pooler.dense", "classifier") if config["model_type"] == "bert" else ("classifier.dense", "classifier.out_proj")
    state = bert(config, w, ids, types)[0]
    state = np.tanh(state @ w[f"{inner}.weight"].T + w[f"{inner}.bias"])
    return state @ w[f"{last}.weight"].T + w[f"{last}.bias"]


def encoder_shapes(config):
    if config["model_type"] == "nomic_bert":
        hidden, width, words = config["n_embd"], config["n_inner"], config["vocab_size"]
        yield "embeddings.word_embeddings.weight", (words, hidden)
        yield "embeddings.token_type_embeddings.weight", (2, hidden)
        norms, parts = ["emb_ln"], {}
        for layer in range(config["n_layer"]):
            path = f"encoder.layers.{layer}"
            norms += [f"{path}.norm1", f"{path}.norm2"]
            parts |= {f"{path}.attn.Wqkv": (3 * hidden, hidden), f"{path}.attn.out_proj": (hidden, hidden)}
            parts |= {f"{path}.mlp.fc11": (width, hidden), f"{path}.mlp.fc12": (width, hidden), f"{path}.mlp.fc2": (hidden, width)}
        biased = False
    else:
        hidden, width = config["hidden_size"], config["intermediate_size"]
        for name, rows in (("word", config["vocab_size"]), ("position", config["max_position_embeddings"]), ("token_type", config["type_vocab_size"])):
            yield f"embeddings.{name}_embeddings.weight", (rows, hidden)
        norms, parts, biased = ["embeddings.LayerNorm"], {"pooler.dense": (hidden, hidden)}, True
        for layer in range(config["num_hidden_layers"]):
            path = f"encoder.layer.{layer}"
            norms += [f"{path}.attention.output.LayerNorm", f"{path}.output.LayerNorm"]
            parts |= {f"{path}.attention.self.{name}": (hidden, hidden) for name in ("query", "key", "value")}
            parts |= {f"{path}.attention.output.dense": (hidden, hidden), f"{path}.intermediate.dense": (width, hidden)}
            parts[f"{path}.output.dense"] = (hidden, width)
        if ranks(config):
            names = ["classifier"] if config["model_type"] == "bert" else ["classifier.dense", "classifier.out_proj"]
            parts |= {names[0]: (hidden, hidden), names[-1]: (1, hidden)}
    for path, shape in parts.items():
        yield f"{path}.weight", shape
        if biased:
            yield f"{path}.bias", shape[:1]
    for path in norms:
        yield f"{path}.weight", (hidden,)
        yield f"{path}.bias", (hidden,)


def decoder_shapes(config, root):
    hidden, width, head = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    queries, keys = config["num_attention_heads"] * head, config["num_key_value_heads"] * head
    yield f"{root}embed_tokens.weight", (config["vocab_size"], hidden)
    yield f"{root}norm.weight", (hidden,)
    norms = ["input_layernorm", "post_attention_layernorm"]
    if config["model_type"] == "gemma3_text":
        norms += ["pre_feedforward_layernorm", "post_feedforward_layernorm"]
    for layer in range(config["num_hidden_layers"]):
        path = f"{root}layers.{layer}"
        for name, rows in (("q", queries), ("k", keys), ("v", keys)):
            yield f"{path}.self_attn.{name}_proj.weight", (rows, hidden)
        yield f"{path}.self_attn.o_proj.weight", (hidden, queries)
        yield from ((f"{path}.self_attn.{name}_norm.weight", (head,)) for name in "qk")
        yield from ((f"{path}.mlp.{name}_proj.weight", (width, hidden)) for name in ("gate", "up"))
        yield f"{path}.mlp.down_proj.weight", (hidden, width)
        yield from ((f"{path}.{name}.weight", (hidden,)) for name in norms)


def draw(random, name, shape, gemma):
    noise = random.standard_normal(shape)
    if name.endswith("bias"):
        return 0.2 * noise
    if len(shape) == 1:
        return 0.2 * noise if gemma else 1 + 0.2 * noise
    if "embed" in name:
        return 0.5 * noise / (8 if gemma else 1)
    # One row is a score: about as long as the other models' vectors, so that one bound holds for all.
    return (0.7 if shape[0] == 1 else 1.4) * noise / math.sqrt(shape[-1])


def store(weights, file, bits=None, dtype=mx.float32):
    """Writes weights, packed as MLX's converters do if `bits` are given, and returns the numbers that the file stands for."""
    file.parent.mkdir(parents=True, exist_ok=True)
    stored, meant = {}, {}
    for name, numbers in weights.items():
        array = mx.array(numbers.astype(np.float32)).astype(dtype)
        if bits and array.ndim == 2 and array.shape[-1] % 64 == 0:
            parts = dict(zip(("weight", "scales", "biases"), mx.quantize(array, group_size=64, bits=bits)))
            path = name.removesuffix(".weight")
            stored |= {f"{path}.{part}": value for part, value in parts.items()}
            wide = [parts["weight"], parts["scales"].astype(mx.float32), parts["biases"].astype(mx.float32)]
            array = mx.dequantize(*wide, group_size=64, bits=bits)
        else:
            stored[name] = array
        meant[name] = np.array(array.astype(mx.float32), np.float64)
    mx.save_safetensors(str(file), stored, {"format": "mlx"})
    return meant


def tokenizer(frame):
    """BERT's, or one that knows whole words and puts `frame` around a text."""
    vocabulary = {token: id for id, token in enumerate(SPECIAL)} | {f"w{number}": number for number in range(len(SPECIAL), WORDS)}
    special = [{"id": id, "content": token, "special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
               for id, token in enumerate(SPECIAL)]
    pieces = [{"Sequence": {"id": "A", "type_id": 0}} if token is None else {"SpecialToken": {"id": token, "type_id": 0}} for token in frame]
    second = [{"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "[SEP]", "type_id": 1}}]
    known = {token: {"id": token, "ids": [SPECIAL.index(token)], "tokens": [token]} for token in frame if token}
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": special,
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "TemplateProcessing", "single": pieces, "pair": pieces + second, "special_tokens": known},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": vocabulary},
    }


def pool(states, modes):
    count, places = len(states), np.arange(1, len(states) + 1)[:, None]
    made = {
        "cls_token": states[0], "max_tokens": states.max(0), "mean_tokens": states.mean(0),
        "mean_sqrt_len_tokens": states.sum(0) / math.sqrt(count),
        "weightedmean_tokens": (states * places).sum(0) / places.sum(), "lasttoken": states[-1],
    }
    return np.concatenate([vector for mode, vector in made.items() if mode in modes])


# Name, config, pooling, widths of dense layers, normalized, bits, how tensors begin, what the tokenizer puts around a
# text.
FRAMED, ENDED = ["[CLS]", None, "[SEP]"], [None, "[SEP]"]
MODELS = [
    ("qwen3", QWEN3, ["lasttoken"], [], True, None, "model.", ENDED),
    ("qwen3-bare-4bit", {**QWEN3, "tie_word_embeddings": False}, ["lasttoken"], [], True, 4, "", ENDED),
    ("minilm", BERT, ["mean_tokens"], [], True, None, "", FRAMED),
    ("bge", BERT, ["cls_token"], [], True, None, "", FRAMED),
    ("bert-8bit", BERT, ["mean_tokens"], [], True, 8, "", FRAMED),
    ("bert-all-poolings", BERT, ["cls_token", "max_tokens", "mean_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken"], [], False, None, "", FRAMED),
    ("xlm-roberta", ROBERTA, ["mean_tokens"], [], True, None, "", FRAMED),
    ("embeddinggemma", {**GEMMA, "is_matryoshka": True}, ["mean_tokens"], [256, 64], True, None, "", FRAMED),
    ("embeddinggemma-8bit", GEMMA, ["mean_tokens"], [256, 64], True, 8, "model.", FRAMED),
    ("nomic", NOMIC, ["mean_tokens"], [], True, None, "", FRAMED),
    ("modernbert", MODERNBERT, ["mean_tokens"], [], True, None, "", FRAMED),
    ("modernbert-8bit", {**MODERNBERT, "attention_bias": True, "mlp_bias": True, "norm_bias": True}, ["cls_token"], [], True, 8, "", FRAMED),
    ("modernbert-reranker", {**MODERNBERT, **RANKS, "architectures": ["ModernBertForSequenceClassification"]}, [], [], False, None, "", FRAMED),
    ("llama-bidirec", LLAMA, ["mean_tokens"], [], True, None, "", FRAMED),
    ("llama-bidirec-4bit", {**LLAMA, "tie_word_embeddings": True}, ["mean_tokens"], [], True, 4, "", FRAMED),
    ("lfm2-embedding", LFM2, ["cls_token"], [], True, None, "", FRAMED),
    ("lfm2-embedding-8bit", LFM2, ["cls_token"], [], True, 8, "", FRAMED),
    ("lfm2-encoder", LFM2_ENCODER, ["mean_tokens"], [], True, None, "", FRAMED),
    ("embeddinggemma2", GEMMA2, ["mean_tokens"], [], True, None, "", FRAMED),
    ("embeddinggemma2-8bit", GEMMA2, ["mean_tokens", "max_tokens"], [], True, 8, "", FRAMED),
    ("reranker", {**BERT, **RANKS, "architectures": ["BertForSequenceClassification"]}, [], [], False, None, "", FRAMED),
    ("reranker-8bit", {**BERT, **RANKS, "architectures": ["BertForSequenceClassification"]}, [], [], False, 8, "", FRAMED),
    ("xlm-roberta-reranker", {**ROBERTA, **RANKS, "architectures": ["XLMRobertaForSequenceClassification"]}, [], [], False, None, "", FRAMED),
]


def drawn(random, config, root):
    """Random numbers of every tensor of a model that is computed here."""
    shapes = decoder_shapes(config, root) if "rms_norm_eps" in config else encoder_shapes(config)
    return {name: draw(random, name, shape, config["model_type"] == "gemma3_text") for name, shape in shapes}


def states_of(config, weights):
    """The function from ids to the states of tokens."""
    if config["model_type"] in embedders.PEERS:
        return functools.partial(embedders.states, embedders.loaded(config, weights))
    return functools.partial(FORWARD[config["model_type"]], config, weights)


def write(folder, random, config, modes, dense, normalised, bits, root, frame):
    """One model; returns what it makes of ids."""
    if config["model_type"] in embedders.PEERS:
        weights = {name: embedders.draw(random, config, name, shape) for name, shape in embedders.shapes(config)}
    else:
        weights = drawn(random, config, root)
    # A head lies beside the encoder, which has a name of its own then.
    encoder = {"bert": "bert.", "xlm-roberta": "roberta."}.get(config["model_type"], "") if ranks(config) else ""
    weights = {name if name.startswith("classifier") else f"{encoder}{name}": numbers for name, numbers in weights.items()}
    weights = store(weights, folder / "model.safetensors", bits, mx.bfloat16 if bits else mx.float32)
    weights = {name.removeprefix(encoder): numbers for name, numbers in weights.items()}
    width = embedders.width(config) if config["model_type"] in embedders.PEERS else config.get("n_embd", config.get("hidden_size"))
    modules, projections = ["Transformer", "Pooling"], []
    for outputs in dense:
        place = folder / f"{len(modules)}_Dense"
        matrix = {"linear.weight": draw(random, "linear.weight", (outputs, width * len(modes) if not projections else projections[-1].shape[0]), False)}
        projections.append(store(matrix, place / "model.safetensors")["linear.weight"])
        shape = {"in_features": projections[-1].shape[1], "out_features": outputs, "bias": False, "activation_function": "torch.nn.modules.linear.Identity"}
        (place / "config.json").write_text(json.dumps(shape))
        modules.append("Dense")
    modules += ["Normalize"] * normalised
    if bits:
        config = {**config, "quantization": {"group_size": 64, "bits": bits, "mode": "affine"}}
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer(frame)))
    (folder / "tokenizer_config.json").write_text("{}")
    if ranks(config):
        if config["model_type"] in embedders.PEERS:
            model = embedders.loaded(config, weights)
            return lambda ids, types: embedders.score(model, ids)
        return lambda ids, types: score(config, weights, ids, types)
    described = [{"idx": n, "name": str(n), "path": f"{n}_{kind}" if n else "", "type": f"sentence_transformers.models.{kind}"} for n, kind in enumerate(modules)]
    (folder / "modules.json").write_text(json.dumps(described))
    pooling = {"word_embedding_dimension": width} | {f"pooling_mode_{mode}": mode in modes for mode in (
        "cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken")}
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling/config.json").write_text(json.dumps(pooling))

    states = states_of(config, weights)

    def embed(ids):
        vector = pool(states(ids), modes)
        for matrix in projections:
            vector = matrix @ vector
        return vector / np.linalg.norm(vector) if normalised else vector

    return embed


def pairs(random, longest):
    """Questions with texts of several lengths; whole words of the tokenizer, and one that it does not know."""
    def words(count):
        return " ".join(f"w{number}" for number in random.integers(len(SPECIAL), WORDS, count))

    lengths = [(1, 1), (3, 40), (7, 17), (12, longest - 15), (5, 2)]
    return [[words(question), words(text)] for question, text in lengths] + [["w7 unheard", "W9, [SEP] w10!"]]


def inputs(random, longest):
    """Ids of several lengths, and texts."""
    lengths = [1, 2, 7, 40, 17, 33, longest, 3, 64, 25]
    texts = ["w7 w8, W9!", "unheard of w10", "w11 " * 30]
    return [random.integers(len(SPECIAL), WORDS, length).tolist() for length in lengths] + texts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    asked = parser.parse_args()
    table, only = [], asked.only.split(",") if asked.only else []
    for index, (name, config, *rest) in enumerate(MODELS):
        if only and name not in only:
            continue
        random = np.random.default_rng([asked.seed, index])
        embed = write(asked.out / name, random, config, *rest)
        bounds = {"bert": 96, "xlm-roberta": 96, "nomic_bert": 128}
        longest = bounds.get(config["model_type"], 650)
        tokens = Tokenizer.from_file(str(asked.out / name / "tokenizer.json"))
        if ranks(config):
            asked_for = pairs(random, longest)
            # A control token that is spelled in a text stays text there.
            tokens.encode_special_tokens = True
            read = [tokens.encode(*pair) for pair in asked_for]
            vectors = [embed(np.array(one.ids), np.array(one.type_ids)).tolist() for one in read]
            table.append({"name": name, "inputs": asked_for, "ids": [one.ids for one in read], "vectors": vectors})
            continue
        asked_for = inputs(random, longest)
        ids = [tokens.encode(one).ids if isinstance(one, str) else one for one in asked_for]
        vectors = [embed(np.array(one)).tolist() for one in ids]
        table.append({"name": name, "inputs": asked_for, "ids": ids, "vectors": vectors})
    (asked.out / "table.json").write_text(json.dumps(table))


if __name__ == "__main__":
    main()
