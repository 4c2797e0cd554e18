"""SigLIP at an image's own shape, whose patches learned rows look at, beside Mistral (Idefics 2)."""
import mlx.core as mx
import numpy as np

from vision_rows.row import END, IMAGE, VOCABULARY, Image, Row, View

SIDE, PATCH, LATENTS = 70, 14, 4
# Widths and heights of the views of an image: quarters and the whole, or the whole alone. Not all are whole patches.
VIEWS = [[(30, 42), (42, 42), (30, 45), (42, 45), (70, 60)], [(70, 44)], [(42, 70), (42, 70), (42, 70), (42, 70), (42, 70)]]


def config():
    text = {"model_type": "mistral", "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 64, "num_attention_heads": 2,
            "num_key_value_heads": 1, "rms_norm_eps": 1e-5, "vocab_size": VOCABULARY, "rope_theta": 10000.0, "max_position_embeddings": 4096,
            "tie_word_embeddings": False}
    vision = {"model_type": "idefics2", "hidden_size": 96, "num_hidden_layers": 3, "intermediate_size": 80, "num_attention_heads": 4, "patch_size": PATCH,
              "image_size": SIDE}
    perceiver = {"model_type": "idefics2", "resampler_depth": 2, "resampler_head_dim": 8, "resampler_n_heads": 4, "resampler_n_latents": LATENTS,
                 "num_key_value_heads": 2, "hidden_act": "silu"}
    return {"model_type": "idefics2", "text_config": text, "vision_config": vision, "perceiver_config": perceiver, "image_token_id": IMAGE,
            "image_token_index": IMAGE, "vocab_size": VOCABULARY}


def image(numbers, index):
    views = [View(numbers.pixels(3, height, width), width, height, (height // PATCH, width // PATCH), (1, LATENTS))
             for width, height in VIEWS[index % len(VIEWS)]]
    tiles = (2, 2) if len(views) > 1 else None
    return Image(views, sum(([END] + [IMAGE] * LATENTS for _ in views), []) + [END], tiles=tiles, whole=True)


def given(images, _):
    return {"images": images, "mask": None}


def repair():
    """mlx-vlm sees the padding of smaller images, has another GELU in its tower, and counts places otherwise than transformers."""
    import mlx.nn as nn
    from mlx_vlm.models.base import InputEmbeddingsFeatures
    from mlx_vlm.models.idefics2 import idefics2, vision

    plain = vision.EncoderLayer.__init__

    def begin(self, config):
        plain(self, config)
        self.mlp.activation_fn = nn.GELU(approx="tanh")

    def places(self, x, mask=None):
        rows, columns, side = x.shape[1] // PATCH, x.shape[2] // PATCH, SIDE // PATCH
        near = lambda count: np.arange(count) * side // count
        ids = near(rows)[:, None] * side + near(columns)
        return mx.flatten(self.patch_embedding(x), start_axis=1, end_axis=2) + self.position_embedding(mx.array(ids.reshape(-1)))

    def embedded(self, input_ids=None, images=()):
        embeds = self.language_model.embed_tokens(input_ids)
        rows = []
        for view in (view for image in images for view in image.views):
            states, _, _ = self.vision_model(mx.array(view.pixels)[None].transpose(0, 2, 3, 1))
            rows.append(self.connector(states)[0])
        if rows:
            embeds[:, np.where(np.array(input_ids) == IMAGE)[1].tolist()] = mx.concatenate(rows)
        return InputEmbeddingsFeatures(inputs_embeds=embeds)

    def call(self, input_ids, pixel_values=None, mask=None, cache=None, images=()):
        return self.language_model(inputs=input_ids, inputs_embeds=embedded(self, input_ids, images).inputs_embeds)

    vision.EncoderLayer.__init__ = begin
    vision.VisionEmbeddings.__call__ = places
    idefics2.Model.__call__ = call


def original(weights):
    """As the original repository has it: everything below `model.` but the output layer, convolutions with the channels second."""
    changed = {}
    for name, value in weights.items():
        short = name.replace("language_model.", "text_model.")
        short = "lm_head.weight" if name.endswith("lm_head.weight") else f"model.{short}"
        changed[short] = mx.contiguous(value.transpose(0, 3, 1, 2)) if name.endswith("patch_embedding.weight") and value.ndim == 4 else value
    return changed


def row(name, **more):
    look = {"image_processor_type": "Idefics2ImageProcessor", "do_image_splitting": True, "size": {"shortest_edge": 32, "longest_edge": SIDE},
            "resample": 2, "do_resize": True, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True, "image_mean": [0.5] * 3,
            "image_std": [0.5] * 3}
    return Row(name, config(), image, given, tokens={IMAGE: "<image>", END: "<fake_token_around_image>"}, processor=look, prepare=repair, **more)


ROWS = [
    row("idefics2"),
    row("idefics2-original", layout=original),
    row("idefics2-4bit", packed="language", bits=4),
    row("idefics2-tower8", packed="all"),
]
