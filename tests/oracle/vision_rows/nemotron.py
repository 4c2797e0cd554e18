"""RADIO at an image's own shape, with class tokens and registers before the patches, beside Nemotron-H (Nemotron Nano Omni)."""
import mlx.core as mx

from layouts import raw_scan, single_ungated_experts
from vision_rows.row import END, IMAGE, START, VOCABULARY, Image, Row, View

PATCH, TABLE = 16, 6
# Rows and columns of patches; one needs a larger table of positions than there is.
GRIDS = [(4, 6), (8, 2), (2, 4)]


def config(norm=False):
    text = {"model_type": "nemotron_h", "hidden_size": 32, "vocab_size": VOCABULARY, "hybrid_override_pattern": "M*E-", "num_hidden_layers": 4,
            "intermediate_size": 64, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16, "mamba_num_heads": 4, "mamba_head_dim": 16,
            "ssm_state_size": 16, "n_groups": 2, "conv_kernel": 4, "mamba_hidden_act": "silu", "mlp_hidden_act": "relu2", "use_conv_bias": True,
            "mamba_proj_bias": False, "attention_bias": False, "mlp_bias": False, "use_bias": False, "layer_norm_epsilon": 1e-5,
            "n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": 1, "moe_intermediate_size": 32,
            "moe_shared_expert_intermediate_size": 64, "n_group": 1, "topk_group": 1, "norm_topk_prob": True, "routed_scaling_factor": 2.5,
            "max_position_embeddings": 4096, "tie_word_embeddings": False, "time_step_limit": [0.0, 1e9]}
    teachers = [{"name": "clip"}, {"name": "dino"}, {"name": "clip"}]
    vision = {"model_type": "radio", "hidden_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 80,
              "patch_size": PATCH, "image_size": 32, "max_resolution": TABLE * PATCH,
              "args": {"model": "vit_huge_patch16_224", "register_multiple": 4, "teachers": teachers}}
    return {"model_type": "nemotron_h_nano_omni", "llm_config": text, "vision_config": vision, "ps_version": "v2", "downsample_ratio": 0.5,
            "projector_hidden_size": 64, "vit_hidden_size": 96, "img_context_token_id": IMAGE, "image_tag_type": "internvl", "force_image_size": 512,
            "vision_final_layernorm": norm}


def asked(norm):
    """The oracle's writer gives every config a `text_config`, which mlx-vlm then prefers."""
    whole = config(norm)
    whole["text_config"] = whole.pop("llm_config")
    return whole


def image(numbers, index):
    rows, columns = GRIDS[index % len(GRIDS)]
    tokens = (rows // 2, columns // 2)
    view = View(numbers.pixels(rows * columns, 3 * PATCH**2), columns * PATCH, rows * PATCH, (rows, columns), tokens)
    return Image([view], [START] + [IMAGE] * (tokens[0] * tokens[1]) + [END])


def given(images, _):
    """Images of one shape each, in planes."""
    if not images:
        return {}
    planes = []
    for view in (view for image in images for view in image.views):
        (rows, columns), pixels = view.patches, view.pixels
        planes.append(mx.array(pixels.reshape(rows, columns, 3, PATCH, PATCH).transpose(2, 0, 3, 1, 4).reshape(3, rows * PATCH, columns * PATCH)))
    return {"pixel_values": planes}


def original(weights):
    """As the original repository has it, with a projection of films and the encoder of speech beside it."""
    names = {"mlp1.layers.": "mlp1.", "vision_final": "vision_projector.vision_final"}
    language = {name: value for name, value in weights.items() if name.startswith("language_model.")}
    changed = {name: value for name, value in weights.items() if name not in language} | single_ungated_experts(raw_scan(language))
    for ours, theirs in names.items():
        changed = {name.replace(ours, theirs): value for name, value in changed.items()}
    return changed | {"sound_encoder.encoder.layers.0.norm_out.weight": mx.ones([8]), "sound_projection.norm.weight": mx.ones([8])}


def row(name, norm=False, **more):
    look = {"image_processor_type": "NemotronHNanoOmniImageProcessor", "patch_size": PATCH, "downsample_ratio": 0.5, "min_num_patches": 8,
            "max_num_patches": 64, "norm_mean": [0.48145466, 0.4578275, 0.40821073], "norm_std": [0.26862954, 0.26130258, 0.27577711]}
    return Row(name, config(norm), image, given, tokens={IMAGE: "<image>", START: "<img>", END: "</img>"}, processor=look, asked=asked(norm), **more)


ROWS = [
    row("nemotron_h_nano_omni"),
    row("nemotron_h_nano_omni-original", norm=True, layout=original),
    row("nemotron_h_nano_omni-4bit", packed="language", bits=4),
    row("nemotron_h_nano_omni-tower8", packed="all"),
]
