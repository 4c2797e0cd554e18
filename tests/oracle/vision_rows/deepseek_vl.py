"""SigLIP by timm's names on tiles and on the whole, beside DeepSeek V2 (DeepSeek-VL2)."""
import mlx.core as mx
import numpy as np

from vision_rows.row import IMAGE, VOCABULARY, Image, Row, View

# Five patches on a side, which two divides not.
SIDE, PATCH, MERGE, HIDDEN = 70, 14, 2, 96
PER_SIDE = 3
# Rows and columns of tiles.
TILES = [(1, 2), (1, 1), (3, 2)]


def config(**attention):
    text = {"model_type": "deepseek_v2", "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 64, "moe_intermediate_size": 32,
            "num_attention_heads": 2, "num_key_value_heads": 2, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": 2,
            "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1, "topk_method": "greedy", "vocab_size": VOCABULARY, "rms_norm_eps": 1e-6,
            "max_position_embeddings": 4096, "rope_theta": 10000.0, **attention}
    vision = {"model_type": "vision", "layers": 3, "width": HIDDEN, "intermediate_size": 80, "num_attention_heads": 4, "patch_size": PATCH,
              "image_size": SIDE, "model_name": "siglip_so400m_patch14_384", "mlp_ratio": 3.7362}
    projector = {"model_type": "mlp_projector", "projector_type": "downsample_mlp_gelu", "input_dim": HIDDEN, "n_embed": 32, "depth": 2, "mlp_ratio": 2,
                 "downsample_ratio": MERGE}
    return {"model_type": "deepseek_vl_v2", "language_config": text, "vision_config": vision, "projector_config": projector, "tile_tag": "2D",
            "global_view_pos": "head", "candidate_resolutions": [[SIDE * columns, SIDE * rows] for rows, columns in TILES],
            "image_token_index": IMAGE, "vocab_size": VOCABULARY}


PLAIN = {"use_mla": False, "qk_nope_head_dim": 0, "qk_rope_head_dim": 0, "v_head_dim": 0, "kv_lora_rank": None, "q_lora_rank": None}
LATENT = {"qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16, "kv_lora_rank": 32, "q_lora_rank": None,
          "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1024, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0,
                           "mscale_all_dim": 1.0}}


def image(numbers, index):
    rows, columns = TILES[index % len(TILES)]
    patches = (SIDE // PATCH, SIDE // PATCH)
    views = [View(numbers.pixels(3, SIDE, SIDE), SIDE, SIDE, patches, (PER_SIDE, PER_SIDE)) for _ in range(rows * columns + 1)]
    grid = (rows * PER_SIDE, columns * PER_SIDE)
    views[-1].features = PER_SIDE * (PER_SIDE + 1) + 1
    run = [IMAGE] * (views[-1].features + grid[0] * (grid[1] + 1))
    return Image(views, run, tiles=(rows, columns), whole=True, joined=[grid, grid])


def given(images, ids):
    """As its processor hands them over: the whole of each image first."""
    if not images:
        return {}
    views = [view.pixels for image in images for view in (image.views[-1], *image.views[:-1])]
    crops = [[image.tiles[1], image.tiles[0]] for image in images]
    # It looks for as many images as there are views, up to one without tiles.
    crops += [[0, 0]] * (len(views) - len(crops))
    return {"pixel_values": mx.array(np.stack(views))[None], "images_spatial_crop": mx.array([crops]),
            "images_seq_mask": mx.array([[token == IMAGE for token in ids]])}


def repair():
    """The last norm of the tower has the smaller number of the original's."""
    from mlx_vlm.models.deepseek_vl_v2 import vision

    plain = vision.SigLipVisionModel.__init__

    def begin(self, config, *args, **more):
        plain(self, config, *args, **more)
        self.norm.eps = 1e-6

    vision.SigLipVisionModel.__init__ = begin


def original(weights):
    """As the original repository has it: convolutions with the channels second, experts one by one, other names."""
    changed = {}
    for name, value in weights.items():
        short = name.replace("language_model.", "language.").replace("vision.vision_tower.", "vision.").replace("separator", "seperator")
        if name.endswith("patch_embed.proj.weight"):
            value = mx.contiguous(value.transpose(0, 3, 1, 2))
        if "switch_mlp" in name:
            changed |= {short.replace("switch_mlp", f"experts.{expert}"): mx.contiguous(value[expert]) for expert in range(value.shape[0])}
        else:
            changed[short] = value
    return changed


def row(name, attention, **more):
    look = {"processor_class": "DeepseekVLV2Processor", "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    return Row(name, config(**attention), image, given, tokens={IMAGE: "<image>"}, processor=look, prepare=repair, **more)


ROWS = [
    row("deepseek_vl_v2", PLAIN),
    row("deepseek_vl_v2-original", PLAIN, layout=original),
    row("deepseek_vl_v2-latent", LATENT, layout=original),
    row("deepseek_vl_v2-4bit", PLAIN, packed="language", bits=4),
    row("deepseek_vl_v2-tower8", PLAIN, packed="all"),
]
