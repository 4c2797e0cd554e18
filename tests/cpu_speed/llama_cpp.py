"""Speed, memory and perplexity of llama.cpp on the tokens that the engine's own measurements use. Prints one line of
JSON."""
import argparse
import json
import time
from pathlib import Path

import numpy as np

from libllama import Model, back_end, open_library


def memory(field):
    """A figure of this process in bytes: VmRSS now, VmHWM at most."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":"))


def prompt_of(length, vocabulary, sequence=0):
    return [(place * 7919 + 13 + sequence * 104729) % vocabulary for place in range(length)]


def speed(model, args):
    model.open(max(args.prompt_tokens) + max(args.generate, args.warm_up))

    def measure(prompt, tokens):
        model.clear()
        start = model.seconds
        token = model.read(prompt)
        first = model.seconds - start
        for place in range(tokens - 1):
            token = model.step([token], len(prompt) + place)[0]
        return first, model.seconds - start

    figures = []
    for length in args.prompt_tokens:
        prompt = prompt_of(length, model.vocabulary)
        measure(prompt, args.warm_up)
        first, last = measure(prompt, args.generate)
        figures.append({
            "prompt_tokens": length,
            "prefill_tokens_per_second": length / first,
            "decode_tokens_per_second": (args.generate - 1) / (last - first),
        })
    return figures


def batch(model, args):
    length, rates = args.prompt_tokens[0], []

    def measure(count, steps):
        model.clear()
        # Prompts are all different, as ours are: equal ones share experts.
        prompts = [prompt_of(length, model.vocabulary, sequence) for sequence in range(count)]
        tokens = [model.read(prompt, sequence) for sequence, prompt in enumerate(prompts)]
        tokens = model.step(tokens, length)
        start = model.seconds
        for place in range(1, steps):
            tokens = model.step(tokens, length + place)
        return (steps - 1) * count / (model.seconds - start)

    for count in args.sequences:
        model.open(length + max(args.generate, args.warm_up), count)
        measure(count, args.warm_up)
        rates.append(measure(count, args.generate))
    return rates


def perplexity(model, args):
    found, predictions = model.perplexity(json.loads(args.tokens.read_text()), args.chunk)
    return {"perplexity": found, "predictions": predictions}


def ask(model, args):
    model.open(args.prompt_tokens[0] + 1)
    model.read(prompt_of(args.prompt_tokens[0], model.vocabulary))


FORMS = {"speed": speed, "batch": batch, "perplexity": perplexity, "ask": ask}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("form", choices=FORMS)
    parser.add_argument("--library", type=Path, required=True, help="the folder of libllama")
    parser.add_argument("--cpu", help="a back end instead of the fastest, such as haswell")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--model", required=True, help="a GGUF file")
    parser.add_argument("--prompt-tokens", type=int, nargs="+", default=[32])
    parser.add_argument("--generate", type=int, default=32)
    parser.add_argument("--warm-up", type=int, default=2, help="tokens that are generated before")
    parser.add_argument("--sequences", type=int, nargs="+", default=[1])
    parser.add_argument("--tokens", type=Path, help="a JSON list of token ids")
    parser.add_argument("--chunk", type=int, default=512)
    args = parser.parse_args()
    # Python and numpy are no part of llama.cpp.
    before, start = memory("VmRSS"), time.perf_counter()
    library = open_library(args.library, args.cpu)
    loading = time.perf_counter()
    model = Model(library, args.model, args.threads)
    load_ms = (time.perf_counter() - loading) * 1000
    figures = FORMS[args.form](model, args)
    total_ms = (time.perf_counter() - start) * 1000
    version = next(args.library.glob("libllama.*so")).name.removeprefix("libllama.").removesuffix(".so")
    print(json.dumps({
        "figures": figures,
        "load_ms": load_ms,
        "total_ms": total_ms,
        "peak_bytes": memory("VmHWM") - before,
        "versions": f"llama.cpp {version}, {back_end()}, {args.threads} threads",
    }))


if __name__ == "__main__":
    main()
