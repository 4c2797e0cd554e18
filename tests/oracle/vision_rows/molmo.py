"""Overlapping tiles and the whole, whose states attention pools block by block, beside Qwen 3's layers (Molmo, Molmo 2, Jina VLM)."""
import mlx.core as mx
import numpy as np

from vision_rows.row import AUDIO, END, IMAGE, START, VIDEO, VOCABULARY, Image, Row, View

# Eleven patches along a side, so that blocks of the whole reach beyond it; four at each side belong to a neighbor.
SIDE, PATCH, MARGIN, MERGE = 154, 14, 4, 2
PER_SIDE = SIDE // PATCH
STEP = PER_SIDE - 2 * MARGIN
# Rows and columns of tiles.
TILES = [(1, 2), (2, 2), (1, 1)]
ROW_END, LOW = VIDEO, AUDIO


def config():
    text = {"model_type": "molmo2_text", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
            "num_key_value_heads": 1, "head_dim": 16, "vocab_size": IMAGE, "additional_vocab_size": VOCABULARY - IMAGE, "hidden_act": "silu",
            "layer_norm_eps": 1e-6, "max_position_embeddings": 4096, "rope_theta": 5000000.0, "rope_scaling": None, "rope_scaling_layers": None,
            "use_qk_norm": True, "qk_norm_type": "qwen3", "qkv_bias": False, "norm_after": False}
    vit = {"model_type": "molmo2", "hidden_size": 96, "intermediate_size": 80, "num_hidden_layers": 5, "num_attention_heads": 4,
           "num_key_value_heads": 4, "head_dim": 24, "image_patch_size": PATCH, "image_num_pos": PER_SIDE**2, "image_default_input_size": [SIDE, SIDE],
           "hidden_act": "gelu_pytorch_tanh", "layer_norm_eps": 1e-6}
    adapter = {"model_type": "molmo2", "hidden_size": 96, "intermediate_size": 64, "text_hidden_size": 32, "num_attention_heads": 4,
               "num_key_value_heads": 4, "head_dim": 24, "hidden_act": "silu", "vit_layers": [-2, -4], "pooling_attention_mask": True}
    return {"model_type": "molmo2", "text_config": text, "vit_config": vit, "adapter_config": adapter, "image_patch_id": IMAGE, "image_col_id": ROW_END,
            "image_start_token_id": START, "low_res_image_start_token_id": LOW, "image_end_token_id": END, "tie_word_embeddings": False}


