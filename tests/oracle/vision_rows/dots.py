"""The tower of dots.ocr: Qwen2.5-VL's without windows, with norms of its own, beside Qwen 2."""
import mlx.core as mx

from vision_rows.qwen import CLIP, GRIDS, given, processor
from vision_rows.row import END, IMAGE, START, VIDEO, VOCABULARY, Image, Row, View

PATCH = 14


def config(**vision):
    vision = {"model_type": "dots_vit", "embed_dim": 96, "hidden_size": 32, "intermediate_size": 80, "num_hidden_layers": 2,
              "num_attention_heads": 4, "num_channels": 3, "patch_size": PATCH, "post_norm": True, "rms_norm_eps": 1e-3,
              "spatial_merge_size": 2, "temporal_patch_size": 1, "use_bias": False, **vision}
    return {"model_type": "dots_ocr", "vision_config": vision, "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 64,
            "num_attention_heads": 2, "num_key_value_heads": 1, "rms_norm_eps": 1e-6, "vocab_size": VOCABULARY, "attention_bias": True,
            "max_position_embeddings": 4096, "rope_theta": 10000.0, "rope_scaling": None, "tie_word_embeddings": False,
            "image_token_id": IMAGE, "video_token_id": VIDEO}


def image(numbers, index):
    rows, columns = GRIDS[index % len(GRIDS)]
    tokens = (rows // 2, columns // 2)
    pixels = numbers.pixels(rows * columns, 3 * PATCH * PATCH)
    view = View(pixels, columns * PATCH, rows * PATCH, (rows, columns), tokens)
    return Image([view], [START] + [IMAGE] * (tokens[0] * tokens[1]) + [END])


def original(weights):
    """Names as the original repository has them, and the convolution with the channels second."""
    changed = {}
    for name, value in weights.items():
        name = name.replace("language_model.model.lm_head", "lm_head").replace("language_model.", "")
        changed[name] = mx.contiguous(value.transpose(0, 3, 1, 2)) if name.endswith("patchifier.proj.weight") else value
    return changed


def row(name, config, **more):
    tokens = {IMAGE: "<|imgpad|>", VIDEO: "<|video_pad|>", START: "<|img|>", END: "<|endofimg|>"}
    look = {**processor(PATCH, *CLIP), "temporal_patch_size": 1}
    return Row(name, config, image, given, tokens=tokens, processor=look, **more)


ROWS = [
    row("dots_ocr", config()),
    row("dots_ocr-original", config(), layout=original),
    row("dots_ocr-4bit", config(use_bias=True, post_norm=False), packed="language", bits=4),
    row("dots_ocr-tower8", config(), packed="all"),
]
