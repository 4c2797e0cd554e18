"""CLIP on tiles and on the whole, with marks between rows, beside Phi 3 (Phi 3 Vision)."""
from types import SimpleNamespace

import mlx.core as mx
import numpy as np

from vision_rows.row import IMAGE, VOCABULARY, Image, Row, View

SIDE, PATCH, MERGE, HIDDEN = 56, 14, 2, 96
PER_SIDE = SIDE // PATCH // MERGE
# Rows and columns of tiles.
TILES = [(1, 2), (2, 1), (2, 3)]


def config():
    tower = {"model_type": "phi3_v", "hidden_size": HIDDEN, "num_hidden_layers": 3, "intermediate_size": 80, "num_attention_heads": 4,
             "patch_size": PATCH, "image_size": SIDE}
    factors = {"short_factor": [1.0, 1.02, 1.05, 1.1, 1.2, 1.3, 1.4, 1.5], "long_factor": [1.05, 1.1, 1.3, 1.8, 2.5, 4.0, 8.0, 12.0]}
    return {"model_type": "phi3_v", "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 64, "num_attention_heads": 2,
            "num_key_value_heads": 2, "rms_norm_eps": 1e-5, "vocab_size": VOCABULARY, "rope_theta": 10000.0, "tie_word_embeddings": False,
            "max_position_embeddings": 16384, "original_max_position_embeddings": 4096, "rope_scaling": {"type": "su", **factors},
            "sliding_window": None, "vision_config": tower,
            "img_processor": {"image_dim_out": 1024, "model_name": "openai/clip-vit-large-patch14-336", "name": "clip_vision_model", "num_img_tokens": 144},
            "embd_layer": {"embedding_cls": "image", "hd_transform_order": "sub_glb", "projection_cls": "mlp", "use_hd_transform": True,
                           "with_learnable_separator": True}}


def image(numbers, index):
    rows, columns = TILES[index % len(TILES)]
    patches = (SIDE // PATCH, SIDE // PATCH)
    views = [View(numbers.pixels(3, SIDE, SIDE), SIDE, SIDE, patches, (PER_SIDE, PER_SIDE)) for _ in range(rows * columns + 1)]
    grid = (rows * PER_SIDE, columns * PER_SIDE)
    after = PER_SIDE * (PER_SIDE + 1) + 1
    views[-1].features = after
    return Image(views, [IMAGE] * (grid[0] * (grid[1] + 1) + after), tiles=(rows, columns), whole=True, joined=[grid, grid])


def given(images, _):
    return {"images": images}


def repair():
    """The tower is a smaller one. mlx-vlm takes tiles of one row for one another's rows; the file beside the weights does not. Its positions
    change their factors when a text becomes long, unlike mlx-lm's, which has those of long texts always."""
    import mlx.nn as nn
    from mlx_vlm.models.base import InputEmbeddingsFeatures
    from mlx_vlm.models.phi3_v import phi3_v, vision
    from mlx_vlm.models.rope_utils import SuScaledRoPE

    plain = SuScaledRoPE.__init__

    def stretched(self, *args, **more):
        plain(self, *args, **more)
        self._short_freqs, self._short_scale = self._long_freqs, self._long_scale

    def begin(self, config):
        nn.Module.__init__(self)
        self.model_type = config.model_type
        shape = SimpleNamespace(model_type="phi3_v", hidden_size=HIDDEN, image_size=SIDE, intermediate_size=80, layer_norm_eps=1e-5,
                                num_attention_heads=4, num_channels=3, num_hidden_layers=3, patch_size=PATCH)
        self.img_processor = vision.ClipVModel(shape)
        self.glb_GN, self.sub_GN = mx.zeros([1, 1, HIDDEN * 4]), mx.zeros([1, 1, 1, HIDDEN * 4])
        self.img_projection = [nn.Linear(HIDDEN * 4, config.hidden_size), nn.GELU(), nn.Linear(config.hidden_size, config.hidden_size)]

    def features(self, image):
        pixels = mx.array(np.stack([view.pixels for view in image.views])).transpose(0, 2, 3, 1)
        states = self.img_processor.vision_model(pixels, True)[-1][-2][:, 1:]
        count, (rows, columns) = len(image.views), image.tiles
        blocks = states.reshape(count, PER_SIDE, MERGE, PER_SIDE, MERGE, HIDDEN).transpose(0, 1, 3, 2, 4, 5)
        blocks = blocks.reshape(count, PER_SIDE, PER_SIDE, -1)
        tiles = blocks[:-1].reshape(rows, columns, PER_SIDE, PER_SIDE, -1).transpose(0, 2, 1, 3, 4)

        def ended(grid):
            return mx.concatenate([grid, mx.tile(self.sub_GN[0], (grid.shape[0], 1, 1))], axis=1).reshape(-1, grid.shape[-1])

        x = mx.concatenate([ended(tiles.reshape(rows * PER_SIDE, columns * PER_SIDE, -1)), self.glb_GN[0], ended(blocks[-1])])
        for layer in self.img_projection:
            x = layer(x)
        return x

    def embedded(self, inputs, pixel_values=None, images=(), **_):
        embeds = self.model.embed_tokens(inputs)
        if images:
            rows = mx.concatenate([features(self.model.vision_embed_tokens, image) for image in images])
            embeds[:, np.where(np.array(inputs) == IMAGE)[1].tolist()] = rows
        return InputEmbeddingsFeatures(inputs_embeds=embeds)

    SuScaledRoPE.__init__ = stretched
    vision.VisionModel.__init__ = begin
    phi3_v.Model.get_input_embeddings = embedded


def original(weights):
    """As the original repository has it: convolutions with the channels second."""
    return {name: mx.contiguous(value.transpose(0, 3, 1, 2)) if name.endswith("patch_embedding.weight") else value for name, value in weights.items()}


def row(name, **more):
    look = {"image_processor_type": "Phi3VImageProcessor", "num_crops": 4, "num_img_tokens": 144, "image_mean": [0.48145466, 0.4578275, 0.40821073],
            "image_std": [0.26862954, 0.26130258, 0.27577711]}
    return Row(name, config(), image, given, tokens={IMAGE: "<|image|>"}, processor=look, prepare=repair, **more)


ROWS = [
    row("phi3_v"),
    row("phi3_v-original", layout=original),
    row("phi3_v-4bit", packed="all", bits=4),
    row("phi3_v-tower8", packed="all"),
]
