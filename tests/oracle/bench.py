"""Speed of mlx-lm on the tokens that the engine's own measurement uses: in 32 bit floats on a CPU, on a GPU as the model is.
Prints a JSON list with one object for each length of prompt."""
import argparse
import json
import sys
import time
from pathlib import Path

import mlx.core as mx
import mlx_lm
from mlx_lm.generate import generate_step
from mlx_lm.utils import load_model

from oracle import blas, load_in_f32


def load(path, as_stored):
    if not as_stored:
        return load_in_f32(path)
    model, _ = load_model(Path(path))
    mx.eval(model.parameters())
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="the model's folder")
    parser.add_argument("--prompt-tokens", type=int, nargs="+", default=[128])
    parser.add_argument("--generate", type=int, default=128)
    parser.add_argument("--as-stored", action="store_true", help="compute with the model's own type on a CPU, too")
    args = parser.parse_args()
    on_gpu = mx.metal.is_available() or (hasattr(mx, "cuda") and mx.cuda.is_available())
    if not on_gpu:
        mx.set_default_device(mx.cpu)

    start = time.perf_counter()
    model = load(args.model, on_gpu or args.as_stored)
    load_ms = (time.perf_counter() - start) * 1000
    config = json.loads((Path(args.model) / "config.json").read_text())
    vocabulary = config.get("vocab_size") or config["text_config"]["vocab_size"]

    def measure(prompt, tokens):
        start = time.perf_counter()
        first = last = None
        for _ in generate_step(prompt, model, max_tokens=tokens, **({} if on_gpu else {"stream": mx.default_stream(mx.cpu)})):
            last = time.perf_counter() - start
            first = last if first is None else first
        return first, last

    figures = []
    for index, length in enumerate(args.prompt_tokens):
        if index > 0:
            mx.reset_peak_memory()
        prompt = mx.array([(place * 7919 + 13) % vocabulary for place in range(length)])
        # The first run compiles the fused operations.
        measure(prompt, 2)
        first, last = measure(prompt, args.generate)
        figures.append({
            "prompt_tokens": length,
            "load_ms": load_ms,
            "prefill_tokens_per_second": length / first,
            "first_token_ms": first * 1000,
            "decode_tokens_per_second": (args.generate - 1) / (last - first) if last > first else 0.0,
            "peak_bytes": mx.get_peak_memory(),
            "versions": f"mlx-lm {mlx_lm.__version__}, mlx {mx.__version__}, {blas() if sys.platform == 'linux' and not on_gpu else mx.default_device()}",
        })
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
