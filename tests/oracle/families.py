"""Writes a tiny random model per variant, and what mlx-lm computes with it.

OUT/table.json lists the variants; OUT/NAME is a model's folder, OUT/NAME.f32 the same with packed weights and everything
else in 32 bit floats, where that is another one, and OUT/NAME.safetensors the figures:
  prompt   token ids
  logits   of every position, in 32 bit floats
  steps    the same read token by token, where that differs by design
  greedy   the tokens that follow the prompt, in 32 bit floats
  margins  by how much each of them was likelier than the next
  native   logits of every position as the files are: packed weights and their own number format
"""
import argparse
import dataclasses
import json
import multiprocessing
import os
import random
import shutil
import zlib
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import mlx.core as mx
import mlx_lm
from mlx_lm.models.cache import make_prompt_cache

from larger import larger
from oracle import is_of_mlx_vlm, load_in_f32, load_model
from random_model import write_model
from tokens import write_tokenizer
from variants import VARIANTS

PROMPT = 100
GREEDY = 50


def logits_of(model, ids):
    logits = model(mx.array(ids)[None], cache=make_prompt_cache(model))[0].astype(mx.float32)
    mx.eval(logits)
    return logits


def write_in_f32(folder, copy):
    """A copy of a model's folder in which only packed weights stay as they are."""
    shutil.copytree(folder, copy, dirs_exist_ok=True)
    for file in copy.glob("*.safetensors"):
        weights = {name: value.astype(mx.float32) if mx.issubdtype(value.dtype, mx.floating) else value for name, value in mx.load(str(file)).items()}
        mx.eval(weights)
        mx.save_safetensors(str(file), weights, {"format": "mlx"})


def figures(variant, folder, ids):
    """The arrays of one variant."""
    model = load_in_f32(folder)
    cache = make_prompt_cache(model)
    logits = model(mx.array(ids)[None], cache=cache)[0]
    arrays = {"prompt": mx.array(ids, dtype=mx.int32), "logits": logits}
    if not variant.steps_alike:
        cache = make_prompt_cache(model)
        logits = mx.concatenate([model(mx.array([[token]]), cache=cache)[0] for token in ids])
        arrays["steps"] = logits
    made, margins, last = [], [], logits[-1]
    for _ in range(GREEDY):
        second, best = mx.sort(last)[-2:].tolist()
        made.append(mx.argmax(last).item())
        margins.append(best - second)
        last = model(mx.array([[made[-1]]]), cache=cache)[0, -1]
    arrays |= {"greedy": mx.array(made, dtype=mx.int32), "margins": mx.array(margins)}
    if variant.quantization or variant.dtype != "float32":
        arrays["native"] = logits_of(load_model(folder)[0], ids)
    mx.eval(arrays)
    return arrays


def has_experts(config):
    text = config.get("text_config", config)
    # One alone is a plain network (Jamba).
    counts = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
    return bool(text.get("ffn_config")) or any((text.get(name) or 0) > 1 for name in counts)


def prepare():
    """The set-up of each process of the writer."""
    mx.set_default_device(mx.cpu)
    # On a CPU, compiling needs a C++ compiler at run time and changes no figure.
    mx.disable_compile()


def write(variant, out, seed, folders_only):
    """Writes one variant; the result is its row of the table."""
    # A variant alone is the same as among all.
    seed += zlib.crc32(variant.name.encode())
    if variant.repair:
        variant.repair()
    folder = out / variant.name
    folder.mkdir(parents=True, exist_ok=True)
    special = write_tokenizer(folder)
    write_model(variant, folder, seed, special)
    packed_in_f32 = variant.quantization is not None and variant.dtype != "float32" and not folders_only
    if packed_in_f32:
        write_in_f32(folder, out / f"{variant.name}.f32")
    if not folders_only:
        source = random.Random(seed)
        ids = [source.randrange(special["ordinary"]) for _ in range(PROMPT)]
        mx.save_safetensors(str(out / f"{variant.name}.safetensors"), figures(variant, folder, ids))
    return {
        "name": variant.name,
        "model_type": variant.config["model_type"],
        "peer": "mlx-vlm" if is_of_mlx_vlm(variant.config) else "mlx-lm",
        "experts": has_experts(variant.config),
        "quantized": variant.quantization is not None,
        "packed_in_f32": packed_in_f32,
        "steps_alike": variant.steps_alike,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=Path, help="the folder to write into")
    parser.add_argument("--seed", required=True, type=int)
    parser.add_argument("--only", help="names of variants, with commas")
    parser.add_argument("--folders", action="store_true", help="write the models and compute nothing")
    parser.add_argument("--larger", action="store_true", help="write models that are less tiny")
    args = parser.parse_args()

    names = [variant.name for variant in VARIANTS]
    wanted = args.only.split(",") if args.only else names
    unknown = set(wanted) - set(names)
    assert not unknown, f"no such variants: {unknown}"
    variants = [variant for variant in VARIANTS if variant.name in wanted]
    if args.larger:
        # Layouts may know the sizes of tiny models.
        variants = [dataclasses.replace(variant, config=larger(variant.config), layout=()) for variant in variants]
    # Processes that share nothing: MLX does not survive a fork.
    processes = ProcessPoolExecutor(min(os.cpu_count() or 1, 4), multiprocessing.get_context("spawn"), prepare)
    with processes:
        rows = [processes.submit(write, variant, args.out, args.seed, args.folders) for variant in variants]
        table = [row.result() for row in rows]
    versions = {"mlx": mx.__version__, "mlx-lm": mlx_lm.__version__}
    (args.out / "table.json").write_text(json.dumps({"versions": versions, "variants": table}, indent=1))


if __name__ == "__main__":
    main()
