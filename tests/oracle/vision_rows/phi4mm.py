"""SigLIP on tiles in whose corner an image stands and on the whole, with marks between rows, beside Phi 4 mini and its adapter (Phi 4 Multimodal)."""
import mlx.core as mx
import numpy as np

from vision_rows.row import IMAGE, VOCABULARY, Image, Row, View

SIDE, PATCH, HIDDEN = 56, 14, 96
PER_SIDE, TOKENS = SIDE // PATCH, SIDE // PATCH // 2
# Rows and columns of tiles, and width and height of the image in them: some of its last blocks are patches of it in part.
TILES = [((1, 2), (90, 56)), ((2, 3), (168, 90)), ((1, 1), (40, 27))]
SCALE, RANK = 2.0, 8


def config():
    factors = {"short_factor": [1.0, 1.02, 1.05, 1.1, 1.2, 1.3], "long_factor": [1.05, 1.1, 1.3, 1.8, 2.5, 4.0]}
    images = {"crop_size": SIDE, "embedding_cls": "tune_image", "hd_transform_order": "sub_glb", "image_token_compression_cls": "avg_pool_2d",
              "projection_cls": "mlp", "use_hd_transform": True, "with_learnable_separator": True}
    tower = {"model_type": "siglip2_vision_model", "hidden_size": HIDDEN, "num_hidden_layers": 3, "intermediate_size": 80, "num_attention_heads": 4,
             "patch_size": PATCH, "image_size": SIDE}
    return {"model_type": "phi4mm", "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 64, "num_attention_heads": 2,
            "num_key_value_heads": 1, "rms_norm_eps": 1e-5, "vocab_size": VOCABULARY, "rope_theta": 10000.0, "tie_word_embeddings": True,
            "partial_rotary_factor": 0.75, "max_position_embeddings": 16384, "original_max_position_embeddings": 4096,
            "rope_scaling": {"type": "longrope", **factors}, "sliding_window": 262144, "vision_config": tower, "mm_hidden_size": HIDDEN,
            "image_token_index": IMAGE, "embd_layer": {"embedding_cls": "image_audio", "image_embd_layer": images}, "img_processor": None,
            "vision_lora": {"dp": 0.0, "r": RANK, "lora_alpha": RANK * SCALE}, "speech_lora": {"dp": 0.01, "r": RANK, "lora_alpha": 3 * RANK}}


def covered(image):
    """Rows and columns of patches that show something of the image."""
    (rows, columns), (width, height) = image.tiles, image.resized
    return rows * PER_SIDE - (rows * SIDE - height) // PATCH, columns * PER_SIDE - (columns * SIDE - width) // PATCH


