"""Writes tiny random models that see, and what mlx-vlm computes with them where it is right: no download is needed.

    python vision.py --out DIR --seed 7 [--only qwen3_vl,gemma4]

OUT/table.json lists the rows, and for each case where its images lie. OUT/NAME is a model's folder as a repository has it, only
small. OUT/NAME.CASE.safetensors holds one case:

  ids        [length], placeholders already expanded
  pixels.N   what goes through the tower for view N of all images, as the app's image processor hands it over
  logits     [length, vocabulary] in 32 bit floats, the prompt read at once
  greedy, margins   (cases `two` and `turns`) the ordinary tokens that follow, and by how much each was likelier than the next

Cases: `text`; `one`, `two` and `three` images of unequal size; `turns`, one image with a long text after it. Pixels are random
numbers: preprocessing is another test. `moved` says by how much another image changes the last logits; 0 would mean that images are
not seen.
"""
import argparse
import copy
import json
import multiprocessing
import os
import shutil
import tempfile
import zlib
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import mlx.core as mx
import numpy as np

from vision_rows import rows
from vision_rows.row import IMAGE, VOCABULARY, Numbers, described, prompt
from tokens import write_vision_tokenizer

GREEDY = 30
GROUP = 32
CASES = {"text": (0, 30), "one": (1, 3), "two": (2, 3), "three": (3, 3), "turns": (1, 60)}


def random_weights(row, model, seed):
    """Weights at which every part shows in the logits: matrices keep the scale of what passes, norms and gates lie about 1."""
    from mlx.utils import tree_flatten

    source = np.random.default_rng(seed)
    weights = {}
    for name, value in tree_flatten(model.parameters()):
        if not mx.issubdtype(value.dtype, mx.floating):
            weights[name] = value
            continue
        drawn = row.draw(name, value.shape, source) if row.draw else None
        if drawn is None and value.ndim >= 2:
            fan_in = int(np.prod(value.shape[1:])) if "embed" not in name or "patch" in name else 4
            drawn = source.normal(0, 1, value.shape) / np.sqrt(fan_in)
        elif drawn is None:
            drawn = source.normal(0, 0.1, value.shape) + (0 if name.endswith("bias") else 1)
        weights[name] = mx.array(np.asarray(drawn).astype(np.float32))
    return weights


def built(row):
    """mlx-vlm's model of a row's config, not loaded."""
    from mlx_vlm.utils import get_model_and_args, update_module_configs

    config = copy.deepcopy(row.asked or row.config)  # the config classes write into it
    module, _ = get_model_and_args(config)
    config.setdefault("text_config", {})
    config.setdefault("vision_config", {})
    shaped = module.ModelConfig.from_dict(config)
    return module.Model(update_module_configs(shaped, module, config, ["text", "vision", "perceiver", "projector", "audio"]))


def packed(row, weights):
    """The weights with some of them packed, and the same weights as the numbers that these stand for."""
    files, numbers = {}, {}
    for name, value in weights.items():
        part = row.packed == "all" or (row.packed == "language" and "language_model" in name)
        fits = name.endswith(".weight") and value.ndim in (2, 3) and value.shape[-1] % GROUP == 0 and "conv" not in name
        # A table of positions that is no embedding stays as it is.
        fits = fits and not name.endswith("pos_emb.weight")
        if not (part and fits):
            files[name] = numbers[name] = value
            continue
        path = name.removesuffix(".weight")
        files[name], files[f"{path}.scales"], files[f"{path}.biases"] = mx.quantize(value, GROUP, row.bits)
        numbers[name] = mx.dequantize(files[name], files[f"{path}.scales"], files[f"{path}.biases"], GROUP, row.bits)
    return files, numbers


def write_model(row, folder, seed):
    """Writes the folder, and returns mlx-vlm's model with the same weights in 32 bit floats."""
    from mlx_vlm.utils import load_model

    folder.mkdir(parents=True, exist_ok=True)
    special = write_vision_tokenizer(folder, row.tokens)
    config = {**row.config, "eos_token_id": special["end"]}
    files, numbers = packed(row, random_weights(row, built(row), seed))
    if row.packed:
        config["quantization"] = {"group_size": GROUP, "bits": row.bits}
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    if row.processor:
        (folder / "preprocessor_config.json").write_text(json.dumps(row.processor, indent=1))
    mx.save_safetensors(str(folder / "model.safetensors"), row.layout(files) if row.layout else files, {"format": "mlx"})
    # mlx-vlm takes every safetensors file of a folder for weights, so it gets one with nothing else.
    with tempfile.TemporaryDirectory() as plain:
        plain = Path(plain)
        (plain / "config.json").write_text(json.dumps(row.asked or row.config))
        mx.save_safetensors(str(plain / "model.safetensors"), numbers, {"format": "mlx"})
        loaded = load_model(plain)
        model = loaded[0] if isinstance(loaded, tuple) else loaded
        model.set_dtype(mx.float32)
        mx.eval(model.parameters())
    return model


