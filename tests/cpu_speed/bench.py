"""Ours, llama.cpp and mlx-lm on a processor by turns, as tables in Markdown: medians of the rounds with their ranges,
and the load of the computer. Each measurement is a process of its own. The models are equal on all sides, and written
before they are measured."""
import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import models
import perplexity
from engines import CPUS, LlamaCpp, MlxLm, Ours, Work, physical_cores
from figures import OURS, measure, table

HERE = Path(__file__).resolve().parent
FORMS = ["speed", "batch", "ask"]
# Lengths of prompts, and tokens that are generated.
SIZES = {name: ([32, 512, 2048], 96) for name in models.SMOLLM2} | {
    "llama-1b": ([32, 512, 2048], 32),
    "qwen3-4b": ([32, 512, 2048], 16),
    "qwen3-30b-a3b-6-layers": ([32, 512, 2048], 32),
}


def parsed():
    parser = argparse.ArgumentParser(prog="./dev bench cpu", description=__doc__)
    parser.add_argument("--bench", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--ponder", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--library", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--oracle", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--preload", help=argparse.SUPPRESS)
    parser.add_argument("--smollm2", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--shapes", type=Path, required=True, help=argparse.SUPPRESS)
    names = [*models.NAMES, *FORMS, "perplexity"]
    only = "models and measurements: " + ", ".join(names)
    parser.add_argument("--only", nargs="+", default=[], choices=names, metavar="NAME", help=only)
    parser.add_argument("--quick", action="store_true", help="SmolLM2 alone")
    parser.add_argument("--cpu", choices=CPUS, help="a lesser instruction set: haswell has AVX2, as most laptops")
    parser.add_argument("--threads", type=int, default=physical_cores(), help="default: the physical cores")
    parser.add_argument("--repeat", type=int, default=3, help="rounds")
    parser.add_argument("--prompts", type=int, nargs="+", help="other lengths of prompts")
    parser.add_argument("--tokens", type=int, default=20000, help="tokens of text for the perplexity")
    parser.add_argument("--keep", action="store_true", help="leave the models, 11 GB of them")
    parser.add_argument("--json", type=Path, help="a file for all figures")
    return parser.parse_args()


def engines_of(args):
    common = {"threads": args.threads, "cpu": args.cpu}
    return [
        Ours(OURS, **common, bench=args.bench, ponder=args.ponder),
        LlamaCpp("llama.cpp", **common, library=args.library, python=sys.executable),
        MlxLm("mlx-lm", **common, python=args.oracle, preload=args.preload),
    ]


def prepare(args, name):
    """Writes a model for both sides unless it is there. Numpy has its memory in another process."""
    work = Work(name, args.shapes / name, args.shapes / f"{name}.gguf", *SIZES[name])
    work.prompts = args.prompts or work.prompts
    if not (args.shapes / f"{name}.complete").exists():
        args.shapes.mkdir(parents=True, exist_ok=True)
        print(f"writing {name}", file=sys.stderr)
        subprocess.run([sys.executable, HERE / "models.py", name, args.smollm2, args.shapes], check=True)
        (args.shapes / f"{name}.complete").touch()
        # The disk is still when something is measured.
        os.sync()
    return work


def remove(work):
    shutil.rmtree(work.folder, ignore_errors=True)
    for path in (work.gguf, work.gguf.with_suffix(".complete")):
        path.unlink(missing_ok=True)


def main():
    args = parsed()
    engines = engines_of(args)
    names = [name for name in models.NAMES if name in args.only] or (models.SMOLLM2 if args.quick else models.NAMES)
    chosen = [form for form in [*FORMS, "perplexity"] if form in args.only] or [*FORMS, "perplexity"]
    forms = [form for form in FORMS if form in chosen]
    best = "the best of this computer"
    print(f"{args.threads} threads, rounds: {args.repeat}, instruction set: {args.cpu or best}.", flush=True)
    print("A ratio is in favor of ours above 1 for speeds, below 1 for times and memory.", flush=True)
    results, predicted = {}, {}
    for name in names:
        work = prepare(args, name)
        try:
            if forms:
                before = os.getloadavg()
                results[name] = measure(engines, work, forms, args.repeat)
                table(name, results[name], engines, ["llama.cpp"], before)
            # 32 bits hold the same numbers as 16.
            if "perplexity" in chosen and name in models.SMOLLM2 and not name.endswith("32bit"):
                predicted[name] = perplexity.measure(engines, work, args)
        finally:
            if not args.keep:
                remove(work)
    if predicted:
        perplexity.table(predicted, engines, args)
    print()
    for engine in engines:
        if versions := getattr(engine, "versions", None):
            print(f"{engine.name}: {versions}")
    if args.json:
        args.json.write_text(json.dumps({"figures": results, "perplexity": predicted}, indent=1))


if __name__ == "__main__":
    main()
