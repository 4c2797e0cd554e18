"""Gemma 4: E2B and E4B clip their linears and have inputs for each layer; 26B and 31B look both ways within an image."""
import mlx.core as mx
import numpy as np

from vision_rows.row import AUDIO, END, IMAGE, START, VIDEO, VOCABULARY, Image, Row, View

PATCH, POOL = 16, 3
SIZES = [(96, 96), (48, 144), (144, 192)]  # 2 x 2, 1 x 3 and 3 x 4 tokens


def config(small):
    text = {"model_type": "gemma4_text", "hidden_size": 32, "num_hidden_layers": 4, "intermediate_size": 64, "num_attention_heads": 2,
            "num_key_value_heads": 1, "head_dim": 16, "global_head_dim": 32, "rms_norm_eps": 1e-6, "vocab_size": VOCABULARY,
            "vocab_size_per_layer_input": VOCABULARY, "hidden_size_per_layer_input": 8 if small else 0,
            "num_kv_shared_layers": 2 if small else 0, "sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"] * 2,
            "max_position_embeddings": 4096, "final_logit_softcapping": 30.0, "use_double_wide_mlp": small, "attention_k_eq_v": False,
            "tie_word_embeddings": True, "use_bidirectional_attention": None if small else "vision",
            "rope_parameters": {"full_attention": {"partial_rotary_factor": 0.25, "rope_theta": 1e6, "rope_type": "proportional"},
                                "sliding_attention": {"rope_theta": 1e4, "rope_type": "default"}}}
    vision = {"model_type": "gemma4_vision", "hidden_size": 96, "intermediate_size": 80, "num_hidden_layers": 2, "num_attention_heads": 4,
              "num_key_value_heads": 4, "head_dim": 24, "global_head_dim": 24, "patch_size": PATCH, "pooling_kernel_size": POOL,
              "position_embedding_size": 64, "default_output_length": 280, "rms_norm_eps": 1e-6, "use_clipped_linears": small,
              "standardize": not small, "hidden_activation": "gelu_pytorch_tanh",
              "rope_parameters": {"rope_theta": 100.0, "rope_type": "default"}}
    return {"model_type": "gemma4", "text_config": text, "vision_config": vision, "audio_config": None, "image_token_id": IMAGE,
            "audio_token_id": AUDIO, "video_token_id": VIDEO, "boi_token_id": START, "eoi_token_id": END, "hidden_size": 32,
            "vocab_size": VOCABULARY, "vision_soft_tokens_per_image": 280, "tie_word_embeddings": True}


PROCESSOR = {"image_processor_type": "Gemma4ImageProcessor", "do_resize": True, "do_rescale": True, "rescale_factor": 1 / 255,
             "do_normalize": False, "image_mean": [0.0, 0.0, 0.0], "image_std": [1.0, 1.0, 1.0], "resample": 3, "patch_size": PATCH,
             "pooling_kernel_size": POOL, "max_soft_tokens": 70, "image_seq_length": 70}


def image(numbers, index):
    height, width = SIZES[index % len(SIZES)]
    rows, columns = height // PATCH, width // PATCH
    # Real pixels lie from 0 to 1; the tower takes 2 (x - 0.5) itself.
    pixels = 1 / (1 + np.exp(-numbers.pixels(rows * columns, PATCH * PATCH * 3)))
    tokens = (rows // POOL, columns // POOL)
    view = View(pixels, width, height, (rows, columns), tokens)
    return Image([view], [START] + [IMAGE] * (tokens[0] * tokens[1]) + [END])


def given(images, ids):
    if not images:
        return {}
    whole = []
    for view in (view for image in images for view in image.views):
        rows, columns = view.patches
        patches = view.pixels.reshape(rows, columns, PATCH, PATCH, 3)
        whole.append(mx.array(patches.transpose(4, 0, 2, 1, 3).reshape(1, 3, view.height, view.width)))
    return {"pixel_values": whole, "mm_token_type_ids": mx.array([[int(token == IMAGE) for token in ids]])}


def draw(name, shape, source):
    """Bounds that clip now and then."""
    if name.endswith(("input_min", "output_min")):
        return -1 - 0.2 * np.abs(source.normal(0, 1, shape))
    if name.endswith(("input_max", "output_max")):
        return 1 + 0.2 * np.abs(source.normal(0, 1, shape))
    return None


def both_ways(ids, window):
    """The attention mask `[length, length]`: causal, in both directions within an image, never out of the window."""
    blocks, block, last = [], -1, None
    for token in ids:
        block += int(token == 1 and last != 1)
        blocks.append(block if token == 1 else -1)
        last = token
    blocks, at = mx.array(blocks), mx.arange(len(ids))
    seen = (at[:, None] >= at[None]) | ((blocks[:, None] == blocks[None]) & (blocks[:, None] >= 0))
    return seen & (at[:, None] - at[None] < window)


def repair():
    """mlx-vlm lets images look ahead in full attention too; only sliding layers do."""
    from mlx_vlm.models.gemma4 import language

    plain = language.Gemma4TextModel._make_masks

    def masks(self, h, cache, mm_token_type_ids=None):
        if mm_token_type_ids is None or getattr(self.config, "use_bidirectional_attention", None) != "vision" or h.shape[1] == 1:
            return plain(self, h, cache, None)
        at = mx.arange(h.shape[1])
        kinds = {"full_attention": at[:, None] >= at[None],
                 "sliding_attention": both_ways(mm_token_type_ids[0].tolist(), self.window_size)}
        return [kinds[layer.layer_type] for layer in self.layers]

    language.Gemma4TextModel._make_masks = masks


def original(weights):
    """Names as the original repositories have them: all below `model.`, the language part not twice."""
    return {"model." + name.replace("language_model.model.", "language_model."): value for name, value in weights.items()}


def row(name, small=True, **more):
    tokens = {IMAGE: "<|image|>", VIDEO: "<|video|>", START: "<|image>", END: "<image|>", AUDIO: "<|audio|>"}
    return Row(name, config(small), image, given, tokens=tokens, processor=PROCESSOR, prepare=repair, draw=draw, **more)


ROWS = [
    row("gemma4"),
    row("gemma4-original", layout=original),
    row("gemma4-4bit", packed="language", bits=4),
    row("gemma4-tower8", packed="all"),
    row("gemma4-26b", small=False),
]
