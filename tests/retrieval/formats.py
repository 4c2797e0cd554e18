"""The model with its numbers in other types, as converters store them: 16 bits, or 8 bits of groups of 64 as MLX packs
them."""
import json
import shutil

import numpy as np
from safetensors.numpy import load_file

GROUP = 64
FORMATS = ("f32", "f16", "bf16", "8bit")


def write(folder, to, kind):
    """The model of `folder` in `to`, in this format."""
    shutil.copytree(folder, to)
    if kind == "f32":
        return
    tensors = {}
    for name, numbers in load_file(folder / "model.safetensors").items():
        if numbers.dtype != np.float32:
            tensors[name] = ("I64", numbers)
        elif kind == "8bit" and numbers.ndim == 2 and numbers.shape[1] % GROUP == 0:
            path = name.removesuffix(".weight")
            tensors |= {f"{path}.{part}": value for part, value in packed(numbers).items()}
        else:
            tensors[name] = rounded(numbers) if kind == "bf16" else ("F16", numbers.astype(np.float16))
    save(tensors, to / "model.safetensors")
    if kind == "8bit":
        config = json.loads((folder / "config.json").read_text())
        config["quantization"] = {"group_size": GROUP, "bits": 8, "mode": "affine"}
        (to / "config.json").write_text(json.dumps(config))


def save(tensors, file):
    """Types and numbers by name, as safetensors has them; numpy lacks one of the types."""
    header, end = {"__metadata__": {"format": "mlx"}}, 0
    for name, (dtype, numbers) in tensors.items():
        header[name] = {"dtype": dtype, "shape": numbers.shape, "data_offsets": [end, end + numbers.nbytes]}
        end += numbers.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with file.open("wb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        for _, numbers in tensors.values():
            out.write(np.ascontiguousarray(numbers).data)


def rounded(numbers):
    """The nearest numbers with 8 bits of mantissa; of two as near the even one."""
    bits = numbers.view(np.uint32)
    return "BF16", ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def packed(numbers):
    """256 steps from the least to the greatest number of each group, four in a word."""
    rows = len(numbers)
    groups = numbers.reshape(rows, -1, GROUP)
    least = groups.min(-1, keepdims=True).astype(np.float16)
    step = ((groups.max(-1, keepdims=True) - least) / 255).astype(np.float16)
    codes = np.rint((groups - least) / np.maximum(step, np.float16(1e-7))).clip(0, 255).astype(np.uint8)
    return {
        "weight": ("U32", codes.reshape(rows, -1).view(np.uint32)),
        "scales": ("F16", step[..., 0]),
        "biases": ("F16", least[..., 0]),
    }
