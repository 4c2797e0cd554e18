"""Llama 3.2 Vision: images stand beside the text, in up to four tiles; every few layers look at them."""
import mlx.core as mx
import numpy as np

from vision_rows.row import VOCABULARY, Image, Row, View

SIDE, PATCH, MOST = 56, 14, 4
STATES = (SIDE // PATCH) ** 2 + 1
# Eight tokens are read and never written; the first of them stands for an image.
WRITTEN = VOCABULARY - 8
IMAGE = WRITTEN
# Rows and columns of each image's tiles.
TILES = [(1, 2), (1, 1), (2, 2)]
ARRANGEMENTS = [(1, 1), (1, 2), (1, 3), (1, 4), (2, 1), (2, 2), (3, 1), (4, 1)]


def config():
    text = {"model_type": "mllama_text_model", "vocab_size": WRITTEN, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 5,
            "num_attention_heads": 2, "num_key_value_heads": 1, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": False,
            "max_position_embeddings": 4096, "cross_attention_layers": [1, 3], "pad_token_id": 0}
    vision = {"model_type": "mllama_vision_model", "image_size": SIDE, "patch_size": PATCH, "num_channels": 3, "hidden_size": 96,
              "intermediate_size": 80, "num_hidden_layers": 3, "num_global_layers": 2, "num_attention_heads": 4, "attention_heads": 4,
              "max_num_tiles": MOST, "max_aspect_ratio_id": len(ARRANGEMENTS), "norm_eps": 1e-5, "intermediate_layers_indices": [0, 2],
              "vision_output_dim": 288, "supported_aspect_ratios": [list(tiles) for tiles in ARRANGEMENTS]}
    return {"model_type": "mllama", "text_config": text, "vision_config": vision, "image_token_index": IMAGE, "vocab_size": WRITTEN}


PROCESSOR = {"image_processor_type": "MllamaImageProcessor", "do_resize": True, "do_rescale": True, "rescale_factor": 1 / 255,
             "do_normalize": True, "do_pad": True, "resample": 2, "size": {"height": SIDE, "width": SIDE}, "max_image_tiles": MOST,
             "image_mean": [0.5] * 3, "image_std": [0.5] * 3}


def image(numbers, index):
    rows, columns = TILES[index % len(TILES)]
    grid = (SIDE // PATCH, SIDE // PATCH)
    views = [View(numbers.pixels(3, SIDE, SIDE), SIDE, SIDE, grid, grid, features=0) for _ in range(rows * columns)]
    # No token takes a feature.
    return Image(views, [IMAGE], soft=-1, tiles=(rows, columns))


def seen(ids, count):
    """Which images each token sees `[length, count]`: the last that came, and those right before it."""
    shown, marks, last = [], np.zeros((len(ids), count), dtype=np.int32), None
    for at, token in enumerate(ids):
        if token == IMAGE:
            shown = shown + [last + 1] if shown and ids[at - 1] == IMAGE else [0 if last is None else last + 1]
            last = shown[-1]
        marks[at, shown] = 1
    return marks


def given(images, ids):
    if not images:
        return {}
    count = len(images)
    pixels = np.zeros((1, count, MOST, 3, SIDE, SIDE), dtype=np.float32)
    real = np.zeros((1, count, MOST), dtype=np.int32)
    for index, one in enumerate(images):
        for tile, view in enumerate(one.views):
            pixels[0, index, tile] = view.pixels
        real[0, index, : len(one.views)] = 1
    kinds = [[1 + ARRANGEMENTS.index(one.tiles) for one in images]]
    marks = seen(ids, count)[None, :, :, None] * real[:, None]
    return {"pixel_values": mx.array(pixels), "aspect_ratio_ids": mx.array(kinds), "aspect_ratio_mask": mx.array(real),
            "cross_attention_mask": mx.array(marks)}


def repair():
    """mlx-vlm, and transformers 5.23 in the last two, differ from the models' own code (llama-models, `multimodal/model.py`; vLLM's is alike): without
    an image the layers that look at them are passed by whole; a token before the first image sees none, where they let it look at all of them
    alike; and states on the way through the tower are those before the layers of the list, as in transformers up to 4.45, not after them."""
    from mlx_vlm.models.mllama import language, vision

    layer = language.MllamaCrossAttentionDecoderLayer
    if hasattr(layer, "repaired"):
        return
    layer.repaired = True

    def look(self, hidden_states, cross_attention_states=None, attention_mask=None, full_text_row_masked_out_mask=None, cache=None):
        if cross_attention_states is None:
            return hidden_states
        shown = full_text_row_masked_out_mask[:, 0]
        found = self.cross_attn(self.input_layernorm(hidden_states), cross_attention_states, attention_mask, cache)
        hidden_states = hidden_states + mx.tanh(self.cross_attn_attn_gate) * shown * found
        fed = self.mlp(self.post_attention_layernorm(hidden_states))
        return hidden_states + mx.tanh(self.cross_attn_mlp_gate) * shown * fed

    def encode(self, hidden_states, attention_mask=None):
        states = ()
        for block in self.layers:
            states += (hidden_states,)
            hidden_states = block(hidden_states, attention_mask=attention_mask)
        return hidden_states, states

    layer.__call__ = look
    vision.MllamaVisionEncoder.__call__ = encode


def original(weights):
    """Names and layouts as transformers 5 writes them."""
    changed = {}
    for name, value in weights.items():
        short = name.replace("vision_tower.", "vision_model.").replace("language_model.model.", "language_model.")
        short = "lm_head.weight" if short == "language_model.lm_head.weight" else f"model.{short}"
        changed[short] = mx.contiguous(value.transpose(0, 3, 1, 2)) if name.endswith("patch_embedding.weight") else value
    return changed


def row(name, **more):
    tokens = {IMAGE: "<|image|>", "template": "<|image|>"}
    return Row(name, config(), image, given, tokens=tokens, processor=PROCESSOR, prepare=repair, **more)


ROWS = [
    row("mllama"),
    row("mllama-original", layout=original),
    row("mllama-beside", text_between=False),
    row("mllama-4bit", packed="language", bits=4),
    row("mllama-tower8", packed="all"),
]
