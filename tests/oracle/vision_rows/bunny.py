"""SigLIP with LLaVA's projector beside Qwen 2 and Llama (nanoLLaVA, Bunny)."""
import mlx.core as mx
import numpy as np

from vision_rows.row import IMAGE, VOCABULARY, Image, Row, View

# Four patches and some pixels, as in the 384 pixels of the real tower.
SIDE, PATCH = 60, 14
PER_SIDE = SIDE // PATCH


def config(model_type, **more):
    vision = {"model_type": "siglip_vision_model", "hidden_size": 96, "num_hidden_layers": 3, "intermediate_size": 80, "num_attention_heads": 4,
              "patch_size": PATCH, "image_size": SIDE}
    return {"model_type": model_type, "auto_map": {}, "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 64, "num_attention_heads": 2,
            "num_key_value_heads": 1, "rms_norm_eps": 1e-6, "vocab_size": VOCABULARY, "rope_theta": 1000000.0, "max_position_embeddings": 4096,
            "tie_word_embeddings": False, "mm_hidden_size": 96, "mm_projector_type": "mlp2x_gelu", "mm_vision_tower": "google/siglip-so400m-patch14-384",
            "image_aspect_ratio": "pad", "image_token_index": -200, "vision_config": vision, **more}


def image(numbers, _):
    grid = (PER_SIDE, PER_SIDE)
    return Image([View(numbers.pixels(3, SIDE, SIDE), SIDE, SIDE, grid, grid)], [IMAGE] * (grid[0] * grid[1]))


def given(images, _):
    if not images:
        return {"pixel_values": None, "mask": None}
    return {"pixel_values": mx.array(np.stack([view.pixels for image in images for view in image.views])), "mask": None}


def repair():
    """One image stands where the one negative id is; here any number stands where their tokens are. SigLIP has the approximate GELU."""
    import mlx.nn as nn
    from mlx_vlm.models.base import InputEmbeddingsFeatures
    from mlx_vlm.models.llava_bunny import llava_bunny, vision

    def embedded(self, input_ids=None, pixel_values=None, **_):
        embeds = self.language_model.model.embed_tokens(input_ids)
        if pixel_values is not None:
            *_, states = self.vision_tower(pixel_values.transpose(0, 2, 3, 1), output_hidden_states=True)
            rows = self.mm_projector(states[-1])
            embeds[:, np.where(np.array(input_ids) == IMAGE)[1].tolist()] = rows.reshape(-1, rows.shape[-1])
        return InputEmbeddingsFeatures(inputs_embeds=embeds)

    plain = vision.EncoderLayer.__init__

    def begin(self, config):
        plain(self, config)
        self.mlp.activation_fn = nn.GELU(approx="tanh")

    vision.EncoderLayer.__init__ = begin
    llava_bunny.Model.get_input_embeddings = embedded


def draw(name, shape, source):
    """Llama's projections have no biases, which mlx-vlm's class has."""
    return np.zeros(shape) if name.endswith("_proj.bias") and "language_model" in name else None


def original(weights):
    """As the original repository has it: convolutions with the channels second, and a head that nothing reads."""
    changed = {}
    for name, value in weights.items():
        short = name.replace("language_model.model.", "").replace("linear_1", "0").replace("linear_2", "2")
        if name.endswith("patch_embedding.weight"):
            value = mx.contiguous(value.transpose(0, 3, 1, 2))
        changed["lm_head.weight" if name.endswith("lm_head.weight") else f"model.{short}"] = value
    return changed


def without_biases(weights):
    return {name: value for name, value in original(weights).items() if not (name.startswith("model.layers") and name.endswith(".bias"))}


def row(name, model_type="llava-qwen2", **more):
    look = {"image_processor_type": "SiglipImageProcessor", "size": {"height": SIDE, "width": SIDE}, "resample": 3, "do_resize": True, "do_rescale": True,
            "rescale_factor": 1 / 255, "do_normalize": True, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    return Row(name, config(model_type), image, given, tokens={IMAGE: "<image>"}, processor=look, prepare=repair, **more)


ROWS = [
    row("llava_bunny"),
    row("llava_bunny-original", layout=original),
    row("llava_bunny-4bit", packed="language", bits=4),
    row("llava_bunny-tower8", packed="all"),
    row("bunny_llama", "bunny-llama", draw=draw, layout=without_biases),
]
