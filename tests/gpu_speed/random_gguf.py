"""A GGUF file of random weights with the layers, widths and vocabulary of a shape, written tensor by tensor.

    python random_gguf.py CONFIG OUT

CONFIG is the shape's config.json. Matrices are Q4_0, which has exactly the bytes of MLX's 4 bits in groups of 64; of
gpt-oss the experts are MXFP4 and the rest is Q8_0, as in the published file."""
import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf import GGUFWriter, RopeScalingType

sys.path.insert(0, str(Path(__file__).parent.parent / "cpu_speed"))
from gguf_file import add_shapes  # noqa: E402

ARCHITECTURES = {"qwen3": "qwen3", "qwen3_moe": "qwen3moe", "gpt_oss": "gpt-oss"}
# Weights of a block, and its bytes.
BLOCK = 32
BYTES = {Type.Q4_0: 18, Type.Q8_0: 34, Type.MXFP4: 17}
# Blocks that tensors are made of, again and again. The number is prime, so that no two rows are the same.
POOL = 40009
# Spread of codes from 1 to 15, of those from -127 to 127, of the numbers that four bit floats can be.
SPREAD = {Type.Q4_0: 4.32, Type.Q8_0: 73.3, Type.MXFP4: 2.93}


@dataclass
class Piece:
    """A tensor: rows of `shape[-1]` inputs. Weights spread by `spread`; norms and biases are all the same."""

    name: str
    kind: Type
    shape: tuple
    spread: float = 0.0
    constant: float | None = None

    def stored(self):
        """The shape as gguf takes it: bytes of packed weights."""
        return (*self.shape[:-1], self.shape[-1] // BLOCK * BYTES[self.kind]) if self.kind in BYTES else self.shape

    def bytes(self):
        return math.prod(self.stored()) * (1 if self.kind in BYTES else 4)


class Layout:
    """The tensors of a config."""

    def __init__(self, config):
        self.config, self.pieces = config, []
        self.oss = config["model_type"] == "gpt_oss"
        self.experts = config.get("num_experts") or config.get("num_local_experts")
        self.hidden = config["hidden_size"]
        base = Type.Q8_0 if self.oss else Type.Q4_0
        tied = config["tie_word_embeddings"]
        self.matrix("token_embd", base, config["vocab_size"], self.hidden, spread=None if tied else 1.0)
        self.same("output_norm.weight", 1.0, self.hidden)
        if not tied:
            self.matrix("output", base, config["vocab_size"], self.hidden)
        for layer in range(config["num_hidden_layers"]):
            path = f"blk.{layer}."
            self.attention(path, base)
            self.mlp(path, base)

    def matrix(self, name, kind, *shape, spread=None):
        spread = 1 / math.sqrt(shape[-1]) if spread is None else spread
        self.pieces.append(Piece(name + ".weight", kind, shape, spread))

    def same(self, name, constant, *shape):
        self.pieces.append(Piece(name, Type.F32, shape, constant=constant))

    def attention(self, path, base):
        config, width = self.config, self.config["head_dim"]
        queries, keys = config["num_attention_heads"] * width, config["num_key_value_heads"] * width
        self.same(path + "attn_norm.weight", 1.0, self.hidden)
        for name, rows, inputs in [
            ("attn_q", queries, self.hidden),
            ("attn_k", keys, self.hidden),
            ("attn_v", keys, self.hidden),
            ("attn_output", self.hidden, queries),
        ]:
            self.matrix(path + name, base, rows, inputs)
            if self.oss:
                self.same(path + name + ".bias", 0.0, rows)
        if self.oss:
            self.same(path + "attn_sinks.weight", 0.0, config["num_attention_heads"])
        else:
            for name in ("attn_q_norm", "attn_k_norm"):
                self.same(f"{path}{name}.weight", 1.0, width)

    def mlp(self, path, base):
        config = self.config
        self.same(path + ("post_attention_norm.weight" if self.oss else "ffn_norm.weight"), 1.0, self.hidden)
        count, end, wide = (), "", config["intermediate_size"]
        if self.experts:
            count, end, wide = (self.experts,), "_exps", config.get("moe_intermediate_size", wide)
            base = Type.MXFP4 if self.oss else base
            self.matrix(path + "ffn_gate_inp", Type.F32, self.experts, self.hidden)
        for name, rows, inputs in [
            ("ffn_gate", wide, self.hidden),
            ("ffn_up", wide, self.hidden),
            ("ffn_down", self.hidden, wide),
        ]:
            self.matrix(path + name + end, base, *count, rows, inputs)
            if self.oss:
                self.same(path + name + end + ".bias", 0.0, *count, rows)
        if self.oss:
            self.same(path + "ffn_gate_inp.bias", 0.0, self.experts)


def blocks(kind, spread, random):
    """Random blocks whose weights have no mean and this standard deviation. With a mean, all tokens would be the same
    after some layers, and go to the same experts."""
    scale = spread / SPREAD[kind]
    half = np.full((POOL, 1), scale, np.float16).view(np.uint8)
    if kind == Type.Q4_0:
        codes = random.integers(1, 16, (2, POOL, BLOCK // 2), dtype=np.uint8)
        return np.concatenate([half, codes[0] | codes[1] << 4], axis=1)
    if kind == Type.Q8_0:
        return np.concatenate([half, random.integers(-127, 128, (POOL, BLOCK), dtype=np.int8).view(np.uint8)], axis=1)
    exponent = np.full((POOL, 1), 127 + round(math.log2(scale)), np.uint8)
    return np.concatenate([exponent, random.integers(0, 256, (POOL, BLOCK // 2), dtype=np.uint8)], axis=1)


class Weights:
    def __init__(self):
        self.random, self.pools = np.random.default_rng(20261129), {}

    def of(self, piece):
        if piece.constant is not None:
            return np.full(piece.shape, piece.constant, np.float32)
        if piece.kind == Type.F32:
            return self.random.standard_normal(piece.shape, dtype=np.float32) * np.float32(piece.spread)
        key = piece.kind, piece.spread
        if key not in self.pools:
            self.pools[key] = blocks(piece.kind, piece.spread, self.random)
        pool = np.roll(self.pools[key], -int(self.random.integers(POOL)), axis=0)
        return np.resize(pool.reshape(-1), piece.stored())


def header(writer, config):
    add_shapes(writer, config)
    if window := config.get("sliding_window"):
        writer.add_sliding_window(window)
    if scaling := config.get("rope_scaling"):
        writer.add_rope_scaling_type(RopeScalingType(scaling["rope_type"]))
        writer.add_rope_scaling_factor(scaling["factor"])
        writer.add_rope_scaling_orig_ctx_len(scaling["original_max_position_embeddings"])


def write(config, path):
    """Writes the file; it has its name when it is whole."""
    part = path.with_suffix(".part")
    writer = GGUFWriter(part, ARCHITECTURES[config["model_type"]])
    header(writer, config)
    pieces, weights = Layout(config).pieces, Weights()
    for piece in pieces:
        kind = np.uint8 if piece.kind in BYTES else np.float32
        writer.add_tensor_info(piece.name, piece.stored(), np.dtype(kind), piece.bytes(), raw_dtype=piece.kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for piece in pieces:
        writer.write_tensor_data(weights.of(piece))
    writer.close()
    part.rename(path)


if __name__ == "__main__":
    write(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
