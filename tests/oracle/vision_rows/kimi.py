"""MoonViT beside DeepSeek V3 (Kimi-VL, Kimi K2.5)."""
import mlx.core as mx
import numpy as np

from vision_rows.row import IMAGE, VOCABULARY, END, START, Image, Row, View

PATCH = 14
GRIDS = [(4, 6), (6, 4), (2, 8)]


def config(model_type="kimi_vl"):
    text = {"model_type": "deepseek_v3", "hidden_size": 32, "num_hidden_layers": 3, "intermediate_size": 64, "num_attention_heads": 2,
            "num_key_value_heads": 2, "rms_norm_eps": 1e-5, "vocab_size": VOCABULARY, "rope_theta": 10000.0, "rope_scaling": None,
            "max_position_embeddings": 4096, "q_lora_rank": None, "kv_lora_rank": 64, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16,
            "v_head_dim": 32, "moe_intermediate_size": 64, "n_routed_experts": 4, "n_shared_experts": 2, "num_experts_per_tok": 2,
            "n_group": 1, "topk_group": 1, "norm_topk_prob": True, "routed_scaling_factor": 2.446, "first_k_dense_replace": 1,
            "topk_method": "noaux_tc", "scoring_func": "sigmoid", "attention_bias": False}
    # Under the names of the original and those that mlx-vlm reads; 4 x 6 learned positions, so that others are stretched.
    vision = {"model_type": "moonvit", "hidden_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 80,
              "patch_size": PATCH, "init_pos_emb_height": 4, "init_pos_emb_width": 4, "merge_kernel_size": [2, 2], "embed_dim": 96,
              "depth": 2, "num_heads": 4}
    return {"model_type": model_type, "text_config": text, "vision_config": vision, "media_placeholder_token_id": IMAGE,
            "vocab_size": VOCABULARY}


def image(numbers, index):
    rows, columns = GRIDS[index % len(GRIDS)]
    tokens = (rows // 2, columns // 2)
    height, width = rows * PATCH, columns * PATCH
    view = View(numbers.pixels(3, height, width), width, height, (rows, columns), tokens)
    return Image([view], [START] + [IMAGE] * (tokens[0] * tokens[1]) + [END])


def given(images, _):
    if not images:
        return {}
    views = [view for image in images for view in image.views]
    patches = []
    for view in views:
        rows, columns = view.patches
        cut = view.pixels.reshape(3, rows, PATCH, columns, PATCH).transpose(1, 3, 0, 2, 4)
        patches.append(cut.reshape(-1, 3, PATCH, PATCH))
    return {"pixel_values": mx.array(np.concatenate(patches)), "image_grid_hws": mx.array([view.patches for view in views], dtype=mx.int32)}


def repair():
    """The norms of the original are torch's, its networks have the approximate GELU, and positions are stretched without a GPU."""
    import mlx.nn as nn
    from mlx_vlm.models.kimi_k25 import vision as newer
    from mlx_vlm.models.kimi_vl import vision

    for module in (vision, newer):
        repair_tower(module, nn)


def repair_tower(vision, nn):
    if hasattr(vision, "repaired"):
        return
    vision.repaired = True
    plain, whole = vision.Qwen2VLVisionBlock.__init__, vision.VisionModel.__init__

    def block(self, config):
        plain(self, config)
        self.norm0.eps = self.norm1.eps = 1e-5
        self.mlp.activation_fn = nn.GELU(approx="tanh")

    def model(self, config):
        whole(self, config)
        self.final_layernorm.eps = 1e-5

    def shares(source, target):
        """[target, source]: torch's cubic sampling, borders repeated."""
        matrix, slope = np.zeros((target, source)), -0.75
        for cell in range(target):
            at = (cell + 0.5) * source / target - 0.5
            first = int(np.floor(at))
            for place in range(first - 1, first + 3):
                far = abs(at - place)
                near = (slope + 2) * far**3 - (slope + 3) * far**2 + 1
                share = near if far <= 1 else slope * (far**3 - 5 * far**2 + 8 * far - 4)
                matrix[cell, min(max(place, 0), source - 1)] += share
        return mx.array(matrix.astype(np.float32))

    def stretched(table, size):
        down, across = shares(table.shape[2], size[0]), shares(table.shape[3], size[1])
        return down @ table.astype(mx.float32) @ across.T

    vision.Qwen2VLVisionBlock.__init__, vision.VisionModel.__init__ = block, model
    vision.bicubic_interpolate = stretched


def original(weights):
    """Names as the original repository has them, and the convolution with the channels second."""
    changed = {}
    for name, value in weights.items():
        for old, new in {"vision_tower.blocks": "vision_tower.encoder.blocks", "vision_tower.final": "vision_tower.encoder.final",
                         "attn.w": "w"}.items():
            name = name.replace(old, new)
        changed[name] = mx.contiguous(value.transpose(0, 3, 1, 2)) if name.endswith("patch_embed.proj.weight") else value
    return changed


def row(name, model_type="kimi_vl", **more):
    look = {"image_processor_type": "KimiVLImageProcessor", "patch_size": PATCH, "in_token_limit": 4096, "num_pooled_tokens": 1024,
            "pad_input": True, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    tokens = {IMAGE: "<|media_pad|>", START: "<|media_content|>", END: "<|media_end|>"}
    return Row(name, config(model_type), image, given, tokens=tokens, processor=look, prepare=repair, **more)


ROWS = [
    row("kimi_vl"),
    row("kimi_vl-original", layout=original),
    row("kimi_vl-4bit", packed="language", bits=4),
    row("kimi_vl-tower8", packed="all"),
    row("kimi_k25", "kimi_k25"),
    row("kimi_k25-original", "kimi_k25", layout=original),
    row("kimi_k25-4bit", "kimi_k25", packed="language", bits=4),
]