def blocks(rows, columns):
    return -(-rows // MERGE), -(-columns // MERGE)


def image(numbers, index):
    rows, columns = TILES[index % len(TILES)]
    patches, grid = (PER_SIDE, PER_SIDE), (rows * STEP + 2 * MARGIN, columns * STEP + 2 * MARGIN)
    views = [View(numbers.pixels(3, SIDE, SIDE), SIDE, SIDE, patches, (0, 0)) for _ in range(rows * columns + 1)]
    views[0].tokens, views[-1].tokens = blocks(*grid), blocks(*patches)
    run = []
    for start, (down, across) in ((LOW, views[-1].tokens), (START, views[0].tokens)):
        run += [start] + ([IMAGE] * across + [ROW_END]) * down + [END]
    return Image(views, run, tiles=(rows, columns), whole=True)


def given(images, _):
    if not images:
        return {}
    from mlx_vlm.models.molmo2.processing import arange_for_pooling, batch_pixels_to_patches

    crops, pooling, grids, counts = [], [], [], []
    for image in images:
        rows, columns = image.tiles
        tiles = [image.views[-1]] + image.views[:-1]
        crops += [batch_pixels_to_patches(view.pixels.transpose(1, 2, 0)[None], PATCH)[0] for view in tiles]
        whole = np.arange(PER_SIDE**2).reshape(PER_SIDE, PER_SIDE)
        # As `build_overlapping_crops` numbers patches that a tile keeps.
        grid = np.zeros((rows * STEP + 2 * MARGIN, columns * STEP + 2 * MARGIN), int)
        for row in range(rows):
            for column in range(columns):
                down = slice(MARGIN if row else 0, PER_SIDE - MARGIN if row + 1 < rows else PER_SIDE)
                across = slice(MARGIN if column else 0, PER_SIDE - MARGIN if column + 1 < columns else PER_SIDE)
                numbered = whole + (1 + row * columns + column) * PER_SIDE**2
                grid[row * STEP:, column * STEP:][down, across] = numbered[down, across]
        made = [arange_for_pooling(part, MERGE, MERGE) for part in (whole, grid)]
        pooling += [part.reshape(-1, MERGE**2) for part in made]
        grids.append([*made[0].shape[:2], *made[1].shape[:2]])
        counts.append(len(tiles))
    return {"pixel_values": mx.array(np.stack(crops)), "image_token_pooling": mx.array(np.concatenate(pooling)), "image_grids": mx.array(grids),
            "image_num_crops": mx.array(counts)}


# Twelve patches along a side of the first Molmo's tiles, and the sizes of images in their canvases.
FIRST_SIDE = 12 * PATCH
FIRST_SIZES = [(224, 100), (190, 224), (57, 168)]


def first_config(numbers):
    text = {"model_type": "molmo", "d_model": 32, "n_heads": 2, "n_kv_heads": 1, "n_layers": 2, "mlp_hidden_size": 128, "vocab_size": IMAGE,
            "embedding_size": IMAGE, "additional_vocab_size": VOCABULARY - IMAGE, "layer_norm_eps": 1e-6, "rope_theta": 1000000.0, "weight_tying": False}
    vision = {"model_type": "molmo", "image_default_input_size": [FIRST_SIDE, FIRST_SIDE], "image_patch_size": PATCH, "image_pos_patch_size": PATCH,
              "hidden_size": 64, "image_emb_dim": 96, "image_num_heads": 4, "image_num_key_value_heads": 4, "image_num_layers": 5, "image_head_dim": 24,
              "image_mlp_dim": 80, "image_num_pos": 145, "image_norm_eps": 1e-5, "d_model": 32, "vit_layers": [-2, -4], "intermediate_size": numbers}
    return {"model_type": "molmo", "text_config": text, "vision_config": vision}


def first_image(numbers, index):
    (rows, columns), size = TILES[index % len(TILES)], FIRST_SIZES[index % len(TILES)]
    step, per_side = 12 - 2 * MARGIN, 12 // MERGE
    grid = (rows * step + 2 * MARGIN) // MERGE, (columns * step + 2 * MARGIN) // MERGE
    views = [View(numbers.pixels(3, FIRST_SIDE, FIRST_SIDE), FIRST_SIDE, FIRST_SIDE, (12, 12), (0, 0)) for _ in range(rows * columns + 1)]
    views[0].tokens, views[-1].tokens = grid, (per_side, per_side)
    run = []
    for down, across in (views[-1].tokens, views[0].tokens):
        run += [START] + ([IMAGE] * across + [ROW_END]) * down + [END]
    return Image(views, run, tiles=(rows, columns), whole=True, resized=size)


def first_given(images, ids):
    if not images:
        return {"mask": None}
    from mlx_vlm.models.molmo.processing_molmo import rearrange_global, rearrange_mask

    crops, masks, places, taken, step = [], [], [], np.where(np.array(ids) == IMAGE)[0], (12 - 2 * MARGIN) * PATCH
    for image in images:
        crops += [rearrange_global(view.pixels.transpose(1, 2, 0), PATCH, PATCH, 12, 12) for view in [image.views[-1]] + image.views[:-1]]
        rows, columns = image.tiles
        canvas = np.zeros((rows * step + 2 * MARGIN * PATCH, columns * step + 2 * MARGIN * PATCH))
        across, down = image.resized
        top, left = (canvas.shape[0] - down) // 2, (canvas.shape[1] - across) // 2
        canvas[top:top + down, left:left + across] = 1
        tiles = [canvas[row * step:row * step + FIRST_SIDE, column * step:column * step + FIRST_SIDE] for row in range(rows) for column in range(columns)]
        # As `image_to_patches_and_tokens` does, which puts nothing after the last tile and the whole before the first.
        masks.append(np.pad(rearrange_mask(np.stack(tiles), PATCH, PATCH, 12, 12).mean(axis=-1), [[0, 1], [0, 0]], constant_values=-1))
        own, taken = np.split(taken, [36 + int(np.prod(image.views[0].tokens))])
        places.append(own[:36])
        grid, above = own[36:].reshape(image.views[0].tokens), 0
        for row in range(rows):
            (first, high), before = kept(row, rows, 12), 0
            for column in range(columns):
                start, wide = kept(column, columns, 12)
                place = np.full((6, 6), -100)
                place[first:first + high, start:start + wide] = grid[above:above + high, before:before + wide]
                places.append(place.reshape(-1))
                before += wide
            above += high
    return {"pixel_values": mx.array(np.stack(crops)), "image_input_idx": mx.array(np.stack(places)), "image_masks": mx.array(np.concatenate(masks)),
            "mask": None}


def first_original(weights):
    """As the original repository has it."""
    return {name.replace("language_model.model.", "model.transformer.").replace("vision_tower.", "model.vision_backbone."): value
            for name, value in weights.items()}


def first(name, numbers=588, **more):
    look = {"image_processor_type": "MolmoImageProcessor", "base_image_input_size": [FIRST_SIDE, FIRST_SIDE], "image_patch_size": PATCH, "max_crops": 4,
            "overlap_margins": [MARGIN, MARGIN], "image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711]}
    tokens = {IMAGE: "<im_patch>", START: "<im_start>", END: "<im_end>", ROW_END: "<im_col>", VOCABULARY - 1: "<|image|>", "template": "<|image|>"}
    return Row(name, first_config(numbers), first_image, first_given, tokens=tokens, processor=look, **more)


def jina_config():
    text = {"model_type": "jina_vlm_text", "hidden_size": 32, "n_layers": 2, "vocab_size": IMAGE, "additional_vocab_size": VOCABULARY - IMAGE,
            "rope_theta": 1000000.0, "max_sequence_length": 4096, "tie_word_embeddings": False,
            "block_config": {"attn_config": {"n_heads": 2, "n_kv_heads": 1, "head_dim": 16, "q_lnorm": True, "k_lnorm": True}, "ffn_config": {"size": 64},
                             "lnorm_config": {"eps": 1e-6}}}
    vision = {"model_type": "jina_vlm_vision", "hidden_size": 96, "n_layers": 5, "patch_size": PATCH, "input_size": [SIDE, SIDE], "post_lnorm": True,
              "use_cls_token": False, "vit_layers": [-3, -5], "output_size": 32,
              "block_config": {"attn_config": {"n_heads": 4, "head_dim": 24, "q_bias": True},
                               "ffn_config": {"size": 80, "activation_type": "gelu_pytorch_tanh"}},
              "vl_connector_config": {"pooling_h": MERGE, "pooling_w": MERGE, "mlp_projector_config": {"size": 64}}}
    return {"model_type": "jvlm", "text_config": text, "vision_config": vision, "vocab_size": IMAGE, "image_token_id": VOCABULARY - 1,
            "image_token_index": VOCABULARY - 1}


def jina_asked():
    """mlx-vlm reads what stands in inner objects, and then what stands beside them again."""
    whole = jina_config()
    whole["text_config"] |= {"num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16, "intermediate_size": 64,
                             "max_position_embeddings": 4096}
    whole["vision_config"] |= {"num_hidden_layers": 5, "num_attention_heads": 4, "head_dim": 24, "image_size": SIDE, "intermediate_size": 80,
                               "connector_hidden_size": 64}
    return whole


def kept(tile, count, per_side=PER_SIDE):
    """The first block that a tile of so many keeps, and how many."""
    before, after = tile > 0, tile + 1 < count
    return before * MARGIN // MERGE, -(-(per_side - (before + after) * MARGIN) // MERGE)


def jina_image(numbers, index):
    rows, columns = TILES[index % len(TILES)]
    grid = tuple(sum(kept(tile, count)[1] for tile in range(count)) for count in (rows, columns))
    views = [View(numbers.pixels(3, SIDE, SIDE), SIDE, SIDE, (PER_SIDE, PER_SIDE), (0, 0)) for _ in range(rows * columns + 1)]
    views[0].tokens, views[-1].tokens = grid, blocks(PER_SIDE, PER_SIDE)
    run = []
    for down, across in (views[-1].tokens, views[0].tokens):
        run += [START] + ([IMAGE] * across + [ROW_END]) * down + [END]
    return Image(views, run, tiles=(rows, columns), whole=True)


def jina_given(images, ids):
    if not images:
        return {}
    from mlx_vlm.models.jina_vlm.image_processor import patchify

    crops, places, taken, per_side = [], [], np.where(np.array(ids) == IMAGE)[0], blocks(PER_SIDE, PER_SIDE)[0]
    for image in images:
        crops += [patchify(view.pixels.transpose(1, 2, 0), PATCH) for view in [image.views[-1]] + image.views[:-1]]
        own, taken = np.split(taken, [per_side**2 + int(np.prod(image.views[0].tokens))])
        places.append(own[:per_side**2])
        grid, (rows, columns), top = own[per_side**2:].reshape(image.views[0].tokens), image.tiles, 0
        for row in range(rows):
            (first, down), left = kept(row, rows), 0
            for column in range(columns):
                before, across = kept(column, columns)
                place = np.full((per_side, per_side), -100)
                place[first:first + down, before:before + across] = grid[top:top + down, left:left + across]
                places.append(place.reshape(-1))
                left += across
            top += down
    return {"pixel_values": mx.array(np.stack(crops)), "image_input_idx": mx.array(np.stack(places)),
            "image_masks": mx.ones((len(crops), PER_SIDE**2))}


def repair():
    """The tower has the approximate GELU that its config names."""
    import mlx.nn as nn
    from mlx_vlm.models.molmo2 import vision

    vision._gelu_from_name = lambda _: nn.GELU(approx="precise")


def original(weights):
    """As the original repository has it."""
    changed = {}
    for name, value in weights.items():
        short = name.replace("language_model.lm_head.", "lm_head.").replace("language_model.model.", "model.transformer.")
        short = short.replace("vision_tower.image_vit.transformer.", "vision_tower.image_vit.transformer.resblocks.")
        changed[short.replace("vision_tower.", "model.vision_backbone.")] = value
    return changed


def jina_original(weights):
    """As the original repository has it."""
    return {name.replace("language_model.lm_head.", "lm_head."): value for name, value in weights.items()}


def jina(name, **more):
    look = {"image_processor_type": "JinaVLMImageProcessor"}
    tokens = {IMAGE: "<im_patch>", START: "<im_start>", END: "<im_end>", ROW_END: "<im_col>", VOCABULARY - 1: "<|image|>", "template": "<|image|>"}
    return Row(name, jina_config(), jina_image, jina_given, tokens=tokens, processor=look, asked=jina_asked(), **more)


def row(name, **more):
    look = {"image_processor_type": "Molmo2ImageProcessor", "size": {"height": SIDE, "width": SIDE}, "resample": 2, "image_mean": [0.5] * 3,
            "image_std": [0.5] * 3, "max_crops": 4, "overlap_margins": [MARGIN, MARGIN], "patch_size": PATCH, "pooling_size": [MERGE, MERGE]}
    tokens = {IMAGE: "<im_patch>", START: "<im_start>", END: "<im_end>", ROW_END: "<im_col>", LOW: "<low_res_im_start>", VOCABULARY - 1: "<|image|>", "template": "<|image|>"}
    return Row(name, config(), image, given, tokens=tokens, processor=look, prepare=repair, **more)


ROWS = [
    first("molmo"),
    first("molmo-original", layout=first_original),
    first("molmo-4bit", packed="language", bits=4),
    first("molmo-tower8", 608, packed="all"),
    row("molmo2"),
    row("molmo2-original", layout=original),
    row("molmo2-4bit", packed="language", bits=4),
    row("molmo2-tower8", packed="all"),
    jina("jvlm"),
    jina("jvlm-original", layout=jina_original),
    jina("jvlm-4bit", packed="language", bits=4),
    jina("jvlm-tower8", packed="all"),
]
