"""SigLIP with one projection beside Gemma 1 and 2, whose prompts look both ways (PaliGemma)."""
import mlx.core as mx
import numpy as np

from vision_rows.row import IMAGE, VOCABULARY, Image, Row, View

# Four patches and some pixels.
SIDE, PATCH = 60, 14
PER_SIDE = SIDE // PATCH


def config(model_type, **more):
    text = {"model_type": model_type, "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 64, "num_attention_heads": 2,
            "num_key_value_heads": 1, "head_dim": 16, "vocab_size": VOCABULARY, "num_image_tokens": PER_SIDE**2, "rms_norm_eps": 1e-6, **more}
    vision = {"model_type": "siglip_vision_model", "hidden_size": 96, "num_hidden_layers": 3, "intermediate_size": 80, "num_attention_heads": 4,
              "patch_size": PATCH, "image_size": SIDE, "projection_dim": 32, "vision_use_head": False}
    return {"model_type": "paligemma", "text_config": text, "vision_config": vision, "image_token_index": IMAGE, "projection_dim": 32,
            "hidden_size": 32, "vocab_size": VOCABULARY, "bos_token_id": 2, "pad_token_id": 0}


GEMMA2 = {"query_pre_attn_scalar": 24, "attn_logit_softcapping": 5.0, "final_logit_softcapping": 4.0, "sliding_window": 4096, "num_hidden_layers": 3}


def image(numbers, _):
    grid = (PER_SIDE, PER_SIDE)
    return Image([View(numbers.pixels(3, SIDE, SIDE), SIDE, SIDE, grid, grid)], [IMAGE] * PER_SIDE**2)


class prompts:
    """The ids of the last prompt: tokens after them belong to its answer, which sees what came before it alone."""

    last = []


def given(images, ids):
    if not prompts.last or ids[:len(prompts.last)] != prompts.last:
        prompts.last = ids
    rows = np.arange(len(ids))
    seen = (rows[None] <= rows[:, None]) | (rows[None] < len(prompts.last)) & (rows[:, None] < len(prompts.last))
    mask = mx.array(np.where(seen, 0, -1e30).astype(np.float32))[None, None]
    if not images:
        return {"mask": mask}
    return {"pixel_values": mx.array(np.stack([view.pixels for image in images for view in image.views])), "mask": mask}


def repair():
    """The first image alone goes through mlx-vlm's tower, whose last norm has another small number. Its mask is that of padding: the answer that
    the oracle reads again with its prompt would be seen by that."""
    from mlx_vlm.models.base import InputEmbeddingsFeatures
    from mlx_vlm.models.paligemma import paligemma, vision

    def embedded(self, input_ids=None, pixel_values=None, mask=None, **_):
        embeds = self.language_model.model.embed_tokens(input_ids)
        if pixel_values is not None:
            places = np.where(np.array(input_ids)[0] == IMAGE)[0].tolist()
            rows = []
            for pixels in pixel_values:
                states, _, _ = self.vision_tower(pixels[None].transpose(0, 2, 3, 1), output_hidden_states=True)
                rows.append(self.multi_modal_projector(states))
            embeds[:, places] = mx.concatenate(rows) / self.config.hidden_size**0.5
        return InputEmbeddingsFeatures(inputs_embeds=embeds, attention_mask_4d=mask)

    plain = vision.SigLipVisionModel.__init__

    def begin(self, config):
        plain(self, config)
        self.post_layernorm.eps = config.layer_norm_eps

    vision.SigLipVisionModel.__init__ = begin
    paligemma.Model.get_input_embeddings = embedded


def draw(name, shape, source):
    """Gemma's norms are stored as their difference from 1."""
    return source.normal(0, 0.1, shape) if "language_model" in name and "norm" in name else None


def original(weights):
    """As the original repository has it: convolutions with the channels second."""
    return {name: mx.contiguous(value.transpose(0, 3, 1, 2)) if name.endswith("patch_embedding.weight") else value for name, value in weights.items()}


def row(name, written, **more):
    look = {"image_processor_type": "SiglipImageProcessor", "size": {"height": SIDE, "width": SIDE}, "resample": 3, "do_resize": True, "do_rescale": True,
            "rescale_factor": 1 / 255, "do_normalize": True, "image_mean": [0.5] * 3, "image_std": [0.5] * 3, "image_seq_length": PER_SIDE**2}
    return Row(name, written, image, given, tokens={IMAGE: "<image>"}, processor=look, prepare=repair, draw=draw, **more)


ROWS = [
    row("paligemma", config("gemma")),
    row("paligemma-original", config("gemma"), layout=original),
    row("paligemma-4bit", config("gemma"), packed="language", bits=4),
    row("paligemma-tower8", config("gemma"), packed="all"),
    row("paligemma-2", config("gemma2", **GEMMA2)),
]
