"""Embeddings of the built command beside all-MiniLM-L6-v2 as sentence-transformers runs it, on real weights: the smallest cosine of 200 texts, and texts per second
of both by turns.

    python parity.py PROGRAM [--texts 200] [--least 0.9999] [--model FOLDER]

FOLDER is a model made of the same weights, such as one with 16 bits; the weights of the package otherwise."""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from minilm import MiniLm

ROUNDS = 3


def texts(wanted):
    """Lines of this computer's documentation, from a few words to 700 letters: all of them fit 256 tokens."""
    lines = []
    for path in sorted(Path("/usr/share/doc").glob("*/copyright")):
        words = re.sub(r"\s+", " ", path.read_text(errors="ignore")).strip()
        length = 20 + 41 * len(lines) % 680
        if len(words) >= length:
            lines.append(words[:length])
        if len(lines) == wanted:
            break
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument("--least", type=float, default=0.9999)
    parser.add_argument("--weights", type=Path, required=True, help="the folder of the package's model")
    parser.add_argument("--model", type=Path)
    options = parser.parse_args()
    lines, reference = texts(options.texts), MiniLm(options.weights)
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "PONDER_HOME": home, "HF_HOME": home + "/hub"}
        added = subprocess.run([options.program, "import", options.model or options.weights], env=environment, capture_output=True, text=True)
        if added.returncode:
            sys.exit(added.stderr)
        model = re.search('"(.+?)"', added.stdout)[1]
        ask = [options.program, "embed", "-m", model, "--json"]
        ours_times, their_times = [], []
        for _ in range(ROUNDS):
            begun = time.perf_counter()
            out = subprocess.run(ask, input="\n".join(lines), env=environment, capture_output=True, text=True, check=True).stdout
            ours_times.append(time.perf_counter() - begun)
            begun = time.perf_counter()
            theirs = np.array([reference.embed(line) for line in lines])
            their_times.append(time.perf_counter() - begun)
    ours = np.array([json.loads(line)["embedding"] for line in out.splitlines()])
    cosines = (ours * theirs).sum(1) / np.linalg.norm(ours, axis=1) / np.linalg.norm(theirs, axis=1)
    rate, their_rate = (len(lines) / statistics.median(times) for times in (ours_times, their_times))
    print(f"{len(lines)} texts, load {os.getloadavg()[0]:.1f}: least cosine {cosines.min():.7f}, mean {cosines.mean():.7f}")
    print(f"texts per second, medians of {ROUNDS}: ours {rate:.1f} with the start of the command, numpy {their_rate:.1f}, ratio {rate / their_rate:.2f}")
    sys.exit(not cosines.min() >= options.least)


if __name__ == "__main__":
    main()
