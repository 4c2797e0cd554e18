"""Pixtral's tower, as it is in Pixtral and with a merger of patches in Mistral 3 and Ministral 3."""
import mlx.core as mx
import numpy as np

from vision_rows.row import END, IMAGE, START, VOCABULARY, Image, Row, View

PATCH = 14
GRIDS = [(4, 6), (6, 4), (2, 8)]


def config(wrapper, **text):
    text = {"model_type": "mistral", "hidden_size": 32, "head_dim": 16, "num_hidden_layers": 2, "intermediate_size": 64,
            "num_attention_heads": 2, "num_key_value_heads": 1, "rms_norm_eps": 1e-5, "vocab_size": VOCABULARY, "rope_theta": 10000.0,
            "max_position_embeddings": 4096, **text}
    vision = {"model_type": "pixtral", "num_hidden_layers": 2, "hidden_size": 96, "head_dim": 24, "intermediate_size": 80,
              "num_attention_heads": 4, "image_size": 112, "patch_size": PATCH, "num_channels": 3, "rope_theta": 10000.0,
              "hidden_act": "silu"}
    return {"model_type": wrapper, "text_config": text, "vision_config": vision, "image_token_index": IMAGE, "vocab_size": VOCABULARY,
            "vision_feature_layer": -1, "vision_feature_select_strategy": "full", "projector_hidden_act": "gelu",
            "tie_word_embeddings": False}


def mistral3():
    return {**config("mistral3"), "spatial_merge_size": 2, "multimodal_projector_bias": False}


def ministral3():
    """The language part of the newer models, whose queries grow with their position beyond the original context."""
    ropes = {"type": "yarn", "rope_type": "yarn", "rope_theta": 1e6, "factor": 16.0, "original_max_position_embeddings": 16,
             "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1}
    text = {"model_type": "ministral3", "rope_parameters": ropes}
    return {**config("mistral3", **text), "spatial_merge_size": 2, "multimodal_projector_bias": False}


def large3():
    """Latents and experts, as in DeepSeek V3."""
    text = {"model_type": "mistral_large3", "num_hidden_layers": 3, "num_key_value_heads": 2, "q_lora_rank": 32, "kv_lora_rank": 64,
            "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 32, "moe_intermediate_size": 64, "n_routed_experts": 4,
            "n_shared_experts": 1, "num_experts_per_tok": 2, "first_k_dense_replace": 1, "rope_scaling": None}
    return {**config("mistral_large3", **text), "spatial_merge_size": 2, "multimodal_projector_bias": False, "image_token_id": IMAGE}


def repair_large3():
    """mlx-vlm's language part of DeepSeek V3 embeds ids, whatever embeddings it is given."""
    from mlx_vlm.models.deepseek_v3 import language

    def call(self, inputs=None, cache=None, inputs_embeds=None, **_):
        table = self.model.embed_tokens
        if inputs_embeds is not None:
            self.model.embed_tokens = lambda _: inputs_embeds
        states = self.model(inputs, cache)
        self.model.embed_tokens = table
        return language.LanguageModelOutput(logits=self.lm_head(states))

    language.LanguageModel.__call__ = call


def images_of(merge):
    """Rows of image tokens with a mark after each, another after the last."""

    def image(numbers, index):
        rows, columns = GRIDS[index % len(GRIDS)]
        tokens = (rows // merge, columns // merge)
        run = (([IMAGE] * tokens[1] + [END]) * tokens[0])[:-1] + [START]
        height, width = rows * PATCH, columns * PATCH
        return Image([View(numbers.pixels(3, height, width), width, height, (rows, columns), tokens)], run)

    return image


def given(images, _):
    """Images padded to the largest sides, each with its size."""
    if not images:
        return {"mask": None}
    views = [view for image in images for view in image.views]
    height, width = max(view.height for view in views), max(view.width for view in views)
    padded = [np.pad(view.pixels, ((0, 0), (0, height - view.height), (0, width - view.width))) for view in views]
    return {"mask": None, "pixel_values": mx.array(np.stack(padded)), "image_sizes": mx.array([[view.height, view.width] for view in views])}


def original(weights):
    """As transformers 5 writes it: everything below `model.`, and no `vision_model.` in the tower's names."""
    changed = {}
    for name, value in weights.items():
        short = name.replace("language_model.model.", "language_model.").replace("vision_tower.vision_model.", "vision_tower.")
        short = "lm_head.weight" if short == "language_model.lm_head.weight" else f"model.{short}"
        changed[short] = mx.contiguous(value.transpose(0, 3, 1, 2)) if name.endswith("patch_conv.weight") else value
    return changed


def row(name, config, merge, **more):
    look = {"image_processor_type": "PixtralImageProcessor", "do_resize": True, "do_rescale": True, "rescale_factor": 1 / 255,
            "do_normalize": True, "do_convert_rgb": True, "resample": 3, "size": {"longest_edge": 112}, "patch_size": PATCH * merge,
            "image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711]}
    tokens = {IMAGE: "[IMG]", END: "[IMG_BREAK]", START: "[IMG_END]"}
    return Row(name, config, images_of(merge), given, tokens=tokens, processor=look, **more)


ROWS = [
    row("pixtral", config("pixtral"), 1),
    row("pixtral-original", config("pixtral"), 1, layout=original),
    row("pixtral-llava", config("llava"), 1, asked=config("pixtral"), layout=original),
    row("mistral3", mistral3(), 2),
    row("mistral3-original", mistral3(), 2, layout=original),
    row("mistral3-4bit", mistral3(), 2, packed="language", bits=4),
    row("mistral3-tower8", mistral3(), 2, packed="all"),
    row("ministral3", ministral3(), 2),
    row("mistral_large3", large3(), 2, prepare=repair_large3),
    row("mistral_large3-original", large3(), 2, prepare=repair_large3, layout=original),
    row("mistral_large3-4bit", large3(), 2, prepare=repair_large3, packed="language", bits=4),
]
