"""SigLIP towers: Gemma 3 pools and looks both ways within an image, Idefics 3 and SmolVLM cut images into tiles, LFM2-VL takes any shape."""
import mlx.core as mx
import numpy as np

from vision_rows.row import END, IMAGE, START, VOCABULARY, Image, Row, View

SIDE = 56
# LFM2-VL's rows and columns of patches; all are stretched from 4 x 4 learned positions, some of them squeezed.
GRIDS = [(4, 6), (6, 2), (2, 8)]
# Idefics' tiles of each image: rows and columns of them and the whole, or the whole alone.
TILES = [None, (1, 2), (2, 1)]


def tower(model_type, **more):
    return {"model_type": model_type, "hidden_size": 96, "num_hidden_layers": 2, "intermediate_size": 80, "num_attention_heads": 4,
            "num_channels": 3, "layer_norm_eps": 1e-6, **more}


def gemma3_config():
    text = {"model_type": "gemma3_text", "hidden_size": 32, "num_hidden_layers": 4, "intermediate_size": 64, "num_attention_heads": 2,
            "num_key_value_heads": 1, "head_dim": 16, "rms_norm_eps": 1e-6, "vocab_size": VOCABULARY, "query_pre_attn_scalar": 16,
            "sliding_window": 8, "sliding_window_pattern": 2, "rope_global_base_freq": 1e6, "rope_local_base_freq": 1e4,
            "rope_theta": 1e6, "mm_tokens_per_image": 4, "max_position_embeddings": 4096}
    vision = tower("siglip_vision_model", patch_size=14, image_size=SIDE, vision_use_head=False)
    return {"model_type": "gemma3", "text_config": text, "vision_config": vision, "mm_tokens_per_image": 4, "image_token_index": IMAGE,
            "boi_token_index": START, "eoi_token_index": END, "hidden_size": 32, "vocab_size": VOCABULARY, "pad_token_id": 0}


def idefics3_config(model_type):
    text = {"model_type": "llama", "hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 2, "num_key_value_heads": 1,
            "num_hidden_layers": 2, "rms_norm_eps": 1e-5, "vocab_size": VOCABULARY, "rope_theta": 10000.0, "tie_word_embeddings": False,
            "max_position_embeddings": 4096, "head_dim": 16}
    vision = tower("idefics3_vision" if model_type == "idefics3" else "smolvlm_vision", patch_size=14, image_size=SIDE)
    return {"model_type": model_type, "text_config": text, "vision_config": vision, "scale_factor": 2, "image_token_id": IMAGE,
            "vocab_size": VOCABULARY, "tie_word_embeddings": False}


def lfm2_config():
    text = {"model_type": "lfm2", "hidden_size": 32, "num_hidden_layers": 4, "intermediate_size": 64, "block_ff_dim": 64,
            "block_auto_adjust_ff_dim": False, "block_multiple_of": 8, "num_attention_heads": 2, "num_heads": 2, "num_key_value_heads": 1,
            "vocab_size": VOCABULARY, "norm_eps": 1e-5, "block_norm_eps": 1e-5, "conv_L_cache": 3, "conv_bias": False, "conv_dim": 32,
            "conv_dim_out": 32, "block_dim": 32, "rope_theta": 1e6, "max_position_embeddings": 4096,
            "layer_types": ["conv", "full_attention", "conv", "full_attention"], "full_attn_idxs": [1, 3]}
    vision = tower("siglip2_vision_model", patch_size=16, num_patches=16, vision_use_head=False)
    return {"model_type": "lfm2_vl", "text_config": text, "vision_config": vision, "downsample_factor": 2, "image_token_id": IMAGE,
            "projector_hidden_size": 64, "projector_bias": True, "projector_use_layernorm": True, "encoder_patch_size": 16,
            "max_num_patches": 64, "vision_feature_layer": -1}


def view(numbers):
    return View(numbers.pixels(3, SIDE, SIDE), SIDE, SIDE, (4, 4), (2, 2))


def gemma3_image(numbers, _):
    return Image([view(numbers)], [START] + [IMAGE] * 4 + [END])


