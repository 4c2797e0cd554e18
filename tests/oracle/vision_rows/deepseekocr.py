"""SAM, and CLIP on its grid, beside DeepSeek V2 with Llama's attention (DeepSeek-OCR)."""
import copy

import mlx.core as mx
import numpy as np

from vision_rows.deepseek_vl import PLAIN, config as beside
from vision_rows.row import IMAGE, Image, Row, View

# The whole has SAM's and CLIP's learned positions, tiles have half as many on a side. Windows of three divide neither.
WHOLE, TILE, PATCH, WINDOW = 256, 128, 16, 3
# Rows and columns of tiles.
TILES = [(1, 2), None, (2, 1)]
SAM = {"width": 32, "layers": 3, "heads": 2, "global_attn_indexes": [1], "downsample_channels": [32, 64], "image_size": WHOLE, "tile_size": TILE,
       "patch_size": PATCH, "window_size": WINDOW, "out_chans": 32}
CLIP = {"width": 64, "layers": 2, "heads": 4, "intermediate_size": 80, "image_size": 224, "patch_size": 56}


def config(model_type="deepseekocr"):
    vision = {"model_type": "vision", "model_name": "deeplip_b_l", "image_size": 1024, "mlp_ratio": 3.7362,
              "width": {"clip-l-14-224": CLIP, "sam_vit_b": SAM}}
    projector = {"model_type": "mlp_projector", "projector_type": "linear", "input_dim": 128, "n_embed": 32}
    return {**beside(**PLAIN), "model_type": model_type, "vision_config": vision, "projector_config": projector, "candidate_resolutions": [[1024, 1024]]}


def asked():
    """mlx-vlm knows CLIP by other fields, and SAM by none."""
    whole = copy.deepcopy(config())
    whole["vision_config"] = {"model_type": "vision", "layers": 2, "width": 64, "hidden_size": 64, "intermediate_size": 80, "num_attention_heads": 4,
                              "image_size": 224, "patch_size": 56, "layer_norm_eps": 1e-5}
    return whole


def side(pixels):
    return pixels // PATCH // 4


def view(numbers, pixels):
    patches = pixels // PATCH
    return View(numbers.pixels(3, pixels, pixels), pixels, pixels, (patches, patches), (side(pixels), side(pixels)))


def image(numbers, index):
    tiles = TILES[index % len(TILES)]
    count = tiles[0] * tiles[1] if tiles else 0
    views = [view(numbers, TILE) for _ in range(count)] + [view(numbers, WHOLE)]
    views[-1].features = side(WHOLE) * (side(WHOLE) + 1) + 1
    if not tiles:
        return Image(views, [IMAGE] * views[-1].features)
    grid = (tiles[0] * side(TILE), tiles[1] * side(TILE))
    return Image(views, [IMAGE] * (views[-1].features + grid[0] * (grid[1] + 1)), tiles=tiles, whole=True, joined=[grid, grid])


def given(images, _):
    return {"images": images}


def shares(source, target, cubic):
    """Torch's `interpolate` of one axis, with `antialias` if it is by cubics."""
    scale = source / target
    matrix = np.zeros((target, source))
    for cell in range(target):
        if cubic:
            wide, at = max(scale, 1.0), (cell + 0.5) * scale
            first, last = max(int(at - 2 * wide + 0.5), 0), min(int(at + 2 * wide + 0.5), source)
            x = np.abs((np.arange(first, last) - at + 0.5) / wide)
            share = np.where(x < 1, (1.5 * x - 2.5) * x * x + 1, np.where(x < 2, (((x - 5) * x + 8) * x - 4) * -0.5, 0))
            matrix[cell, first:last] = share / share.sum()
        else:
            at = max((cell + 0.5) * scale - 0.5, 0)
            first = int(at)
            matrix[cell, first] += 1 - (at - first)
            matrix[cell, min(first + 1, source - 1)] += at - first
    return mx.array(matrix.astype(np.float32))


