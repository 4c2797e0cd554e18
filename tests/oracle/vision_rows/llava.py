"""CLIP and SigLIP with LLaVA's projector: one square (LLaVA 1.5), tiles of a canvas whose rows end with a mark (LLaVA-NeXT, Granite Vision,
LLaVA-OneVision), and tiles through a gated network (Aya Vision, Command A Vision)."""
import math

import mlx.core as mx
import numpy as np

from vision_rows.row import END, IMAGE, MORE, START, VOCABULARY, Image, Row, View

SIDE, PATCH = 56, 14
PER_SIDE = SIDE // PATCH
# Rows and columns of a canvas, and the part of its grid that the image covers.
CANVASES = [((1, 2), (2, 8)), ((2, 2), (8, 6)), ((2, 1), (8, 4))]
# Arrangements of Aya's tiles; the whole comes last if there are several.
TILES = [(1, 1), (1, 2), (2, 1)]
# Among them one that covers no column.
NARROW = [CANVASES[0], CANVASES[1], ((2, 1), (8, 0))]
OTHER = MORE[0]


def text(model_type, **more):
    return {"model_type": model_type, "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 64, "num_attention_heads": 2,
            "num_key_value_heads": 1, "rms_norm_eps": 1e-5, "vocab_size": VOCABULARY, "rope_theta": 10000.0, "max_position_embeddings": 4096,
            "tie_word_embeddings": False, **more}


def tower(model_type="clip_vision_model", **more):
    return {"model_type": model_type, "hidden_size": 96, "num_hidden_layers": 3, "intermediate_size": 80, "num_attention_heads": 4,
            "patch_size": PATCH, "image_size": SIDE, "projection_dim": 32, **more}


def siglip(**more):
    return tower("siglip_vision_model", layer_norm_eps=1e-6, hidden_act="gelu_pytorch_tanh", vision_use_head=False, **more)


def config(model_type, text_config, vision_config, **more):
    return {"model_type": model_type, "text_config": text_config, "vision_config": vision_config, "image_token_index": IMAGE,
            "vocab_size": VOCABULARY, **more}


def next_config(model_type, text_config, vision_config, **more):
    pinpoints = [[SIDE * rows, SIDE * columns] for (rows, columns), _ in CANVASES]
    return config(model_type, text_config, vision_config, image_grid_pinpoints=pinpoints, **more)


def cohere(model_type, **more):
    language = text("cohere2", head_dim=16, layer_norm_eps=1e-5, logit_scale=0.25, sliding_window=16, sliding_window_pattern=4, num_hidden_layers=4,
                    tie_word_embeddings=True)
    del language["rms_norm_eps"]
    return config(model_type, language, siglip(), downsample_factor=2, alignment_intermediate_size=48, **more)


def view(numbers, side=SIDE):
    return View(numbers.pixels(3, side, side), side, side, (PER_SIDE, PER_SIDE), (PER_SIDE, PER_SIDE))


def square(numbers, _):
    return Image([view(numbers)], [IMAGE] * PER_SIDE**2)


