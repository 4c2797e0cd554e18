"""The models that are measured, each as a folder for MLX and as a GGUF file with the same numbers in as many bits.

    python models.py NAME SMOLLM2 OUT

MLX's 4 bits are scale × code + bias in groups. With a bias of -8 scales a group of 64 is two blocks of GGUF's Q4_0
that share their scale; Q4_1 is a group of 32 with any bias; 8 bits with a bias of -128 scales are Q8_0."""
import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

import gguf_file

# Names as users of llama.cpp know them: bits and group of MLX.
FORMS = {"q4_0": (4, 64), "q4_1": (4, 32), "q8_0": (8, 64)}
SMOLLM2 = ["smollm2-q4_0", "smollm2-q4_1", "smollm2-q8_0", "smollm2-16bit", "smollm2-32bit"]
# Configs of real models; of the mixture six of 48 layers, so that it fits where 30 billion weights do not.
SHAPES = json.loads(Path(__file__).with_name("shapes.json").read_text())
NAMES = SMOLLM2 + list(SHAPES)
# Spread of codes from 1 to 15.
CODES = 4.32


@dataclass
class Packed:
    """Weights as codes: scale × code + bias, in groups of the last axis."""

    bits: int
    codes: np.ndarray
    scales: np.ndarray
    biases: np.ndarray

    def for_mlx(self, path):
        codes = self.codes
        if self.bits == 4:
            codes = codes[..., 0::2] | codes[..., 1::2] << 4
        words = np.ascontiguousarray(codes).view(np.uint32)
        return {path + ".weight": words, path + ".scales": self.scales, path + ".biases": self.biases}


def pack(weight, form):
    """A matrix in codes whose scales are 16 bit floats in both files."""
    bits, group = FORMS[form]
    grouped = weight.reshape(*weight.shape[:-1], -1, group)
    if form == "q4_1":
        low = grouped.min(axis=-1)
        scales, biases = ((grouped.max(axis=-1) - low) / 15).astype(np.float16), low.astype(np.float16)
    else:
        # The number that is furthest from 0 has the code at the end that is further away, as in llama.cpp.
        far = np.take_along_axis(grouped, np.abs(grouped).argmax(axis=-1)[..., None], axis=-1)[..., 0]
        zero = 1 << bits - 1
        scales = (far / (-zero if bits == 4 else 127)).astype(np.float16)
        biases = scales * np.float16(-zero)
    by = np.where(scales == 0, 1, scales).astype(np.float32)[..., None]
    codes = np.rint((grouped - biases.astype(np.float32)[..., None]) / by).clip(0, (1 << bits) - 1)
    return Packed(bits, codes.astype(np.uint8).reshape(weight.shape), scales, biases)


def draw(random, shape):
    """A random matrix in the form q4_0. Codes go from 1 to 15, because a mean other than 0 would make all tokens the
    same after some layers, and send them to the same experts."""
    codes = random.integers(1, 16, shape, dtype=np.uint8)
    scale = np.float16(1 / (CODES * np.sqrt(shape[-1])))
    scales = np.full((*shape[:-1], shape[-1] // 64), scale)
    return Packed(4, codes, scales, scales * np.float16(-8))


def shape_tensors(config):
    """The tensors of a shape by their names in MLX's folders."""
    random = np.random.default_rng(20261121)
    width, hidden = config["head_dim"], config["hidden_size"]
    queries, keys = config["num_attention_heads"] * width, config["num_key_value_heads"] * width
    tables = ["model.embed_tokens"] if config["tie_word_embeddings"] else ["model.embed_tokens", "lm_head"]
    matrices = {path: (config["vocab_size"], hidden) for path in tables}
    norms = {"model.norm": hidden}
    tensors = {}
    for layer in range(config["num_hidden_layers"]):
        path = f"model.layers.{layer}."
        attention, mlp = path + "self_attn.", path + "mlp."
        matrices |= {attention + "q_proj": (queries, hidden), attention + "o_proj": (hidden, queries)}
        matrices |= {attention + "k_proj": (keys, hidden), attention + "v_proj": (keys, hidden)}
        norms |= {path + "input_layernorm": hidden, path + "post_attention_layernorm": hidden}
        if config["model_type"] != "llama":
            norms |= {attention + "q_norm": width, attention + "k_norm": width}
        wide = (config["intermediate_size"],)
        if experts := config.get("num_experts"):
            router = random.standard_normal((experts, hidden), dtype=np.float32) / np.sqrt(hidden)
            tensors[mlp + "gate.weight"] = router.astype(np.float16)
            mlp, wide = mlp + "switch_mlp.", (experts, config["moe_intermediate_size"])
        matrices |= {mlp + "gate_proj": (*wide, hidden), mlp + "up_proj": (*wide, hidden)}
        matrices[mlp + "down_proj"] = (*wide[:-1], hidden, wide[-1])
    tensors |= {path + ".weight": np.ones(length, np.float16) for path, length in norms.items()}
    return tensors | {path + ".weight": draw(random, shape) for path, shape in matrices.items()}


def read_bfloat16(path):
    """A file of 16 bit weights, which numpy has no type for, in 32 bits."""
    data = np.memmap(path, np.uint8, "r")
    start = 8 + int(data[:8].view(np.uint64)[0])
    header = json.loads(bytes(data[8:start]))
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        first, last = (start + offset for offset in entry["data_offsets"])
        wide = data[first:last].view(np.uint16).astype(np.uint32) << 16
        tensors[name] = wide.view(np.float32).reshape(entry["shape"])
    return tensors


def smollm2_tensors(folder, form):
    tensors = read_bfloat16(folder / "model.safetensors")
    if form == "32bit":
        return tensors
    packed = {}
    for name, weight in tensors.items():
        if form in FORMS and weight.ndim == 2:
            packed[name] = pack(weight, form)
        else:
            packed[name] = weight.astype(np.float16)
    return packed


def save_for_mlx(tensors, form, smollm2, folder):
    if form == "16bit":
        # bfloat16, as the model is: MLX computes float16 on a processor without its instructions.
        shutil.copy(smollm2 / "model.safetensors", folder)
        return
    plain = {}
    for path, tensor in tensors.items():
        plain |= tensor.for_mlx(path.removesuffix(".weight")) if isinstance(tensor, Packed) else {path: tensor}
    save_file(plain, folder / "model.safetensors", {"format": "mlx"})


def write(name, smollm2, out):
    folder = out / name
    shutil.rmtree(folder, ignore_errors=True)
    # The tokenizer of a trained model serves all shapes, since its ids are ids of theirs.
    shutil.copytree(smollm2, folder, ignore=shutil.ignore_patterns("*.safetensors", ".complete"))
    if name in SHAPES:
        form, config = "q4_0", SHAPES[name] | {"eos_token_id": 2, "bos_token_id": 1}
        tensors = shape_tensors(config)
    else:
        form, config = name.removeprefix("smollm2-"), json.loads((smollm2 / "config.json").read_text())
        config["head_dim"] = config["hidden_size"] // config["num_attention_heads"]
        tensors = smollm2_tensors(smollm2, form)
    config["torch_dtype"] = {"16bit": "bfloat16", "32bit": "float32"}.get(form, "float16")
    if form in FORMS:
        config["quantization"] = dict(zip(("bits", "group_size"), FORMS[form]))
    (folder / "config.json").write_text(json.dumps(config))
    save_for_mlx(tensors, form, smollm2, folder)
    gguf_file.write(out / f"{name}.gguf", name, config, tensors)


if __name__ == "__main__":
    write(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
