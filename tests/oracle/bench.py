"""Speed of mlx-lm in 32 bit floats on the CPU, on the tokens that the engine's own measurement uses. Prints JSON."""
import argparse
import json
import time

import mlx.core as mx
import mlx_lm
from mlx_lm.generate import generate_step

from oracle import load_in_f32


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="the model's folder")
    parser.add_argument("--prompt-tokens", type=int, default=128)
    parser.add_argument("--generate", type=int, default=128)
    parser.add_argument("--repeat", type=int, default=1, help="measure so many times; prints a list of figures where more than 1")
    args = parser.parse_args()
    mx.set_default_device(mx.cpu)

    start = time.perf_counter()
    model = load_in_f32(args.model)
    load_ms = (time.perf_counter() - start) * 1000
    vocabulary = model.args.vocab_size
    prompt = mx.array([(index * 7919 + 13) % vocabulary for index in range(args.prompt_tokens)])

    def measure(tokens):
        start = time.perf_counter()
        first = last = None
        for _ in generate_step(prompt, model, stream=mx.default_stream(mx.cpu), max_tokens=tokens):
            last = time.perf_counter() - start
            first = last if first is None else first
        return {
            "load_ms": load_ms,
            "prefill_tokens_per_second": args.prompt_tokens / first,
            "first_token_ms": first * 1000,
            "decode_tokens_per_second": (tokens - 1) / (last - first) if last > first else 0.0,
            "peak_bytes": mx.get_peak_memory(),
            "versions": f"mlx-lm {mlx_lm.__version__}, mlx {mx.__version__}",
        }

    # The first run compiles the fused operations.
    measure(2)
    figures = [measure(args.generate) for _ in range(args.repeat)]
    print(json.dumps(figures[0] if args.repeat == 1 else figures))


if __name__ == "__main__":
    main()