def idefics3_image(numbers, index):
    """Marks before each tile and after the last one, as many features as a tile has in between."""
    tiles = TILES[index % len(TILES)]
    count = tiles[0] * tiles[1] + 1 if tiles else 1
    run = sum([[START] + [IMAGE] * 4 for _ in range(count)], []) + [START]
    return Image([view(numbers) for _ in range(count)], run, tiles=tiles, whole=True)


def lfm2_image(numbers, index):
    rows, columns = GRIDS[index % len(GRIDS)]
    tokens = (rows // 2, columns // 2)
    pixels = numbers.pixels(rows * columns, 16 * 16 * 3)
    return Image([View(pixels, columns * 16, rows * 16, (rows, columns), tokens)], [START] + [IMAGE] * (tokens[0] * tokens[1]) + [END])


def squares(extra_axis=False):
    def given(images, _):
        if not images:
            return {}
        pixels = np.stack([view.pixels for image in images for view in image.views])
        return {"pixel_values": mx.array(pixels[None] if extra_axis else pixels)}

    return given


def gemma3_given(images, ids):
    return {**squares()(images, ids), "mask": mx.ones((1, len(ids)), dtype=mx.int32)}


def lfm2_given(images, _):
    """Rows padded to the longest image."""
    if not images:
        return {"mask": None}
    views = [view for image in images for view in image.views]
    longest = max(len(view.pixels) for view in views)
    pixels = np.stack([np.pad(view.pixels, ((0, longest - len(view.pixels)), (0, 0))) for view in views])
    mask = [[int(at < len(view.pixels)) for at in range(longest)] for view in views]
    return {"pixel_values": mx.array(pixels), "spatial_shapes": mx.array([view.patches for view in views]),
            "pixel_attention_mask": mx.array(mask), "mask": None}


def both_ways(ids, window):
    """The attention mask `[length, length]`: causal, in both directions within an image, never out of the window."""
    blocks, block, last = [], -1, None
    for token in ids:
        block += int(token == IMAGE and last != IMAGE)
        blocks.append(block if token == IMAGE else -1)
        last = token
    blocks, at = mx.array(blocks), mx.arange(len(ids))
    seen = (at[:, None] >= at[None]) | ((blocks[:, None] == blocks[None]) & (blocks[:, None] >= 0))
    return seen if window is None else seen & (at[:, None] - at[None] < window)


def repair_gemma3():
    """mlx-vlm lets every token of a prompt with images see every other one, ahead and out of the window; and its features pass through
    the factor of the embeddings, whose rounding they should not have."""
    from mlx_vlm.models.gemma3 import gemma3, language

    # Once in each process, which may write several rows.
    if hasattr(language, "repaired"):
        return
    language.repaired = True
    plain, state = language.create_attention_mask, {"ids": []}
    place = gemma3.Model.prepare_inputs_for_multimodal

    def unrounded(hidden, pad, index, features, *rest):
        rounded = mx.array(hidden**0.5, mx.bfloat16).astype(mx.float32).item()
        return place(hidden, pad, index, features * (hidden**0.5 / rounded), *rest)

    def mask(h, cache=None, window_size=None, **more):
        if len(state["ids"]) != h.shape[1]:
            return plain(h, cache, window_size=window_size, **more) if window_size else plain(h, cache, **more)
        return both_ways(state["ids"], window_size)

    def call(self, input_ids, pixel_values=None, mask=None, cache=None, **_):
        state["ids"] = [] if pixel_values is None else input_ids[0].tolist()
        embedded = self.get_input_embeddings(input_ids, pixel_values, mx.ones(input_ids.shape, dtype=mx.int32)).inputs_embeds
        return self.language_model(inputs=input_ids, cache=cache, inputs_embeds=embedded)

    language.create_attention_mask = mask
    gemma3.Model.__call__ = call
    gemma3.Model.prepare_inputs_for_multimodal = staticmethod(unrounded)


def channels_second(name, value):
    return mx.contiguous(value.transpose(0, 3, 1, 2)) if name.endswith("patch_embedding.weight") and value.ndim == 4 else value


def gemma3_tied(weights):
    """Without an output layer: all of these models read the embedding the other way round, and so does mlx-vlm whatever a file holds."""
    return {name: value for name, value in weights.items() if "lm_head" not in name}


def gemma3_original(weights):
    """As transformers 5 writes it: everything below `model.`, and no `vision_model.` in the tower's names."""
    changed = {}
    for name, value in gemma3_tied(weights).items():
        short = name.replace("language_model.model.", "language_model.").replace("vision_tower.vision_model.", "vision_tower.")
        changed[f"model.{short}"] = channels_second(name, value)
    return changed


def idefics3_original(weights):
    """As the original repositories have it: `text_model` for `language_model`, everything but the output layer below `model.`."""
    changed = {}
    for name, value in weights.items():
        short = name.replace("language_model.", "text_model.")
        short = "lm_head.weight" if short == "text_model.lm_head.weight" else f"model.{short}"
        changed[short] = channels_second(name, value)
    return changed


def lfm2_original(weights):
    """As the original repositories have it: `vision_model` in the tower's names, and all below `model.`."""
    names = {"language_model.model.": "language_model.", "vision_tower.": "vision_tower.vision_model."}
    changed = {}
    for name, value in weights.items():
        for old, new in names.items():
            name = name.replace(old, new)
        if name.endswith("conv.conv.weight"):
            value = mx.contiguous(value.transpose(0, 2, 1))
        changed[f"model.{name}"] = value
    return changed


def processor(kind, **more):
    return {"image_processor_type": kind, "do_resize": True, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True,
            "image_mean": [0.5] * 3, "image_std": [0.5] * 3, **more}


def gemma3(name, **more):
    look = processor("Gemma3ImageProcessor", size={"height": SIDE, "width": SIDE}, resample=2, image_seq_length=4, do_pan_and_scan=None)
    tokens = {IMAGE: "<image_soft_token>", START: "<start_of_image>", END: "<end_of_image>"}
    more.setdefault("layout", gemma3_tied)
    return Row(name, gemma3_config(), gemma3_image, gemma3_given, tokens=tokens, processor=look, prepare=repair_gemma3, **more)


def idefics3(name, model_type, **more):
    look = processor(f"{'SmolVLM' if model_type == 'smolvlm' else 'Idefics3'}ImageProcessor", size={"longest_edge": 4 * SIDE}, resample=1,
                     max_image_size={"longest_edge": SIDE}, do_image_splitting=True, do_pad=True, do_convert_rgb=True)
    tokens = {IMAGE: "<image>", START: "<fake_token_around_image>"}
    return Row(name, idefics3_config(model_type), idefics3_image, squares(extra_axis=True), tokens=tokens, processor=look, **more)


def lfm2(name, **more):
    look = processor("Lfm2VlImageProcessorFast", resample=2, downsample_factor=2, encoder_patch_size=16, min_image_tokens=2,
                     max_image_tokens=64, tile_size=64, min_tiles=2, max_tiles=10, do_image_splitting=True, use_thumbnail=True)
    tokens = {IMAGE: "<image>", START: "<|image_start|>", END: "<|image_end|>"}
    return Row(name, lfm2_config(), lfm2_image, lfm2_given, tokens=tokens, processor=look, **more)


ROWS = [
    gemma3("gemma3"),
    gemma3("gemma3-original", layout=gemma3_original),
    gemma3("gemma3-4bit", packed="language", bits=4),
    gemma3("gemma3-tower8", packed="all"),
    idefics3("idefics3", "idefics3"),
    idefics3("idefics3-original", "idefics3", layout=idefics3_original),
    idefics3("smolvlm", "smolvlm"),
    idefics3("smolvlm-4bit", "smolvlm", packed="language", bits=4),
    idefics3("smolvlm-tower8", "smolvlm", packed="all"),
    lfm2("lfm2_vl"),
    lfm2("lfm2_vl-original", layout=lfm2_original),
    lfm2("lfm2_vl-4bit", packed="language", bits=4),
    lfm2("lfm2_vl-tower8", packed="all"),
]
