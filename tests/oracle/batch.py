"""Speed of mlx-lm's BatchGenerator with several sequences at once: in 32 bit floats on a CPU, on a GPU as the model is.
Prints a JSON list of tokens per second, one for each number of sequences, while all of them decode."""
import argparse
import json
import time
from pathlib import Path

import mlx.core as mx
from mlx_lm.generate import BatchGenerator

from bench import load


def measure(model, prompts, tokens, stream):
    # More tokens than are timed: not all prompts are read at once, and all sequences have to decode meanwhile.
    options, count = {"stream": stream} if stream is not None else {}, len(prompts)
    generator = BatchGenerator(model, max_tokens=tokens + 64, prefill_batch_size=count, **options)
    generator.insert(prompts)
    while len(generator.next_generated()) < count:
        pass
    start = time.perf_counter()
    for _ in range(tokens):
        assert len(generator.next_generated()) == count
    spent = time.perf_counter() - start
    generator.close()
    return tokens * count / spent


def prompt_of(sequence, length, vocabulary):
    return [(place * 7919 + 13 + sequence * 104729) % vocabulary for place in range(length)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="the model's folder")
    parser.add_argument("--sequences", type=int, nargs="+", required=True)
    parser.add_argument("--prompt-tokens", type=int, default=128)
    parser.add_argument("--generate", type=int, default=128)
    args = parser.parse_args()
    on_gpu = mx.metal.is_available() or (hasattr(mx, "cuda") and mx.cuda.is_available())
    if not on_gpu:
        mx.set_default_device(mx.cpu)
    stream = None if on_gpu else mx.default_stream(mx.cpu)
    model = load(args.model, on_gpu)
    config = json.loads((Path(args.model) / "config.json").read_text())
    vocabulary = config.get("vocab_size") or config["text_config"]["vocab_size"]
    rates = []
    for count in args.sequences:
        # Prompts are all different, as those of the engine's own measurement: equal ones share experts.
        prompts = [prompt_of(sequence, args.prompt_tokens, vocabulary) for sequence in range(count)]
        # The first run compiles the fused operations.
        measure(model, prompts, 2, stream)
        rates.append(measure(model, prompts, args.generate, stream))
    print(json.dumps(rates))


if __name__ == "__main__":
    main()
