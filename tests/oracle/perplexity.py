"""The perplexity of mlx-lm in 32 bit floats over chunks of tokens, each read with nothing before it: the second half of
a chunk is predicted, as llama.cpp's `llama-perplexity` has it."""
import argparse
import json
import math
from pathlib import Path

import mlx.core as mx
import mlx.nn as nn

from oracle import load_in_f32


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="the model's folder")
    parser.add_argument("--tokens", type=Path, required=True, help="a JSON list of token ids")
    parser.add_argument("--chunk", type=int, default=512)
    args = parser.parse_args()
    mx.set_default_device(mx.cpu)
    model = load_in_f32(args.model)
    tokens, total, predictions, half = json.loads(args.tokens.read_text()), 0.0, 0, args.chunk // 2
    for start in range(0, len(tokens) - args.chunk + 1, args.chunk):
        chunk = mx.array(tokens[start : start + args.chunk])
        logits = model(chunk[None])[0, half:-1]
        losses = nn.losses.cross_entropy(logits, chunk[half + 1 :])
        total += math.fsum(losses.tolist())
        predictions += losses.size
    print(json.dumps({"perplexity": math.exp(total / predictions), "predictions": predictions}))


if __name__ == "__main__":
    main()
