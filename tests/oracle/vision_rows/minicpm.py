"""SigLIP whose patches are merged between two layers, beside Qwen 3.5: the whole image, then its slices (MiniCPM-V 4.6)."""
import mlx.core as mx
import numpy as np

from vision_rows.qwen import qwen3_5
from vision_rows.row import END, IMAGE, MORE, START, VOCABULARY, Image, Row, View

PATCH = 14
# The grid of the whole, rows and columns of slices, and the grid of each; all are found in 8 x 8 learned positions.
IMAGES = [((4, 8), None, None), ((8, 4), (1, 2), (12, 4)), ((4, 12), (2, 1), (4, 8))]
SLICE, SLICE_END, LINE = MORE[0], MORE[1], MORE[2]


def config(**more):
    text = qwen3_5()["text_config"]
    vision = {"model_type": "minicpmv4_6_vision", "hidden_size": 96, "num_hidden_layers": 3, "intermediate_size": 80, "num_attention_heads": 4,
              "num_channels": 3, "image_size": 8 * PATCH, "patch_size": PATCH, "hidden_act": "gelu_pytorch_tanh", "layer_norm_eps": 1e-6,
              "window_kernel_size": [2, 2]}
    return {"model_type": "minicpmv4_6", "text_config": text, "vision_config": vision, "insert_layer_id": 1, "image_token_id": IMAGE,
            "downsample_mode": "16x", "merge_kernel_size": [2, 2], "merger_times": 1, "tie_word_embeddings": False, "vocab_size": VOCABULARY, **more}


def view(numbers, grid):
    height, width = (side * PATCH for side in grid)
    return View(numbers.pixels(3, height, width), width, height, grid, (grid[0] // 4, grid[1] // 4))


def image(numbers, index):
    """The whole stands first in the prompt, and is the last view."""
    whole, slices, grid = IMAGES[index % len(IMAGES)]
    tokens = lambda grid: [IMAGE] * (grid[0] * grid[1] // 16)
    run = [START] + tokens(whole) + [END]
    if slices is None:
        return Image([view(numbers, whole)], run)
    rows, columns = slices
    lines = [([SLICE] + tokens(grid) + [SLICE_END]) * columns + [LINE] for _ in range(rows)]
    views = [view(numbers, grid) for _ in range(rows * columns)] + [view(numbers, whole)]
    return Image(views, run + sum(lines, [])[:-1], tiles=slices, whole=True)


def given(images, ids):
    if not images:
        return {}
    views = [view for image in images for view in image.views[-1:] + image.views[:-1]]
    soft = np.array([0] + [int(token == IMAGE) for token in ids] + [0])
    starts, ends = np.where(np.diff(soft) == 1)[0], np.where(np.diff(soft) == -1)[0]
    return {"pixel_values": [[mx.array(view.pixels) for view in views]], "tgt_sizes": [np.array([view.patches for view in views])],
            "image_bound": [np.stack([starts, ends], axis=1)]}


def repair():
    """The network after the tower has the exact GELU in transformers; mlx-vlm's "precise" one is an approximation."""
    import mlx.nn as nn
    from mlx_vlm.models.minicpmv4_6 import minicpmv4_6

    plain = minicpmv4_6.MergerBlock.__init__

    def begin(self, *args, **more):
        plain(self, *args, **more)
        self.act = nn.GELU()

    minicpmv4_6.MergerBlock.__init__ = begin


def original(weights):
    """As transformers writes it: norms of the language part as their difference from 1, and convolutions with the channels second."""
    from mlx_vlm.models.qwen3_5.qwen3_5 import NORM_WEIGHT_SUFFIXES

    changed = {}
    for name, value in weights.items():
        if name.startswith("language_model.") and name.endswith(tuple(NORM_WEIGHT_SUFFIXES)) and value.ndim == 1:
            value = value - 1
        if name.endswith("conv1d.weight"):
            value = mx.contiguous(value.transpose(0, 2, 1))
        if name.endswith("patch_embedding.weight") and value.ndim == 4:
            value = mx.contiguous(value.transpose(0, 3, 1, 2))
        short = name.replace("language_model.model.", "language_model.")
        short = f"vision_tower.{short}" if short.startswith("vit_merger.") else short
        changed["lm_head.weight" if short == "language_model.lm_head.weight" else f"model.{short}"] = value
    return changed


def row(name, **more):
    look = {"image_processor_type": "MiniCPMV4_6ImageProcessor", "max_slice_nums": 9, "scale_resolution": 112, "patch_size": PATCH, "slice_mode": True,
            "downsample_mode": "16x", "use_image_id": True, "image_mean": [0.5] * 3, "image_std": [0.5] * 3, "resample": 3, "do_resize": True,
            "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True}
    tokens = {IMAGE: "<|image_pad|>", START: "<image>", END: "</image>", SLICE: "<slice>", SLICE_END: "</slice>", MORE[3]: "<image_id>", MORE[4]: "</image_id>"}
    return Row(name, config(), image, given, tokens=tokens, processor=look, prepare=repair, **more)


ROWS = [
    row("minicpmv4_6"),
    row("minicpmv4_6-original", layout=original),
    row("minicpmv4_6-4bit", packed="language", bits=4),
    row("minicpmv4_6-tower8", packed="all"),
]
