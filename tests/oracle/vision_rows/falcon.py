"""Falcon-OCR, one decoder for text and patches. transformers has no such model, so the reference is mlx-vlm's with its text prompts made
causal: `unverified`. A prompt has one image at most."""
import mlx.core as mx
import numpy as np

from vision_rows.row import END, IMAGE, MORE, VOCABULARY, Image, Row, View

PATCH = 16
HEADS, WIDTH, CONTEXT, THETA = 4, 32, 512, 10000.0
MARKS = list(MORE)[:5]
GRIDS = [(3, 4)]


def config():
    marks = dict(zip(["image_cls_token_id", *(f"image_reg_{index}_token_id" for index in range(1, 5))], MARKS))
    return {"model_type": "falcon_ocr", "dim": 32, "n_layers": 2, "n_heads": HEADS, "head_dim": WIDTH, "n_kv_heads": 2, "ffn_dim": 64,
            "vocab_size": VOCABULARY, "norm_eps": 1e-5, "max_seq_len": CONTEXT, "rope_theta": THETA, "spatial_patch_size": PATCH,
            "temporal_patch_size": 1, "channel_size": 3, "img_id": IMAGE, "img_end_id": END, **marks}


def image(numbers, index):
    rows, columns = GRIDS[index]
    # Unlike a tower's, raw patches are few against their weights.
    pixels = numbers.pixels(rows * columns, PATCH * PATCH * 3)
    view = View(pixels, columns * PATCH, rows * PATCH, (rows, columns), (rows, columns))
    return Image([view], MARKS + [IMAGE] * (rows * columns) + [END])


def given(images, ids):
    if not images:
        return {}
    view = images[0].views[0]
    rows, columns = view.patches
    whole = view.pixels.reshape(rows, columns, PATCH, PATCH, 3).transpose(0, 2, 1, 3, 4).reshape(1, view.height, view.width, 3)
    return {"pixel_values": mx.array(whole), "image_grid_hw": [[rows, columns]]}


def draw(name, shape, source):
    """Tables that follow from the config stand among the weights; directions turn heads by some radians."""
    if name.endswith(("cos_1d", "sin_1d")):
        periods = THETA ** (np.arange(0, WIDTH // 2, 2) / (WIDTH // 2))
        angles = np.arange(shape[0])[:, None] / periods[None]
        return np.cos(angles) if name.endswith("cos_1d") else np.sin(angles)
    if name.endswith("freqs_cis_golden"):
        return source.normal(0, 2, shape)
    return None


def prepare():
    """Without an image mlx-vlm lets every token of a prompt see every other one. And it takes all files for the original's, whose first
    network alternates row by row, those that it has written itself too."""
    from mlx_vlm.models.falcon_ocr import falcon_ocr, language

    plain = language.FalconOCRTransformerModel.__call__

    def call(self, inputs, inputs_embeds=None, mask=None, **more):
        if mask is None:
            at = mx.arange(inputs.shape[-1])
            mask = (at[:, None] >= at[None])[None, None]
        return plain(self, inputs, inputs_embeds=inputs_embeds, mask=mask, **more)

    language.FalconOCRTransformerModel.__call__ = call
    falcon_ocr.Model.sanitize = lambda self, weights: weights


def original(weights):
    """Names as the original repository has them; the rows of the joined first network alternate, and no tables are there."""
    changed = {}
    for name, value in weights.items():
        name = name.removeprefix("language_model.").removeprefix("model.")
        if name in ("cos_1d", "sin_1d"):
            continue
        if ".w13." in name:
            half = value.shape[0] // 2
            value = mx.contiguous(mx.stack([value[:half], value[half:]], axis=1).reshape(value.shape))
        name = name.replace("embed_tokens", "tok_embeddings").replace("lm_head", "output")
        changed[name.replace(".self_attn.", ".attention.").replace(".mlp.", ".feed_forward.")] = value
    return changed


def row(name, **more):
    tokens = {IMAGE: "<|image|>", END: "<|end_of_image|>", MARKS[0]: "<|image_cls|>"}
    tokens |= {mark: f"<|image_reg_{index}|>" for index, mark in enumerate(MARKS[1:], 1)}
    return Row(name, config(), image, given, tokens=tokens, prepare=prepare, draw=draw, unverified=True, most=1, **more)


ROWS = [
    row("falcon_ocr"),
    row("falcon_ocr-original", layout=original),
    row("falcon_ocr-4bit", packed="language", bits=4),
]
