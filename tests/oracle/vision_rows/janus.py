"""SigLIP by timm's names beside Llama (Janus)."""
import mlx.core as mx
import numpy as np

from vision_rows.row import END, IMAGE, START, VOCABULARY, Image, Row, View

# Three patches and some pixels.
SIDE, PATCH = 52, 16
PER_SIDE = SIDE // PATCH


def config():
    text = {"model_type": "llama", "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 64, "num_attention_heads": 2,
            "num_key_value_heads": 2, "rms_norm_eps": 1e-6, "vocab_size": VOCABULARY, "max_position_embeddings": 4096}
    vision = {"model_type": "vision", "cls": "CLIPVisionTower", "hidden_size": 96, "num_hidden_layers": 3, "intermediate_size": 80,
              "num_attention_heads": 4, "patch_size": PATCH, "image_size": SIDE,
              "params": {"image_size": SIDE, "model_name": "siglip_large_patch16_384", "select_feature": "same", "select_layer": -1}}
    aligner = {"cls": "MlpProjector", "model_type": "aligner", "params": {"depth": 2, "input_dim": 96, "n_embed": 32, "projector_type": "mlp_gelu"}}
    return {"model_type": "multi_modality", "text_config": text, "vision_config": vision, "aligner_config": aligner,
            "gen_vision_config": {"cls": "VQ-16", "model_type": "gen_vision", "params": {"image_token_size": 64, "n_embed": 8}},
            "image_token_index": IMAGE, "num_image_tokens": PER_SIDE**2}


def named_language_config():
    """As the original repository calls it, which leaves out what is as in Llama's class."""
    whole = config()
    return {("language_config" if name == "text_config" else name): value for name, value in whole.items()
            if name not in ("image_token_index", "num_image_tokens")}


def image(numbers, _):
    grid = (PER_SIDE, PER_SIDE)
    view = View(numbers.pixels(3, SIDE, SIDE), SIDE, SIDE, grid, grid)
    return Image([view], [START] + [IMAGE] * (grid[0] * grid[1]) + [END])


def given(images, _):
    if not images:
        return {"mask": None}
    return {"pixel_values": mx.array(np.stack([view.pixels for image in images for view in image.views])), "mask": None}


def repair():
    """One image stands where the one token is; here any number stands where their tokens are. The original has the exact GELU in its tower,
    and a smaller number in its norms. The file that enlarges images for a second tower is not needed."""
    import sys
    import types

    import mlx.nn as nn

    sys.modules.setdefault("cv2", types.ModuleType("cv2"))
    from mlx_vlm.models.base import InputEmbeddingsFeatures
    from mlx_vlm.models.multi_modality import multi_modality, vision

    def embedded(self, input_ids=None, pixel_values=None, **_):
        embeds = self.language_model.model.embed_tokens(input_ids)
        if pixel_values is not None:
            states, _, _ = self.vision_model(pixel_values.transpose(0, 2, 3, 1), output_hidden_states=True)
            rows = self.aligner(states)
            embeds[:, np.where(np.array(input_ids) == IMAGE)[1].tolist()] = rows.reshape(-1, rows.shape[-1])
        return InputEmbeddingsFeatures(inputs_embeds=embeds)

    plain = vision.SigLipVisionModel.__init__

    def begin(self, config, *args, **more):
        config.layer_norm_eps = 1e-6
        plain(self, config, *args, **more)
        self.norm.eps = 1e-6

    vision.SigLipVisionModel.__init__ = begin
    vision.FastGELUActivation.__call__ = lambda self, x: nn.gelu(x)
    multi_modality.Model.get_input_embeddings = embedded


def original(weights):
    """As the original repository has it: convolutions with the channels second, and what makes images."""
    changed = {name: mx.contiguous(value.transpose(0, 3, 1, 2)) if name.endswith("patch_embed.proj.weight") else value
               for name, value in weights.items()}
    making = ["gen_vision_model.decoder.conv_in.weight", "gen_aligner.layers.0.weight", "gen_head.output_mlp_projector.weight", "gen_embed.weight"]
    return changed | {name: mx.zeros((8, 8)) for name in making}


def row(name, written=None, **more):
    look = {"image_processor_type": "VLMImageProcessor", "image_size": SIDE, "min_size": 14, "rescale_factor": 1 / 255, "do_normalize": True,
            "image_mean": [0.5] * 3, "image_std": [0.5] * 3, "background_color": [127, 127, 127]}
    tokens = {IMAGE: "<image_placeholder>", START: "<begin_of_image>", END: "<end_of_image>"}
    return Row(name, written or config(), image, given, tokens=tokens, processor=look, prepare=repair, **more)


ROWS = [
    row("multi_modality"),
    row("multi_modality-original", named_language_config(), layout=original, asked=config()),
    row("multi_modality-4bit", packed="language", bits=4),
    row("multi_modality-tower8", packed="all"),
]
