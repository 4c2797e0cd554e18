"""SigLIP 2 at an image's own shape beside Phi 3 (Phi 4 Reasoning Vision)."""
import mlx.core as mx
import numpy as np

from vision_rows.row import IMAGE, VOCABULARY, Image, Row, View

PATCH = 16
# All are stretched from 4 x 4 learned positions, some of them squeezed.
GRIDS = [(4, 6), (5, 2), (2, 8)]


def config():
    vision = {"model_type": "siglip2_vision_model", "hidden_size": 96, "num_hidden_layers": 3, "intermediate_size": 80, "num_attention_heads": 4,
              "num_channels": 3, "patch_size": PATCH, "num_patches": 16, "layer_norm_eps": 1e-6, "hidden_act": "gelu_pytorch_tanh"}
    text = {"hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 64, "num_attention_heads": 2, "num_key_value_heads": 1,
            "rms_norm_eps": 1e-5, "vocab_size": VOCABULARY, "rope_theta": 500000.0, "partial_rotary_factor": 1.0}
    return {"model_type": "phi4-siglip", **text, "max_position_embeddings": 4096, "original_max_position_embeddings": 4096, "rope_scaling": None,
            "tie_word_embeddings": False, "vision_config": vision, "mm_hidden_size": 96, "mm_projector_type": "mlp2x_gelu", "mm_vision_select_layer": -2,
            "mm_vision_tower": "siglip2-so400m-patch16-naflex", "min_num_patches": 4, "max_num_patches": 64}


def asked():
    """mlx-vlm reads the language part from an object of its own."""
    whole = config()
    names = ("hidden_size", "num_hidden_layers", "intermediate_size", "num_attention_heads", "num_key_value_heads", "rms_norm_eps", "vocab_size",
             "rope_theta", "partial_rotary_factor")
    return {**whole, "text_config": {"model_type": "phi4-siglip", **{name: whole[name] for name in names}}}


def image(numbers, index):
    rows, columns = GRIDS[index % len(GRIDS)]
    pixels = numbers.pixels(rows * columns, PATCH * PATCH * 3)
    return Image([View(pixels, columns * PATCH, rows * PATCH, (rows, columns), (rows, columns))], [IMAGE] * (rows * columns))


def given(images, _):
    return {"images": [view for image in images for view in image.views]}


def positions(table, grid):
    """Torch's linear sampling with `antialias`, of each axis."""
    def shares(source, target):
        scale = source / target
        matrix, wide = np.zeros((target, source)), max(scale, 1.0)
        for cell in range(target):
            at = (cell + 0.5) * scale
            first, last = max(int(at - wide + 0.5), 0), min(int(at + wide + 0.5), source)
            share = [max(1 - abs((place - at + 0.5) / wide), 0.0) for place in range(first, last)]
            matrix[cell, first:last] = np.array(share) / sum(share)
        return matrix

    down, across = shares(table.shape[0], grid[0]), shares(table.shape[1], grid[1])
    return mx.array(np.einsum("rh,hwd,cw->rcd", down, np.array(table), across).reshape(grid[0] * grid[1], -1).astype(np.float32))


def repair():
    """mlx-vlm lets the padding of smaller images be seen and stretches positions by cubics; SigLIP 2 does neither in transformers. Images
    stand where a negative id is, of which there is one for each; here they stand where their tokens are."""
    from mlx_vlm.models.phi4_siglip import phi4_siglip

    def call(self, ids, pixels=None, images=(), **_):
        tower, embeds = self.vision_tower.vision_tower.vision_model, self.language_model.model.embed_tokens(ids)
        rows = []
        for view in images:
            side = tower.embeddings.position_embedding_size
            table = tower.embeddings.position_embedding.weight.reshape(side, side, -1)
            x = tower.embeddings.patch_embedding(mx.array(view.pixels)) + positions(table, view.patches)
            rows.append(self.mm_projector(tower.encoder(x[None], output_hidden_states=True)[self.config.mm_vision_select_layer][0]))
        if rows:
            embeds[:, np.where(np.array(ids) == IMAGE)[1].tolist()] = mx.concatenate(rows)
        return self.language_model(ids, inputs_embeds=embeds)

    phi4_siglip.Model.__call__ = call


def original(weights):
    """As the original repository has it."""
    changed = {}
    for name, value in weights.items():
        short = name.replace("language_model.model.", "").replace("linear_1", "0").replace("linear_2", "2")
        changed["lm_head.weight" if name.endswith("lm_head.weight") else f"model.{short}"] = value
    return changed


def row(name, **more):
    look = {"image_processor_type": "Siglip2ImageProcessorNoUpscale", "patch_size": PATCH, "min_num_patches": 4, "max_num_patches": 64, "resample": 2,
            "do_resize": True, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    return Row(name, config(), image, given, tokens={IMAGE: "<image>"}, processor=look, prepare=repair, asked=asked(), **more)


ROWS = [
    row("phi4_siglip"),
    row("phi4_siglip-original", layout=original),
    row("phi4_siglip-4bit", packed="language", bits=4),
    row("phi4_siglip-tower8", packed="all"),
]
