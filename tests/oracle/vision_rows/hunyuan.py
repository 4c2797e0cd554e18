"""HunyuanOCR, which nobody has checked on its published weights. mlx-vlm builds the parts; how they are put together, the order of axes and
the resampling of positions are written here as vLLM and transformers describe them: `unverified`."""
import mlx.core as mx
import numpy as np

from vision_rows.row import END, IMAGE, START, VOCABULARY, Image, Row, View

PATCH, MERGE, SIDE = 16, 2, 12
GRIDS = [(4, 6), (6, 4), (8, 2)]
SECTIONS = [6, 4, 4, 2]


def config():
    # Ids that mlx-vlm's config class would otherwise fill in lie beyond a small vocabulary.
    ids = {"image_start_token_id": START, "image_end_token_id": END, "image_token_id": IMAGE, "image_newline_token_id": 305,
           "bos_token_id": 1, "pad_id": 0}
    vision = {"model_type": "hunyuan_vl", "hidden_size": 96, "out_hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
              "intermediate_size": 80, "patch_size": PATCH, "num_channels": 3, "spatial_merge_size": MERGE, "rms_norm_eps": 1e-5,
              "interpolate_mode": "bilinear", "cat_extra_token": 1, "max_image_size": SIDE * PATCH, "max_vit_seq_len": 64,
              "img_max_token_num": 64}
    return {"model_type": "hunyuan_vl", "vision_config": vision, "vocab_size": VOCABULARY, "org_vocab_size": VOCABULARY, "hidden_size": 32,
            "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 32, "attention_head_dim": 32,
            "intermediate_size": 64, "use_qk_norm": True, "rope_theta": 10000.0, "rms_norm_eps": 1e-5, "tie_word_embeddings": True,
            "max_position_embeddings": 4096,
            "rope_scaling": {"alpha": 1000.0, "beta_fast": 32, "beta_slow": 1, "factor": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0,
                             "type": "xdrope", "xdrope_section": SECTIONS}, **ids}


PROCESSOR = {"image_processor_type": "HunYuanVLImageProcessor", "patch_size": PATCH, "temporal_patch_size": 1, "merge_size": MERGE,
             "min_pixels": 4096, "max_pixels": 65536, "image_mean": [0.48145466, 0.4578275, 0.40821073],
             "image_std": [0.26862954, 0.26130258, 0.27577711], "do_resize": True, "do_rescale": True, "rescale_factor": 1 / 255,
             "do_normalize": True, "do_convert_rgb": True, "resample": 1}


def image(numbers, index):
    """Each row of tokens has one more for its end, and there is one before all and one after."""
    rows, columns = GRIDS[index % len(GRIDS)]
    tokens = (rows // MERGE, columns // MERGE)
    count = tokens[0] * (tokens[1] + 1) + 2
    view = View(numbers.pixels(rows * columns, 3 * PATCH * PATCH), columns * PATCH, rows * PATCH, (rows, columns), tokens, count)
    return Image([view], [START] + [IMAGE] * count + [END])


def given(images, ids):
    views = [view for image in images for view in image.views]
    return {"pixel_values": [mx.array(view.pixels) for view in views] or None, "grids": [view.patches for view in views]}


def places(ids, grids):
    """Place in the prompt, column, row and number of the image `[4, length]`: all the place in text, and counted from 0 in an image."""
    axes = np.tile(np.arange(len(ids)), (4, 1))
    begins = [at for at, token in enumerate(ids) if token == IMAGE and ids[at - 1] != IMAGE]
    for number, (begin, (rows, columns)) in enumerate(zip(begins, grids)):
        down, across = rows // MERGE, columns // MERGE + 1
        within = slice(begin + 1, begin + 1 + down * across)
        axes[1, within] = np.tile(np.arange(across), down)
        axes[2, within] = np.repeat(np.arange(down), across)
        axes[3, within] = number
    return mx.array(axes)


def stretched(self, table, rows, columns):
    """Positions between their neighbors, for a grid that is a tenth of a cell larger; beyond the border the border."""
    def axis(count, source):
        at = mx.maximum((mx.arange(count) + 0.5) * (source / (count + 0.1)) - 0.5, 0)
        low = mx.floor(at).astype(mx.int32)
        return low, mx.minimum(low + 1, source - 1), at - low

    top, bottom, down = axis(rows, table.shape[1])
    left, right, over = axis(columns, table.shape[2])
    upper = table[0][top][:, left] * (1 - over)[:, None] + table[0][top][:, right] * over[:, None]
    lower = table[0][bottom][:, left] * (1 - over)[:, None] + table[0][bottom][:, right] * over[:, None]
    return (upper * (1 - down)[:, None, None] + lower * down[:, None, None])[None]


def call(self, input_ids, pixel_values=None, grids=(), **_):
    ids, language = input_ids[0].tolist(), self.language_model
    embedded = language.model.embed_tokens(input_ids)
    if pixel_values:
        # One by one: images do not see each other in the tower.
        seen = [self.vision_tower(pixels, [(1, *grid)])[0] for pixels, grid in zip(pixel_values, grids)]
        at = mx.array([index for index, token in enumerate(ids) if token == IMAGE])
        embedded[0, at] = mx.concatenate(seen)
    out = language.model(inputs_embeds=embedded, position_ids=places(ids, grids)[None])
    return language.model.embed_tokens.as_linear(out)


def prepare():
    from mlx_vlm.models.hunyuan_vl import hunyuan_vl, vision

    vision.PatchEmbed._interpolate_pos_embed = stretched
    hunyuan_vl.Model.__call__ = call


def draw(name, shape, source):
    """The tokens between those of patches are as strong as they are."""
    if name.endswith(("image_newline", "image_begin", "image_end")):
        return source.normal(0, 1, shape)
    return None


def original(weights):
    """Names as the original repository has them, and convolutions with the channels second."""
    changed = {}
    for name, value in weights.items():
        if value.ndim == 4:
            value = mx.contiguous(value.transpose(0, 3, 1, 2))
        changed[name.replace("language_model.model.", "model.").replace("vision_tower.", "vit.")] = value
    return changed


def saved(weights):
    """Names as transformers 5 saves them."""
    table = [("vit.", "model.vision_tower."), ("perceive.proj.0", "patch_merger.proj_conv"), ("perceive.proj.2", "patch_merger.proj_out"),
             ("perceive.", "patch_merger."), ("dense_h_to_4h", "fc1"), ("dense_4h_to_h", "fc2")]
    changed = {}
    for name, value in original(weights).items():
        if name.startswith("vit."):
            name = name.replace("input_layernorm", "layer_norm1").replace("post_attention_layernorm", "layer_norm2")
            for old, new in table:
                name = name.replace(old, new)
        else:
            name = name.replace("model.", "model.language_model.", 1)
        changed[name] = value
    return changed


def row(name, **more):
    tokens = {START: "<｜hy_place▁holder▁no▁100｜>", IMAGE: "<｜hy_place▁holder▁no▁102｜>", END: "<｜hy_place▁holder▁no▁101｜>"}
    tokens["template"] = "".join(tokens[token] for token in (START, IMAGE, END))
    return Row(name, config(), image, given, tokens=tokens, processor=PROCESSOR, prepare=prepare, draw=draw, unverified=True, **more)


ROWS = [
    row("hunyuan_vl"),
    row("hunyuan_vl-original", layout=original),
    row("hunyuan_vl-saved", layout=saved),
    row("hunyuan_vl-4bit", packed="language", bits=4),
    row("hunyuan_vl-tower8", packed="all"),
]