def repair():
    """The tower is a smaller one. mlx-vlm has another GELU in CLIP, and places positions of grids of another size otherwise than torch does
    in the code beside the weights."""
    import mlx.nn as nn
    from mlx_vlm.models.base import InputEmbeddingsFeatures
    from mlx_vlm.models.deepseekocr import deepseekocr, sam, vision

    plain = sam.SAMEncoder.__init__

    def begin(self, **_):
        plain(self, img_size=WHOLE, patch_size=PATCH, embed_dim=32, depth=3, num_heads=2, window_size=WINDOW, global_attn_indexes=(1,), out_chans=32)
        self.net_2 = nn.Conv2d(32, 32, kernel_size=3, stride=2, padding=1, bias=False)
        self.net_3 = nn.Conv2d(32, 64, kernel_size=3, stride=2, padding=1, bias=False)

    def on_grid(table, length):
        """`[rows, columns, width]` at another size."""
        if table.shape[0] == length:
            return table
        matrix = shares(table.shape[0], length, True)
        over = mx.einsum("rh,hwd->rwd", matrix, table)
        return mx.einsum("cw,rwd->rcd", matrix, over)

    distances = sam.get_rel_pos

    def distance(queries, keys, table):
        wanted = 2 * max(queries, keys) - 1
        return distances(queries, keys, table if table.shape[0] == wanted else shares(table.shape[0], wanted, False) @ table)

    def places(self, table, count):
        table, length = table[0], int(count**0.5)
        old = int((table.shape[0] - 1)**0.5)
        grid = on_grid(table[1:].reshape(old, old, -1), length)
        return mx.concatenate([table[:1], grid.reshape(length * length, -1)])[None]

    def features(self, view):
        pixels = mx.array(view.pixels)[None].transpose(0, 2, 3, 1)
        seen = self.sam_model(pixels)
        grid = self.vision_model(pixels, seen)[:, 1:]
        return self.projector(mx.concatenate([grid, seen.flatten(start_axis=1, end_axis=2)], axis=-1))[0]

    def ended(self, grid):
        ends = mx.broadcast_to(self.image_newline[None, None], (grid.shape[0], 1, grid.shape[2]))
        return mx.concatenate([grid, ends], axis=1).reshape(-1, grid.shape[2])

    def embedded(self, input_ids=None, pixel_values=None, images=(), **_):
        embeds = self.language_model.model.embed_tokens(input_ids)
        rows = []
        for image in images:
            *tiles, whole = [features(self, view) for view in image.views]
            if tiles:
                (down, across), length = image.tiles, side(TILE)
                grid = mx.stack(tiles).reshape(down, across, length, length, -1).transpose(0, 2, 1, 3, 4)
                rows.append(ended(self, grid.reshape(down * length, across * length, -1)))
            rows += [ended(self, whole.reshape(side(WHOLE), side(WHOLE), -1)), self.view_separator[None]]
        if rows:
            embeds[:, np.where(np.array(input_ids) == IMAGE)[1].tolist()] = mx.concatenate(rows)
        return InputEmbeddingsFeatures(inputs_embeds=embeds)

    def call(self, input_ids, pixel_values=None, mask=None, cache=None, images=(), **_):
        return self.language_model(input_ids, inputs_embeds=embedded(self, input_ids, images=images).inputs_embeds)

    plain_mlp = vision.MLP.__init__

    def quick(self, *args, **more):
        plain_mlp(self, *args, **more)
        self.activation_fn = nn.GELU(approx="fast")

    sam.SAMEncoder.__init__ = begin
    sam.get_abs_pos_sam = lambda table, length: on_grid(table[0], length)[None]
    sam.get_rel_pos = distance
    vision.MLP.__init__ = quick
    vision.VisionEmbeddings._get_abs_pos = places
    deepseekocr.Model.get_input_embeddings, deepseekocr.Model.__call__ = embedded, call


def draw(name, shape, source):
    """What queries say of distances, so large that it decides."""
    return source.normal(0, 0.5, shape) if "rel_pos" in name or "pos_embed" in name else None


def original(weights):
    """As the original repository has it: everything below `model.` but the output layer, convolutions with the channels second, experts one by
    one, the patches that CLIP has and takes from SAM."""
    changed = {}
    for name, value in weights.items():
        short = name.replace("language_model.model.", "").replace("separator", "seperator")
        short = "lm_head.weight" if name.endswith("lm_head.weight") else f"model.{short}"
        if name.endswith("weight") and value.ndim == 4:
            value = mx.contiguous(value.transpose(0, 3, 1, 2))
        if "switch_mlp" in name:
            changed |= {short.replace("switch_mlp", f"experts.{expert}"): mx.contiguous(value[expert]) for expert in range(value.shape[0])}
        else:
            changed[short] = value
    return changed


def row(name, model_type="deepseekocr", **more):
    look = {"processor_class": "DeepseekOCRProcessor", "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    return Row(name, config(model_type), image, given, tokens={IMAGE: "<image>"}, processor=look, prepare=repair, draw=draw, asked=asked(), **more)


ROWS = [
    row("deepseekocr"),
    row("deepseekocr-original", "deepseek_vl_v2", layout=original),
    row("deepseekocr-4bit", packed="language", bits=4),
    row("deepseekocr-tower8", packed="all"),
]
