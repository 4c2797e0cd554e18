"""Speed of mlx-vlm on the prompts and images of `ponder-bench vision`: from an image's file to the first token, without its cache of
features and prefixes. In 32 bit floats on a CPU, on a GPU as the model is. Needs mlx, mlx-vlm with what it imports, numpy and Pillow.

    python vision_speed.py --model FOLDER --chats chats.json

chats.json lists {image, first, second}: a JPEG file, and the tokens of two prompts about it, placeholders expanded. The first of the list
is for compiling and is not told. The last line is {first_token_ms, second_question_ms, peak_bytes, versions}.
"""
import argparse
import json
import sys
import time
from pathlib import Path

import mlx.core as mx
import numpy as np
from PIL import Image


def blas():
    """The library that multiplies matrices on a CPU: OpenBLAS where it was preloaded, else what the wheel brings."""
    import ctypes

    process = ctypes.CDLL(None)
    if not hasattr(process, "openblas_get_config"):
        return "the BLAS of MLX's wheel"
    process.openblas_get_config.restype = ctypes.c_char_p
    version = " ".join(process.openblas_get_config().decode().split()[:2])
    return f"{version}, {process.openblas_get_num_threads()} threads"


def image_processor(config, settings):
    """mlx-vlm's own processor of this model, and what its images become for the model."""
    if config["model_type"] == "gemma4":
        from mlx_vlm.models.gemma4.processing_gemma4 import Gemma4ImageProcessor

        processor = Gemma4ImageProcessor(**{name: settings[name] for name in ("patch_size", "pooling_kernel_size", "max_soft_tokens")})

        def shown(image, _):
            return {"pixel_values": mx.array(processor([image])[0]["pixel_values"])}
    else:
        from mlx_vlm.models.qwen3_vl.processing_qwen3_vl import Qwen3VLImageProcessor

        names = ("patch_size", "temporal_patch_size", "merge_size", "image_mean", "image_std")
        processor = Qwen3VLImageProcessor(**{name: settings[name] for name in names}, min_pixels=settings["size"]["shortest_edge"])

        def shown(image, tokens):
            # Ours has a limit for each image; the peer gets as many tokens.
            side = settings["patch_size"] * settings["merge_size"]
            made = processor([image], max_pixels=tokens * side * side)
            return {name: mx.array(made[name]) for name in ("pixel_values", "image_grid_thw")}
    return shown


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, type=Path, help="the model's folder")
    parser.add_argument("--chats", required=True, type=Path, help="images and prompts")
    args = parser.parse_args()
    on_gpu = mx.metal.is_available() or (hasattr(mx, "cuda") and mx.cuda.is_available())
    if not on_gpu:
        mx.set_default_device(mx.cpu)
    import mlx_vlm
    from mlx_vlm.generate import generate_step
    from mlx_vlm.utils import load_model

    loaded = load_model(args.model)
    model = loaded[0] if isinstance(loaded, tuple) else loaded
    if not on_gpu:
        # On a CPU 16 bits are slower, and ours computes in 32 too.
        model.set_dtype(mx.float32)
    mx.eval(model.parameters())
    config = json.loads((args.model / "config.json").read_text())
    shown = image_processor(config, json.loads((args.model / "preprocessor_config.json").read_text()))
    placeholder = config["image_token_id"]

    def first_token(path, ids):
        start = time.perf_counter()
        image = Image.open(path).convert("RGB")
        given = shown(image, ids.count(placeholder))
        made = generate_step(mx.array([ids]), model, given.pop("pixel_values"), None, max_tokens=2, temperature=0.0, **given)
        next(iter(made))
        spent = (time.perf_counter() - start) * 1000
        # The token that is on its way belongs to no measurement.
        list(made)
        return spent

    first, second = [], []
    for number, chat in enumerate(json.loads(args.chats.read_text())):
        spent = [first_token(chat["image"], chat["first"]), first_token(chat["image"], chat["second"])]
        if number == 0:
            mx.reset_peak_memory()
            continue
        first.append(spent[0])
        second.append(spent[1])
    what = blas() if sys.platform == "linux" and not on_gpu else str(mx.default_device())
    versions = f"mlx-vlm {mlx_vlm.__version__}, mlx {mx.__version__}, numpy {np.__version__}, {what}"
    print(json.dumps({"first_token_ms": first, "second_question_ms": second, "peak_bytes": mx.get_peak_memory(), "versions": versions}))


if __name__ == "__main__":
    main()