def image(numbers, index):
    (rows, columns), size = TILES[index % len(TILES)]
    patches = (PER_SIDE, PER_SIDE)
    views = [View(numbers.pixels(3, SIDE, SIDE), SIDE, SIDE, patches, (TOKENS, TOKENS)) for _ in range(rows * columns + 1)]
    views[-1].features = TOKENS * (TOKENS + 1) + 1
    made = Image(views, [], tiles=(rows, columns), whole=True, resized=size)
    grid = tuple(-(-patches // 2) for patches in covered(made))
    made.run, made.joined = [IMAGE] * (grid[0] * (grid[1] + 1) + views[-1].features), [grid, grid]
    return made


def given(images, _):
    return {"images": images}


def repair():
    """mlx-vlm takes the tower for another one, which sees an image of any shape without tiles, pools nothing and has no marks. This is what
    transformers does. Its positions change their factors when a text becomes long, unlike mlx-lm's."""
    import mlx.nn as nn
    from mlx_vlm.models.base import InputEmbeddingsFeatures
    from mlx_vlm.models.mlp import TanhGELUMLP
    from mlx_vlm.models.phi4mm import phi4mm, vision
    from mlx_vlm.models.rope_utils import SuScaledRoPE

    plain, begun = SuScaledRoPE.__init__, phi4mm.Model.__init__

    def stretched(self, *args, **more):
        plain(self, *args, **more)
        self._short_freqs, self._short_scale = self._long_freqs, self._long_scale

    class Absent(nn.Module):
        def __init__(self, *_, **__):
            super().__init__()

    def begin(self, config):
        begun(self, config)
        self.vision_tower.glb_GN, self.vision_tower.sub_GN = mx.zeros([1, 1, HIDDEN]), mx.zeros([1, 1, 1, HIDDEN])

    def pooled(siglip, view, rows, columns):
        """The means of the states of all blocks of a tile, of which so many rows and columns of patches show something."""
        seen = np.zeros((PER_SIDE, PER_SIDE), bool)
        seen[:rows, :columns] = True
        near = lambda count: (np.minimum(np.arange(PER_SIDE) / count, 1 - 1e-6) * PER_SIDE).astype(int)
        places = np.where(seen, near(rows)[:, None] * PER_SIDE + near(columns), 0).reshape(-1)
        patches = view.pixels.reshape(3, PER_SIDE, PATCH, PER_SIDE, PATCH).transpose(1, 3, 2, 4, 0).reshape(PER_SIDE**2, -1)
        x = (siglip.embeddings.patch_embedding(mx.array(patches)) + siglip.embeddings.position_embedding(mx.array(places)))[None]
        mask = mx.array(np.where(seen.reshape(-1), 0.0, -np.inf).astype(np.float32))[None, None, None]
        for layer in siglip.encoder.layers[:-1]:
            x = layer(x, mask)
        return x.reshape(TOKENS, 2, TOKENS, 2, HIDDEN).mean(axis=(1, 3))

    def features(self, image):
        tower, (rows, columns), (down, across) = self.vision_tower, image.tiles, covered(image)
        tiles = []
        for row in range(rows):
            own = lambda tile, all: min(PER_SIDE, all - tile * PER_SIDE)
            made = [pooled(tower.vision_tower, image.views[row * columns + column], own(row, down), own(column, across)) for column in range(columns)]
            tiles.append(mx.concatenate(made, axis=1))
        grid = mx.concatenate(tiles)[:-(-down // 2), :-(-across // 2)]

        def ended(grid):
            return mx.concatenate([grid, mx.tile(tower.sub_GN[0], (grid.shape[0], 1, 1))], axis=1).reshape(-1, HIDDEN)

        whole = pooled(tower.vision_tower, image.views[-1], PER_SIDE, PER_SIDE)
        return self.apply_mm_projector(mx.concatenate([ended(grid), tower.glb_GN[0], ended(whole)]))

    def embedded(self, inputs, pixel_values=None, images=(), **_):
        embeds = self.language_model.model.embed_tokens(inputs)
        if images:
            rows = mx.concatenate([features(self, image) for image in images])
            embeds[:, np.where(np.array(inputs) == IMAGE)[1].tolist()] = rows
        return InputEmbeddingsFeatures(inputs_embeds=embeds)

    SuScaledRoPE.__init__ = stretched
    vision.MLP = TanhGELUMLP
    phi4mm.ConformerEncoder = phi4mm.AudioProjection = Absent
    phi4mm.Model.__init__ = begin
    phi4mm.Model.get_input_embeddings = embedded
    phi4mm.Model.sanitize = lambda self, weights: weights


def named(weights):
    """With the names of the original repository."""
    changed = {}
    for name, value in weights.items():
        short = name.replace("language_model.", "").replace("mm_projector.", "model.embed_tokens_extend.image_embed.img_projection.")
        short = short.replace("vision_tower.vision_tower.", "model.embed_tokens_extend.image_embed.img_processor.")
        changed[short.replace("vision_tower.", "model.embed_tokens_extend.image_embed.")] = value
    return changed


def original(weights):
    """As the original repository has it: a convolution of patches, matrices apart from what its adapters add, and an encoder of speech."""
    changed, source = {}, np.random.default_rng(5)
    for name, value in named(weights).items():
        if name.endswith("patch_embedding.weight"):
            value = mx.contiguous(value.reshape(-1, PATCH, PATCH, 3).transpose(0, 3, 1, 2))
        path = name.removesuffix(".weight")
        if not path.endswith(("qkv_proj", "o_proj", "gate_up_proj", "down_proj")):
            changed[name] = value
            continue
        for adapter in ("vision", "speech"):
            for factor, shape in (("lora_A", (RANK, value.shape[1])), ("lora_B", (value.shape[0], RANK))):
                changed[f"{path}.{factor}.{adapter}.weight"] = mx.array(source.normal(0, 0.2, shape).astype(np.float32))
        down, up = (changed[f"{path}.{factor}.vision.weight"] for factor in ("lora_A", "lora_B"))
        changed[f"{path}.base_layer.weight"] = value - SCALE * (up @ down)
    for part in ("encoder.embed.bias", "audio_projection.vision.0.bias"):
        changed[f"model.embed_tokens_extend.audio_embed.{part}"] = mx.zeros([4])
    return changed


def row(name, **more):
    look = {"image_processor_type": "Phi4MMImageProcessor", "dynamic_hd": 6}
    return Row(name, config(), image, given, tokens={IMAGE: "<|endoftext10|>"}, processor=look, prepare=repair, **{"layout": named, **more})


ROWS = [
    row("phi4mm"),
    row("phi4mm-original", layout=original),
    row("phi4mm-4bit", packed="language", bits=4),
    row("phi4mm-tower8", packed="all"),
]