def brought(covered, most):
    """The rows and columns that a grid is brought to if a tower allows so many tiles."""
    ratio = math.sqrt(covered[0] * covered[1] / (most * PER_SIDE**2)) if most else 0
    return tuple(int(side // ratio) for side in covered) if ratio > 1.1 else covered


def on_canvas(most=None, canvases=CANVASES, side=SIDE):
    def image(numbers, index):
        tiles, covered = canvases[index % len(canvases)]
        shown = brought(covered, most)
        views = [view(numbers, side) for _ in range(tiles[0] * tiles[1] + 1)]
        run = [IMAGE] * (PER_SIDE**2 + shown[0] * (shown[1] + 1))
        return Image(views, run, tiles=tiles, whole=True, joined=[covered, shown])

    return image


def tiled(ended):
    def image(numbers, index):
        rows, columns = TILES[index % len(TILES)]
        count = rows * columns + (rows * columns > 1)
        views = [View(numbers.pixels(3, SIDE, SIDE), SIDE, SIDE, (PER_SIDE, PER_SIDE), (PER_SIDE // 2, PER_SIDE // 2)) for _ in range(count)]
        tokens = [IMAGE] * (PER_SIDE // 2)**2
        tile = tokens + [OTHER] if ended else [OTHER] + tokens
        return Image(views, [START] + tile * count + [END], tiles=(rows, columns), whole=count > 1)

    return image


def given(images, _):
    if not images:
        return {"mask": None}
    return {"pixel_values": mx.array(np.stack([view.pixels for image in images for view in image.views])), "mask": None}


def given_by_image(images, ids):
    """The views of each image, for `packed`."""
    found = given(images, ids)
    packing.images = images
    return found


class packing:
    """What mlx-vlm's models are not told."""

    images = []


def packed(features, newline, most):
    """The features of all views of the images, as transformers' `pack_image_features` puts them together: the whole first."""
    from mlx_vlm.models.interpolate import bilinear_interpolate

    found, start = [], 0
    for image in packing.images:
        count, (rows, columns), ((down, across), shown) = len(image.views), image.tiles, image.joined
        tiles, whole = features[start:start + count - 1], features[start + count - 1]
        start += count
        grid = tiles.reshape(rows, columns, PER_SIDE, PER_SIDE, -1).transpose(0, 2, 1, 3, 4).reshape(rows * PER_SIDE, columns * PER_SIDE, -1)
        above, before = (grid.shape[0] - down) // 2, (grid.shape[1] - across) // 2
        grid = grid[above:grid.shape[0] - above, before:grid.shape[1] - before]
        assert grid.shape[:2] == (down, across)
        if shown != (down, across):
            grid = bilinear_interpolate(grid, *shown)
        ends = mx.broadcast_to(newline[None, None], (grid.shape[0], 1, grid.shape[2]))
        found += [whole, mx.concatenate([grid, ends], axis=1).reshape(-1, grid.shape[2])]
    return mx.concatenate(found, axis=0)


def features_of(self, pixels):
    """The states that the config asks for, projected."""
    *_, states = self.vision_tower(pixels.transpose(0, 2, 3, 1), output_hidden_states=True)
    layers = self.config.vision_feature_layer
    layers = [layers] if isinstance(layers, int) else layers
    chosen = mx.concatenate([states[layer] for layer in layers], axis=-1)
    return self.multi_modal_projector(chosen[:, 1:] if self.config.vision_feature_select_strategy == "default" else chosen)


def repair():
    """mlx-vlm shows LLaVA-NeXT's tiles one after another, with a tile of marks after them; here they are packed as transformers does.
    Towers of SigLIP have the approximate GELU that their configs name, and Command A Vision reads states after the last norm."""
    import mlx.nn as nn
    from mlx_vlm.models.aya_vision import aya_vision, vision as aya_tower
    from mlx_vlm.models.base import InputEmbeddingsFeatures
    from mlx_vlm.models.granite_vision import granite_vision, vision as granite_tower
    from mlx_vlm.models.llava import vision as llava_tower
    from mlx_vlm.models.llava_next import llava_next

    def activated(module, only=None):
        plain = module.EncoderLayer.__init__

        def begin(self, config, *args, **more):
            plain(self, config, *args, **more)
            if only is None or config.model_type == only:
                self.mlp.activation_fn = nn.GELU(approx="tanh")

        module.EncoderLayer.__init__ = begin

    activated(aya_tower)
    activated(granite_tower)
    activated(llava_tower, "siglip_vision_model")

    def embedded(self, input_ids=None, pixel_values=None, **_):
        embeds = self.language_model.model.embed_tokens(input_ids)
        if pixel_values is None:
            return InputEmbeddingsFeatures(inputs_embeds=embeds)
        rows = packed(features_of(self, pixel_values), self.image_newline, None)
        embeds[:, np.where(np.array(input_ids) == IMAGE)[1].tolist()] = rows.astype(embeds.dtype)
        return InputEmbeddingsFeatures(inputs_embeds=embeds)

    llava_next.Model.get_input_embeddings = embedded
    granite_vision.Model.get_input_embeddings = embedded
    plain = aya_tower.SigLipVisionModel.__call__
    build = aya_vision.Model.__init__

    def begin(self, config):
        build(self, config)
        self.vision_tower.vision_model.normed = config.model_type == "cohere2_vision"
        self.vision_tower.vision_model.post_layernorm.eps = config.vision_config.layer_norm_eps

    def see(self, *args, **more):
        pooled, x, states = plain(self, *args, **more)
        return pooled, x, (*states[:-1], pooled) if self.normed else states

    aya_vision.Model.__init__ = begin
    aya_tower.SigLipVisionModel.__call__ = see


def onevision_given(images, ids):
    """As its processor hands them over: the whole first, and as many tiles for each image. An image has the size of what it covers."""
    if not images:
        return {"mask": None}
    most = max(len(image.views) for image in images)
    blank = np.zeros((3, SIDE, SIDE), np.float32)
    pixels = [np.stack([image.views[-1].pixels] + [view.pixels for view in image.views[:-1]] + [blank] * (most - len(image.views))) for image in images]
    sizes = [[side * PATCH for side in image.joined[0]] for image in images]
    return {"pixel_values": mx.array(np.stack(pixels)), "image_sizes": mx.array(sizes), "mask": None}


def original(weights):
    """As transformers 5 writes it: everything below `model.` but the output layer, and convolutions with the channels second."""
    changed = {}
    for name, value in weights.items():
        short = name.replace("language_model.model.", "language_model.")
        short = "lm_head.weight" if short == "language_model.lm_head.weight" else f"model.{short}"
        second = name.endswith("patch_embedding.weight") and value.ndim == 4
        changed[short] = mx.contiguous(value.transpose(0, 3, 1, 2)) if second else value
    return changed


def processor(kind, **more):
    return {"image_processor_type": f"{kind}ImageProcessor", "do_resize": True, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True,
            "resample": 3, "image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711], **more}


def cropped(kind, **more):
    return processor(kind, size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE}, do_center_crop=True, **more)


def row(name, config, image, given, look, tokens=None, **more):
    return Row(name, config, image, given, tokens=tokens or {IMAGE: "<image>"}, processor=look, prepare=repair, **more)


def llava(name, config, **more):
    return row(name, config, square, given, cropped("CLIP"), **more)


def llava_next(name, config, canvases=CANVASES, **more):
    look = cropped("LlavaNext", image_grid_pinpoints=config["image_grid_pinpoints"])
    return row(name, config, on_canvas(canvases=canvases), given_by_image, look, **more)


def onevision(name, **more):
    config = next_config("llava_onevision", text("qwen2"), siglip(), vision_feature_layer=-1, vision_feature_select_strategy="full",
                         vision_aspect_ratio="anyres_max_2")
    look = processor("LlavaOnevision", size={"height": SIDE, "width": SIDE}, image_grid_pinpoints=config["image_grid_pinpoints"])
    return row(name, config, on_canvas(2), onevision_given, look, **more)


def tiles(name, config, ended, **more):
    tokens = {IMAGE: "<|IMG_PATCH|>", START: "<|START_OF_IMG|>", END: "<|END_OF_IMG|>", OTHER: "<|IMG_LINE_BREAK|>" if ended else "TILE_GLOBAL"}
    look = processor("Cohere2Vision" if ended else "GotOcr2", size={"height": SIDE, "width": SIDE}, min_patches=1, max_patches=12, crop_to_patches=True)
    return row(name, config, tiled(ended), given, look, tokens, **more)


LLAVA = config("llava", text("llama"), tower(), vision_feature_layer=-2, vision_feature_select_strategy="default")
NEXT = next_config("llava_next", text("mistral"), tower(), vision_feature_layer=-2, vision_feature_select_strategy="default")
GRANITE = next_config("granite_vision", text("granite", embedding_multiplier=6.0, attention_multiplier=0.2, residual_multiplier=0.5, logits_scaling=2.0),
                      siglip(), vision_feature_layer=[-4, -3, -1], vision_feature_select_strategy="full")

ROWS = [
    llava("llava", LLAVA),
    llava("llava-original", LLAVA, layout=original),
    llava("llava-4bit", LLAVA, packed="language", bits=4),
    llava("llava-tower8", LLAVA, packed="all"),
    llava("llava-siglip", config("llava", text("qwen2"), siglip(), vision_feature_layer=-1, vision_feature_select_strategy="full")),
    llava_next("llava_next", NEXT),
    llava_next("llava_next-original", NEXT, layout=original),
    llava_next("llava_next-4bit", NEXT, NARROW, packed="language", bits=4),
    llava_next("granite_vision", GRANITE),
    onevision("llava_onevision"),
    onevision("llava_onevision-original", layout=original),
    onevision("llava_onevision-tower8", packed="all"),
    tiles("aya_vision", cohere("aya_vision", image_token_index=IMAGE), False),
    tiles("aya_vision-original", cohere("aya_vision"), False, layout=original),
    tiles("aya_vision-4bit", cohere("aya_vision"), False, packed="language", bits=4),
    tiles("cohere2_vision", cohere("cohere2_vision"), True),
    tiles("cohere2_vision-original", cohere("cohere2_vision"), True, layout=original),
]
