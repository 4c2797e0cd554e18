"""Blocks of every format and the numbers that they stand for, by llama.cpp's own Python: the figures in
`src-tauri/crates/checkpoint/src/gguf/blocks/figures.json`.

    python gguf_blocks.py OUT

Blocks are random bytes with sound scales; the last ones are what `quantize` makes of random numbers, where it can."""
import json
import sys

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as Type
from gguf.quants import dequantize, quantize

# Places of 16 bit floats in a block.
HALVES = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108],
    "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0], "MXFP4": [],
}
QUANTIZED = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "MXFP4"]
NUMBERS = 96


def main():
    random, made = np.random.default_rng(20261121), {}
    for name, places in HALVES.items():
        kind = Type[name]
        size, width = GGML_QUANT_SIZES[kind]
        count = max(1, NUMBERS // size)
        blocks = random.integers(0, 256, (count, width), dtype=np.uint8)
        for place in places:
            scales = (random.standard_normal((count, 1)) * 0.01).astype(np.float16)
            blocks[:, place : place + 2] = scales.view(np.uint8)
        if name == "MXFP4":
            blocks[:, 0] = [1, 120, 130]
        if name in QUANTIZED:
            numbers = random.standard_normal((2, size)).astype(np.float32)
            blocks = np.concatenate([blocks, quantize(numbers, kind).reshape(2, width)])
        numbers = dequantize(blocks.reshape(1, -1), kind).reshape(-1)
        made[name] = {"bytes": blocks.tobytes().hex(), "numbers": numbers.astype(np.float32).view(np.uint32).tolist()}
    with open(sys.argv[1], "w") as file:
        file.write("{\n" + ",\n".join(f' "{name}": {json.dumps(value)}' for name, value in made.items()) + "\n}\n")


if __name__ == "__main__":
    main()
