"""Ours, mlx-lm and llama.cpp on one NVIDIA card by turns, as tables in Markdown: medians of the rounds with their
ranges, the bandwidth of the card's memory and the load of the computer. Each measurement is a process of its own, which
loads anew and warms up. Weights are random; layers, widths and vocabularies are those of real models."""
import argparse
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from beside import BATCH_GENERATE, BATCH_PROMPT, DECODED, GENERATE, HERE, PROMPTS, SEQUENCES, decode_row, shares
from figures import OURS, measure, table
from llama_peer import SHAPES as FOR_LLAMA_CPP
from llama_peer import LlamaCpp
from mlx_peer import MlxLm
from ours import Ours

# Shapes of crates/random-models; Gemma 4 is measured without llama.cpp.
SHAPES = ["qwen3-4b", "qwen3-30b-a3b", "gpt-oss-20b", "gemma4-e4b"]
FORMS = ["speed", "batch"]
PEERS = ["mlx-lm", "llama.cpp"]


@dataclass
class Work:
    """A shape and how much of it is measured."""

    name: str
    folder: Path
    gguf: Path | None
    prompts: list = field(default_factory=lambda: PROMPTS)
    generate: int = GENERATE
    sequences: list = field(default_factory=lambda: SEQUENCES)
    batch_prompt: int = BATCH_PROMPT
    batch_generate: int = BATCH_GENERATE


def parsed():
    parser = argparse.ArgumentParser(prog="./dev bench gpu", description=__doc__)
    parser.add_argument("--bench", help=argparse.SUPPRESS)
    parser.add_argument("--mlx", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--oracle", help=argparse.SUPPRESS)
    parser.add_argument("--library", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--cuda", default="", help=argparse.SUPPRESS)
    parser.add_argument("--shapes", type=Path, required=True, help="where the models are written; best in memory")
    names = [*SHAPES, *FORMS, OURS, *PEERS]
    only = "shapes, measurements and engines: " + ", ".join(names)
    parser.add_argument("--only", nargs="+", default=[], choices=names, metavar="NAME", help=only)
    parser.add_argument("--repeat", type=int, default=3, help="rounds")
    parser.add_argument("--prompts", type=int, nargs="+", default=PROMPTS, help="lengths of prompts")
    parser.add_argument("--generate", type=int, default=GENERATE, help="tokens of an answer")
    parser.add_argument("--sequences", type=int, nargs="+", default=SEQUENCES, help="sizes of batches, 32 at most")
    parser.add_argument("--keep", action="store_true", help="leave the models, 67 GB of them")
    parser.add_argument("--json", type=Path, help="a file for all figures")
    return parser.parse_args()


def installed(args):
    """The engines that are there; this program runs with what it is given."""
    engines = [
        args.bench and Ours(OURS, bench=args.bench, libraries=args.mlx),
        args.oracle and MlxLm("mlx-lm", python=args.oracle),
        args.library and LlamaCpp("llama.cpp", library=args.library, cuda=args.cuda),
    ]
    return [engine for engine in engines if engine]


def wanted(args):
    names = [name for name in [OURS, *PEERS] if name in args.only] or [OURS, *PEERS]
    return [engine for engine in installed(args) if engine.name in names]


def card(*arguments):
    """The card is asked in another process, because what it has of its memory would count for those that follow."""
    command = [sys.executable, HERE / "card.py", *arguments]
    ran = subprocess.run(command, stdout=subprocess.PIPE)
    if ran.returncode:
        # It has said why.
        raise SystemExit(ran.returncode)
    return json.loads(ran.stdout)


def work_of(args, name):
    gguf = args.shapes / f"{name}.gguf" if name in FOR_LLAMA_CPP else None
    sizes = {"prompts": args.prompts, "generate": args.generate, "sequences": args.sequences}
    return Work(name, args.shapes / name, gguf, **sizes)


def prepare(args, engines, work):
    args.shapes.mkdir(parents=True, exist_ok=True)
    print(f"writing {work.name}", file=sys.stderr)
    for engine in installed(args):
        # Ours writes the shape that the others have, too.
        if hasattr(engine, "prepare") and (engine in engines or engine.name == OURS):
            engine.prepare(work)
    # The disk is still when something is measured.
    os.sync()


def remove(work):
    shutil.rmtree(work.folder, ignore_errors=True)
    if work.gguf:
        work.gguf.unlink(missing_ok=True)


def measured(args, engines, work, forms):
    try:
        prepare(args, engines, work)
        bandwidth, before = card("--bandwidth")["bandwidth"], os.getloadavg()
        figures = measure(engines, work, forms, args.repeat)
        decoded = {row: figures[row] for row in map(decode_row, DECODED) if row in figures}
        figures = decoded | shares(figures, engines, work, bandwidth["read"]) | figures
    finally:
        if not args.keep:
            remove(work)
    table(work.name, figures, engines, PEERS, before)
    read, copied = (bandwidth[way] / 1e12 for way in ("read", "copy"))
    print(f"Memory: {read:.2f} TB/s read, which the roofline has; {copied:.2f} TB/s read and written by a copy.")
    return {"figures": figures, "bandwidth": bandwidth}


def main():
    args = parsed()
    engines = wanted(args)
    found = card()
    forms = [form for form in FORMS if form in args.only] or FORMS
    names = [name for name in SHAPES if name in args.only] or SHAPES
    cuda = f"{found['cuda'] // 1000}.{found['cuda'] % 1000 // 10}"
    print(f"{found['name']}, driver of CUDA {cuda}, {os.cpu_count()} cores, rounds: {args.repeat}.")
    print("A ratio is in favor of ours above 1 for speeds, below 1 for times.", flush=True)
    results = {}
    for name in names:
        work = work_of(args, name)
        if not (taking_part := [engine for engine in engines if engine.measures(work, forms[0])]):
            continue
        results[name] = measured(args, taking_part, work, forms)
        if args.json:
            args.json.write_text(json.dumps(results, indent=1))
    print()
    for engine in engines:
        if versions := getattr(engine, "versions", None):
            print(f"{engine.name}: {versions}")


if __name__ == "__main__":
    main()
