"""Quantizes models with `mlx_lm.convert`, for comparing its files with ours.

Each case is MODEL:BITS:GROUP:MODE[:MIXTURE]; OUT has a folder of that name for each, with the colons as dots, or a file
of that name with `.refused` if mlx-lm cannot convert it. With --load, cases are folders that mlx-lm has to load.
"""
import argparse
import importlib
import multiprocessing
import os
import sys
import types
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import mlx.core as mx
from mlx_lm.utils import load_model

# The package gives its function the module's name.
module = importlib.import_module("mlx_lm.convert")


class NoTokenizer:
    """Tiny models have tokenizers, and some have configs that transformers refuses when it loads one."""

    def save_pretrained(self, _):
        pass


def load(path, **_):
    """mlx-lm's `load` without a tokenizer."""
    model, config = load_model(Path(path), lazy=True)
    return model, NoTokenizer(), config


def prepare():
    """The set-up of each process."""
    mx.set_default_device(mx.cpu)
    # On a CPU, compiling needs a C++ compiler at run time and changes no figure.
    mx.disable_compile()
    module.load = load
    # mlx-lm ends the process where this package is missing, of which it uses nothing (OLMo 1).
    sys.modules.setdefault("hf_olmo", types.ModuleType("hf_olmo"))


def write(models, out, case):
    name, bits, group, mode, *mixture = case.split(":")
    folder = out / case.replace(":", ".")
    try:
        module.convert(
            str(models / name),
            str(folder),
            quantize=True,
            q_bits=int(bits),
            q_group_size=int(group),
            q_mode=mode,
            quant_predicate=mixture[0] if mixture else None,
        )
    except (KeyError, ValueError) as error:
        (out / f"{folder.name}.refused").write_text(f"{type(error).__name__}: {error}")


def check(folder):
    """Loads a folder as mlx-lm does, every tensor with a place and every place with a tensor."""
    model, _ = load_model(folder, lazy=True)
    assert model.parameters()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, help="the folder of the models")
    parser.add_argument("--out", type=Path, help="the folder to write into")
    parser.add_argument("--load", action="store_true", help="load folders instead")
    parser.add_argument("cases", nargs="+")
    args = parser.parse_args()
    if args.load:
        prepare()
        for folder in args.cases:
            check(Path(folder))
        return
    args.out.mkdir(parents=True, exist_ok=True)
    # Processes that share nothing: MLX does not survive a fork.
    with ProcessPoolExecutor(min(os.cpu_count() or 1, 4), multiprocessing.get_context("spawn"), prepare) as processes:
        for row in [processes.submit(write, args.models, args.out, case) for case in args.cases]:
            row.result()


if __name__ == "__main__":
    main()
