"""InternVL: tiles through InternViT, in the original repositories' form and in that of transformers."""
import mlx.core as mx
import numpy as np

from vision_rows.row import END, IMAGE, START, VOCABULARY, Image, Row, View

SIDE = 56
# Rows and columns of tiles; the whole comes last if there are several.
TILES = [(1, 1), (1, 2), (2, 1)]


def text(model_type, **more):
    return {"model_type": model_type, "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 64, "num_attention_heads": 2,
            "num_key_value_heads": 1, "rms_norm_eps": 1e-6, "vocab_size": VOCABULARY, "rope_theta": 10000.0,
            "max_position_embeddings": 4096, "tie_word_embeddings": False, **more}


def chat(**more):
    """The original form: the language part's config is called `llm_config`."""
    vision = {"model_type": "intern_vit_6b", "hidden_size": 96, "num_hidden_layers": 2, "intermediate_size": 80, "num_attention_heads": 4,
              "patch_size": 14, "image_size": SIDE, "num_channels": 3, "layer_norm_eps": 1e-6, "qkv_bias": True,
              "norm_type": "layer_norm", "qk_normalization": False, **more}
    return {"model_type": "internvl_chat", "llm_config": text("qwen2"), "vision_config": vision, "downsample_ratio": 0.5,
            "tie_word_embeddings": False}


def asked(config):
    """mlx-vlm wants the other name as well, and to know the placeholder."""
    return {**config, "text_config": config["llm_config"], "image_token_index": IMAGE, "vocab_size": VOCABULARY}


def transformers(**more):
    vision = {"model_type": "internvl_vision", "hidden_size": 96, "num_hidden_layers": 2, "intermediate_size": 80,
              "num_attention_heads": 4, "patch_size": [14, 14], "image_size": [SIDE, SIDE], "num_channels": 3, "layer_norm_eps": 1e-6,
              "attention_bias": True, "norm_type": "layer_norm", "use_qk_norm": False, "hidden_act": "gelu",
              "layer_scale_init_value": 0.1, **more}
    return {"model_type": "internvl", "text_config": text("qwen3", head_dim=16), "vision_config": vision, "downsample_ratio": 0.5,
            "image_token_id": IMAGE, "projector_hidden_act": "gelu", "tie_word_embeddings": False}


def image(numbers, index):
    rows, columns = TILES[index % len(TILES)]
    count = rows * columns + (rows * columns > 1)
    views = [View(numbers.pixels(3, SIDE, SIDE), SIDE, SIDE, (4, 4), (2, 2)) for _ in range(count)]
    return Image(views, [START] + [IMAGE] * (4 * count) + [END], tiles=(rows, columns), whole=count > 1)


def given(images, _):
    if not images:
        return {}
    return {"pixel_values": mx.array(np.stack([view.pixels for image in images for view in image.views]))}


def chat_given(images, ids):
    return {"mask": None, **given(images, ids)}


def repair():
    """Both activations are the exact GELU; mlx-vlm takes the approximate one."""
    import mlx.nn as nn
    from mlx_vlm.models.internvl import internvl
    from mlx_vlm.models.internvl_chat import vision

    for part, name in ((vision.MLP, "activation_fn"), (internvl.MultiModalProjector, "activation")):
        def begin(self, *args, plain=part.__init__, name=name, **more):
            plain(self, *args, **more)
            setattr(self, name, nn.GELU())

        part.__init__ = begin


def chat_original(weights):
    """Convolutions with the channels second."""
    turned = lambda name, value: mx.contiguous(value.transpose(0, 3, 1, 2)) if name.endswith("patch_embedding.weight") else value
    return {name: turned(name, value) for name, value in weights.items()}


def transformers_original(weights):
    """Names as transformers 5 writes them."""
    changed = {}
    for name, value in weights.items():
        short = name.replace("language_model.model.", "language_model.")
        short = "lm_head.weight" if short == "language_model.lm_head.weight" else f"model.{short}"
        changed[short] = mx.contiguous(value.transpose(0, 3, 1, 2)) if name.endswith("projection.weight") else value
    return changed


def row(name, config, given, **more):
    look = {"image_processor_type": "GotOcr2ImageProcessorFast", "do_resize": True, "do_rescale": True, "rescale_factor": 1 / 255,
            "do_normalize": True, "resample": 3, "size": {"height": SIDE, "width": SIDE}, "crop_to_patches": True, "min_patches": 1,
            "max_patches": 12, "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
    tokens = {IMAGE: "<IMG_CONTEXT>", START: "<img>", END: "</img>"}
    return Row(name, config, image, given, tokens=tokens, processor=look, prepare=repair, **more)


def chat_row(name, config, **more):
    return row(name, config, chat_given, asked=asked(config), **more)


ROWS = [
    chat_row("internvl_chat", chat()),
    chat_row("internvl_chat-original", chat(), layout=chat_original),
    chat_row("internvl_chat-6b", chat(norm_type="rms_norm", qk_normalization=True, qkv_bias=False)),
    chat_row("internvl_chat-tower8", chat(), packed="all"),
    row("internvl", transformers(), given),
    row("internvl-original", transformers(use_qk_norm=True), given, layout=transformers_original),
    row("internvl-4bit", transformers(), given, packed="language", bits=4),
]