def logits_of(model, ids, given):
    """The logits `[length, vocabulary]` of a prompt read at once."""
    given = dict(given)
    pixels = given.pop("pixel_values", None)
    out = model(mx.array([ids]), pixels, **given)
    logits = (out.logits if hasattr(out, "logits") else out)[0].astype(mx.float32)
    mx.eval(logits)
    return logits


def greedy(row, model, images, ids, logits):
    """The continuation of a prompt, prefilled anew for each token, so that no cache of the peer's takes part."""
    made, margins, last = [], [], logits[-1]
    while len(made) < GREEDY:
        # To the peer a token of an image would be one more image.
        last = last[:IMAGE]
        second, best = mx.sort(last)[-2:].tolist()
        made.append(mx.argmax(last).item())
        margins.append(best - second)
        after = ids + made
        last = logits_of(model, after, row.given(images, after))[-1]
    return mx.array(made, dtype=mx.int32), mx.array(margins)


def changed(images):
    """The same images with other pixels."""
    others = copy.deepcopy(images)
    for image in others:
        for view in image.views:
            view.pixels = view.pixels * 0.5 + 0.25
    return others


def write_case(row, model, out, case, seed):
    """Writes one case; returns its entry of the table and what it says of itself."""
    count, last = CASES[case]
    numbers = Numbers(seed)
    images = [row.image(numbers, index) for index in range(count)]
    ids = prompt(numbers, images, last, row.text_between)
    logits = logits_of(model, ids, row.given(images, ids))
    assert bool(mx.all(mx.isfinite(logits)).item()), f"{row.name} {case}: not finite"
    arrays = {"ids": mx.array(ids, dtype=mx.int32), "logits": logits}
    views = [view for image in images for view in image.views]
    arrays |= {f"pixels.{index}": mx.array(view.pixels.astype(np.float32)) for index, view in enumerate(views)}
    if case in ("two", "turns"):
        arrays["greedy"], arrays["margins"] = greedy(row, model, images, ids, logits)
    mx.save_safetensors(str(out / f"{row.name}.{case}.safetensors"), arrays)
    said = ""
    if images:
        moved = mx.max(mx.abs(logits_of(model, ids, row.given(changed(images), ids))[-1] - logits[-1])).item()
        assert moved > 1e-3, f"{row.name} {case}: the image is not seen"
        said = f" moved {moved:.3f}"
    return {"case": case, "images": described(images, ids)}, f"{row.name:24} {case:6} ids {len(ids):4}{said}"


def prepare():
    """The set-up of each process of the writer."""
    mx.set_default_device(mx.cpu)
    # On a CPU, compiling needs a C++ compiler at run time and changes no figure.
    mx.disable_compile()


def write(name, out, seed):
    """Writes one row; returns its part of the table and its lines for people."""
    row = rows()[name]
    if row.prepare:
        row.prepare()
    # A row alone is the same as among all.
    seed += zlib.crc32(name.encode())
    model = write_model(row, out / name, seed)
    cases = [write_case(row, model, out, case, seed) for case, (count, _) in CASES.items() if count <= row.most]
    table = {"name": name, "model_type": row.config["model_type"], "vocabulary": VOCABULARY, "packed": bool(row.packed),
             "unverified": row.unverified, "cases": [entry for entry, _ in cases]}
    return table, [line for _, line in cases]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=Path, help="the folder to write into")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="names of rows, with commas")
    args = parser.parse_args()
    known = rows()
    wanted = args.only.split(",") if args.only else list(known)
    assert not set(wanted) - set(known), f"no such rows: {set(wanted) - set(known)}"
    args.out.mkdir(parents=True, exist_ok=True)
    # Processes that share nothing: MLX does not survive a fork. Repairs change nothing but the peer's files of their
    # own family.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(os.cpu_count() or 1, 4), context, prepare) as processes:
        jobs = [processes.submit(write, name, args.out, args.seed) for name in wanted]
        written = [job.result() for job in jobs]
    for _, lines in written:
        print("\n".join(lines))
    import mlx_vlm

    versions = {"mlx": mx.__version__, "mlx-vlm": mlx_vlm.__version__}
    table = json.dumps({"versions": versions, "rows": [row for row, _ in written]}, indent=1)
    (args.out / "table.json").write_text(table)


if __name__ == "__main__":
    main()
