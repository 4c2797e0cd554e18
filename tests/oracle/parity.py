"""Logits and greedy continuations of mlx-lm in 32 bit floats, for the engine's parity test."""
import argparse
import random

import mlx.core as mx
from mlx_lm.models.cache import make_prompt_cache

from oracle import load_in_f32

PROMPTS = 20
LONGEST = 300
CONTINUATION = 100
FIRST_ORDINARY_TOKEN = 300


def prompts(vocabulary):
    """Ordinary tokens at random, the same every time; lengths on both sides of every window and chunk border."""
    source = random.Random(20)
    lengths = [1, 2, 7, 127, 128, 129, 255, 256, 257, LONGEST]
    lengths += [source.randint(3, LONGEST) for _ in range(PROMPTS - len(lengths))]
    return [[2] + [source.randrange(FIRST_ORDINARY_TOKEN, vocabulary) for _ in range(length - 1)] for length in lengths]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="the model's folder")
    parser.add_argument("--out", required=True, help="the safetensors file to write")
    args = parser.parse_args()
    mx.set_default_device(mx.cpu)
    model = load_in_f32(args.model)
    arrays = {}
    for index, ids in enumerate(prompts(model.args.vocab_size)):
        cache = make_prompt_cache(model)
        logits = model(mx.array(ids)[None], cache=cache)
        arrays[f"logits.{index}"] = logits[0].astype(mx.float32)
        token, made = mx.argmax(logits[0, -1]), []
        for _ in range(CONTINUATION):
            made.append(token.item())
            token = mx.argmax(model(token.reshape(1, 1), cache=cache)[0, -1])
        arrays[f"prompt.{index}"] = mx.array(ids, dtype=mx.int32)
        arrays[f"greedy.{index}"] = mx.array(made, dtype=mx.int32)
        mx.eval(list(arrays.values()))
    mx.save_safetensors(args.out, arrays)


if __name__ == "__main__":
    main()
