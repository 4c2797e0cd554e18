"""FastViTHD beside Qwen 2 (FastVLM). The numbers of its network are in no config: here they are smaller ones."""
import mlx.core as mx
import numpy as np

from vision_rows.row import IMAGE, VOCABULARY, Image, Row, View

# The smallest grid is as large as the convolutions over it.
SIDE = 448
WIDTHS, BLOCKS = [32, 32, 32, 32, 64], [1, 2, 1, 1, 2]


def config():
    return {"model_type": "llava_qwen2", "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 64, "num_attention_heads": 2,
            "num_key_value_heads": 1, "rms_norm_eps": 1e-6, "vocab_size": VOCABULARY, "rope_theta": 10000.0, "max_position_embeddings": 4096,
            "tie_word_embeddings": False, "mm_hidden_size": 2 * WIDTHS[-1], "mm_projector_type": "mlp2x_gelu", "mm_vision_tower": "mobileclip_l_448"}


def image(numbers, _):
    grid = (SIDE // 64, SIDE // 64)
    return Image([View(numbers.pixels(3, SIDE, SIDE), SIDE, SIDE, grid, grid)], [IMAGE] * (grid[0] * grid[1]))


def given(images, _):
    if not images:
        return {"mask": None}
    return {"pixel_values": mx.array(np.stack([view.pixels for image in images for view in image.views])), "mask": None}


def repair():
    """Images stand where a negative id is, of which there is one for each; here they stand where their tokens are."""
    from mlx_vlm.models.base import InputEmbeddingsFeatures
    from mlx_vlm.models.fastvlm import config, fastvlm

    config.VisionConfig.embed_dims, config.VisionConfig.layers = WIDTHS, BLOCKS

    def embedded(self, input_ids=None, pixel_values=None, mask=None, **_):
        embeds = self.language_model.model.embed_tokens(input_ids)
        if pixel_values is not None:
            self.vision_tower.eval()
            _, x, _ = self.vision_tower(pixel_values.transpose(0, 2, 3, 1))
            rows = self.mm_projector(x.reshape(-1, x.shape[-1]))
            embeds[:, np.where(np.array(input_ids) == IMAGE)[1].tolist()] = rows
        return InputEmbeddingsFeatures(inputs_embeds=embeds)

    fastvlm.Model.get_input_embeddings = embedded


def draw(name, shape, source):
    """Convolutions that keep the scale of what passes, of which the activation after each takes some."""
    if "vision_tower" in name and len(shape) == 4:
        return source.normal(0, 2.2, shape) / np.sqrt(np.prod(shape[1:]))
    return None


def original(weights):
    """As the original repository has it."""
    changed = {}
    for name, value in weights.items():
        short = name.replace("vision_tower.vision_model", "vision_tower.vision_tower.model").replace("patch_embed.blocks", "patch_embed")
        short = short.replace("language_model.model.", "")
        if "vision_tower" in name and value.ndim == 4:
            value = mx.contiguous(value.transpose(0, 3, 1, 2))
        if "layer_scale" in name:
            value = mx.contiguous(value.transpose(2, 0, 1))
        changed["lm_head.weight" if name.endswith("lm_head.weight") else f"model.{short}"] = value
    return changed


def row(name, **more):
    look = {"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": SIDE}, "crop_size": {"height": SIDE, "width": SIDE}, "resample": 3,
            "do_resize": True, "do_center_crop": True, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True, "image_mean": [0.0] * 3,
            "image_std": [1.0] * 3}
    return Row(name, config(), image, given, tokens={IMAGE: "<image>"}, processor=look, prepare=repair, draw=draw, most=2, **more)


ROWS = [
    row("fastvlm"),
    row("fastvlm-original", layout=original, packed="language", bits=4),
]
