"""GGUF files as Ponder imports them, beside llama.cpp that reads them itself: SmolLM2's file as it was published, and
those that llama.cpp makes of it with other types of numbers. Prints a table in Markdown: the ids of a text, the logits after 64
tokens, and the perplexity on the same tokens.

The file as it was published is held to what must be: the same ids, and perplexities within 0.5 %, because the import
changes none of its numbers. Ends with 1 if they are not."""
import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from engines import physical_cores
from libllama import LOG, Model, Params, log, open_library
from perplexity import TEXT

# llama.h's numbers of file types.
TYPES = {"F16": 1, "Q8_0": 7, "Q4_0": 2, "Q4_1": 3, "Q5_0": 8, "Q5_1": 9, "IQ4_NL": 25, "Q6_K": 18, "Q5_K_M": 17, "Q4_K_M": 15,
         "Q3_K_M": 12, "Q2_K": 10}
PUBLISHED, HALF = "as published", "F16"
# Places of fields in llama_model_quantize_params, with their defaults; the last are bytes, of which the first allows to
# begin with numbers that are quantized.
THREADS, TYPE, FLAGS, DEFAULTS = 0, 1, 4, {0: 0, 1: 7, 4: 0x100}
CHUNK, PROMPT = 512, 64
PERPLEXITY = 0.005


def parsed():
    parser = argparse.ArgumentParser(prog="./dev bench gguf", description=__doc__)
    for name in ("ponder", "bench", "library", "smollm2"):
        parser.add_argument(f"--{name}", type=Path, required=True, help=argparse.SUPPRESS)
    names = [PUBLISHED, *TYPES]
    parser.add_argument("--only", nargs="+", default=names, choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--tokens", type=int, default=2048, help="tokens of text for the perplexity")
    return parser.parse_args()


def quantized(library, source, to, kind):
    """A file of a type that llama.cpp makes of another one."""
    library.llama_model_quantize_default_params.restype = Params
    library.llama_model_quantize.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(Params)]
    params = library.llama_model_quantize_default_params()
    if any(params.words[place] != value for place, value in DEFAULTS.items()):
        raise SystemExit("this version of llama.cpp has its parameters in another order")
    params.words[THREADS], params.words[TYPE], params.words[FLAGS] = physical_cores(), TYPES[kind], DEFAULTS[FLAGS] | 1
    library.llama_log_set(quiet, None)
    failed = library.llama_model_quantize(str(source).encode(), str(to).encode(), ctypes.byref(params))
    library.llama_log_set(log, None)
    if failed:
        raise SystemExit(f"llama.cpp cannot make {kind}")


def ids_of(library, model, text):
    """llama.cpp's ids of a text, without those that it puts at the beginning."""
    vocabulary, data = library.llama_model_get_vocab(model.model), text.encode()
    ids = (ctypes.c_int32 * len(data))()
    arguments = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32]
    library.llama_tokenize.argtypes = [*arguments, ctypes.c_bool, ctypes.c_bool]
    return list(ids[: library.llama_tokenize(vocabulary, data, len(data), ids, len(data), False, True)])


@LOG
def quiet(*_):
    """It warns of each tensor whose rows do not fit a type, which then has another one."""


class Ours:
    def __init__(self, args, home):
        self.args, self.home = args, home

    def run(self, program, *words):
        environment = dict(os.environ, PONDER_HOME=str(self.home))
        ran = subprocess.run([str(word) for word in (program, *words)], stdout=subprocess.PIPE, env=environment)
        if ran.returncode:
            raise SystemExit(f"{program.name} {words[0]} failed")
        return [json.loads(line) for line in ran.stdout.splitlines()]

    def imported(self, gguf, name):
        self.run(self.args.ponder, "import", "--json", "--name", name, gguf)
        return self.home / "models" / name

    def perplexity(self, folder, text):
        words = ["--json", "--chunk", CHUNK, "--tokens", self.args.tokens, "--model", folder, text]
        return self.run(self.args.bench, "perplexity", *words)[0]

    def logits(self, folder, ids):
        [found] = self.run(self.args.bench, "logits", "--model", folder, "--tokens", ",".join(map(str, ids)))
        return np.array(found["logits"])


def beside(ours, library, name, gguf, text):
    """The cells of a row, and whether all is as it must be."""
    folder = ours.imported(gguf, name.replace(" ", "-"))
    found = ours.perplexity(folder, text)
    tokens = found["tokens"]
    model = Model(library, gguf, physical_cores())
    same = ids_of(library, model, TEXT)[: len(tokens)] == tokens
    theirs, _ = model.perplexity(tokens, CHUNK)
    logits = model.logits(np.array(tokens[:PROMPT]), PROMPT - 1)[0]
    apart = np.abs(ours.logits(folder, tokens[:PROMPT]) - logits).max() / np.abs(logits).max()
    model.close()
    ratio = found["perplexity"] / theirs
    cells = [f"{found['perplexity']:.4f}", f"{theirs:.4f}", f"{ratio:.4f}", f"{apart:.4f}", "yes" if same else "no"]
    size = sum(file.stat().st_size for file in folder.glob("*.safetensors")) / gguf.stat().st_size
    return [*cells, f"{size:.2f}"], same and abs(ratio - 1) <= PERPLEXITY


def main():
    args = parsed()
    library = open_library(args.library, None)
    print(f"{args.tokens:,} tokens, chunks of {CHUNK}; logits: the largest difference, as a part of the largest one.\n")
    print("| file | ours | llama.cpp | ours / llama.cpp | logits apart | same ids | bytes, imported / file |")
    print("|---|---|---|---|---|---|---|", flush=True)
    failed = False
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        half, text, ours = scratch / "half.gguf", scratch / "text.txt", Ours(args, scratch / "home")
        text.write_text(TEXT)
        published = args.smollm2.with_suffix(".gguf")
        quantized(library, published, half, HALF)
        for name in args.only:
            gguf = {PUBLISHED: published, HALF: half}.get(name, scratch / f"{name}.gguf")
            if not gguf.exists():
                quantized(library, half, gguf, name)
            cells, right = beside(ours, library, name, gguf, text)
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
            failed |= name == PUBLISHED and not right
    sys.exit(failed)


if __name__ == "__main__":
    main()
