"""Embeddings of the built command beside all-MiniLM-L6-v2 as sentence-transformers runs it, on real weights: the least
cosine of 200 texts for weights in 32, 16 and 8 bits, and texts per second by turns, beside numpy and ONNX Runtime.

    python parity.py PROGRAM --weights FOLDER [--formats f32 f16 bf16 8bit] [--texts 200] [--tokens 220] [--rounds 3]

Everybody computes with as many threads as OPENBLAS_NUM_THREADS says, or with one for each core. The command is started
for each round; the time of one that embeds a single text is told, too. On a computer that does other things as well,
texts per second of processor time compare better than those of the clock."""
import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

THREADS = int(os.environ.setdefault("OPENBLAS_NUM_THREADS", str(len(os.sched_getaffinity(0)))))

import numpy as np

import formats
from minilm import MiniLm
from minilm_onnx import OnnxMiniLm

# The least cosine that is right for each format.
LEAST = {"f32": 0.9999, "f16": 0.9999, "bf16": 0.9999, "8bit": 0.999}


def texts(wanted, most, tokenizer):
    """Beginnings of this computer's documentation: of `most` tokens, and of each ten one that is shorter."""
    lines = []
    for path in sorted(Path("/usr/share/doc").glob("*/copyright")):
        words = re.sub(r"\s+", " ", path.read_text(errors="ignore")).strip()
        ends = [end for _, end in tokenizer.encode(words).offsets]
        length = most if len(lines) % 10 else 3 + 41 * len(lines) % (most - 3)
        # Its last place is for the token that ends a text.
        if len(ends) >= most:
            lines.append(words[: ends[length - 2]])
        if len(lines) == wanted:
            break
    return lines


class Command:
    """The command with the model in one format."""

    def __init__(self, program, folder, home):
        self.environment = {**os.environ, "PONDER_HOME": home, "HF_HOME": home + "/hub", "PONDER_THREADS": str(THREADS)}
        added = subprocess.run([program, "import", folder], env=self.environment, capture_output=True, text=True)
        if added.returncode:
            sys.exit(added.stderr)
        self.ask = [program, "embed", "-m", re.search('"(.+?)"', added.stdout)[1], "--json"]

    def __call__(self, lines):
        out = subprocess.run(self.ask, input="\n".join(lines), env=self.environment, capture_output=True, text=True)
        if out.returncode:
            sys.exit(out.stderr)
        return np.array([json.loads(line)["embedding"] for line in out.stdout.splitlines()])


def processor_time():
    """Seconds of this process and of the commands that it waited for."""
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--weights", type=Path, required=True, help="the folder of the package's model")
    parser.add_argument("--formats", nargs="+", choices=formats.FORMATS, default=formats.FORMATS)
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument("--tokens", type=int, default=220)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    reference, onnx = MiniLm(options.weights), OnnxMiniLm(options.weights, THREADS)
    lines = texts(options.texts, options.tokens, reference.tokenizer)
    with tempfile.TemporaryDirectory() as home:
        ours = {}
        for kind in options.formats:
            folder = Path(home) / f"minilm-{kind}"
            formats.write(options.weights, folder, kind)
            ours[kind] = Command(options.program, folder, home)
        first = next(iter(ours.values()))
        ways = {f"ours {kind}": command for kind, command in ours.items()}
        ways["start of the command"] = lambda lines: first(lines[:1])
        for name, model in (("numpy", reference), ("onnxruntime", onnx)):
            ways[name] = lambda lines, model=model: np.array([model.embed(line) for line in lines])
        vectors, times, busy = {}, {name: [] for name in ways}, {name: [] for name in ways}
        for _ in range(options.rounds):
            for name, embed in ways.items():
                begun, before = time.perf_counter(), processor_time()
                vectors[name] = embed(lines)
                times[name].append(time.perf_counter() - begun)
                busy[name].append(processor_time() - before)
    took, used = ({name: statistics.median(of) for name, of in figures.items()} for figures in (times, busy))
    mean = sum(len(reference.tokenizer.encode(line).ids) for line in lines) / len(lines)
    load = os.getloadavg()[0]
    print(f"{len(lines)} texts of {mean:.0f} tokens, threads {THREADS}, load {load:.1f}, medians of {options.rounds}")
    print(f"{'':12} {'least cosine':>12} {'mean':>10} {'texts/s':>8} {'x numpy':>8} {'x onnx':>8} {'by processor time':>18}")
    wrong = []
    for name in ways:
        if vectors[name].shape != vectors["numpy"].shape:
            continue
        cosines = (vectors[name] * vectors["numpy"]).sum(1) / np.linalg.norm(vectors[name], axis=1)
        ratios = (took[rival] / took[name] for rival in ("numpy", "onnxruntime"))
        rate = len(lines) / took[name], *ratios, len(lines) / used[name]
        figures = "{:8.1f} {:8.2f} {:8.2f} {:18.1f}".format(*rate)
        print(f"{name:12} {cosines.min():12.7f} {cosines.mean():10.7f} {figures}")
        wrong += [name for kind, least in LEAST.items() if name == f"ours {kind}" and not cosines.min() >= least]
    print(f"a command for one text takes {took['start of the command']:.2f} s, which is in the figures of ours")
    if wrong:
        sys.exit(f"too far from the reference: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
