"""ERNIE 4.5 VL: experts of text and experts of images, positions whose rows and columns take turns, and a resampler of blocks."""
import mlx.core as mx

from vision_rows.qwen import CLIP, given, images_of, processor
from vision_rows.row import END, IMAGE, START, VIDEO, VOCABULARY, Row

PATCH = 16
TOKENS = {IMAGE: "<|IMAGE_PLACEHOLDER|>", VIDEO: "<|VIDEO_PLACEHOLDER|>", START: "<|IMAGE_START|>", END: "<|IMAGE_END|>"}


def ernie(**more):
    vision = {"model_type": "DFNRope_vision_transformer", "depth": 2, "embed_dim": 96, "hidden_size": 96, "hidden_act": "quick_gelu",
              "in_channels": 3, "in_chans": 3, "mlp_ratio": 2, "num_heads": 4, "patch_size": PATCH, "spatial_merge_size": 2,
              "spatial_patch_size": PATCH}
    return {"model_type": "ernie4_5_moe_vl", "vision_config": vision, "hidden_size": 32, "num_hidden_layers": 3, "intermediate_size": 64,
            "num_attention_heads": 2, "num_key_value_heads": 1, "rms_norm_eps": 1e-5, "vocab_size": VOCABULARY, "rope_theta": 500000.0,
            "max_position_embeddings": 4096, "use_bias": False, "hidden_act": "silu", "tie_word_embeddings": False,
            "rope_scaling": {"type": "default", "mrope_section": [3, 3, 2]}, "rope_3d": True, "freq_allocation": 2,
            "moe_num_experts": [4, 4], "moe_intermediate_size": [64, 32], "moe_k": 2, "moe_num_shared_experts": 1,
            "moe_layer_start_index": [1, 1], "moe_layer_end_index": [3, 2], "moe_layer_interval": 1, "moe_gate_act": "softmax",
            "moe_use_aux_free": True, "pixel_hidden_size": 96, "spatial_conv_size": 2, "temporal_conv_size": 2, "use_temporal_conv": True,
            "im_patch_id": IMAGE, "image_start_token_id": START, "image_end_token_id": END, **more}


def transformers():
    """The same as transformers describes it."""
    flat = ernie()
    text = {name: flat[name] for name in ("hidden_size", "num_hidden_layers", "intermediate_size", "num_attention_heads", "num_key_value_heads",
                                          "rms_norm_eps", "vocab_size", "max_position_embeddings", "use_bias", "hidden_act", "moe_intermediate_size",
                                          "moe_k", "moe_num_shared_experts", "tie_word_embeddings")}
    text |= {"model_type": "ernie4_5_vl_moe_text", "moe_num_experts": 4, "mlp_layer_types": ["dense", "sparse", "sparse"],
             "rope_parameters": {"rope_type": "default", "rope_theta": 500000.0, "mrope_section": [3, 3, 2]}}
    vision = {"model_type": "ernie4_5_vl_moe_vision", "depth": 2, "hidden_size": 96, "intermediate_size": 192, "hidden_act": "quick_gelu",
              "in_channels": 3, "num_heads": 4, "patch_size": PATCH, "spatial_merge_size": 2, "temporal_merge_size": 2, "rms_norm_eps": 1e-6}
    return {"model_type": "ernie4_5_vl_moe", "text_config": text, "vision_config": vision, "tie_word_embeddings": False,
            "image_token_id": IMAGE, "image_start_token_id": START, "image_end_token_id": END, "video_token_id": VIDEO}


def repair():
    """The marks around an image go through the experts of images, and a prompt may have more than three of them."""
    from mlx_vlm.models.ernie4_5_moe_vl.ernie4_5_moe_vl import Model

    def kinds(self, input_ids, pixel_values=None):
        if pixel_values is None:
            return None
        return mx.logical_and(input_ids >= IMAGE, input_ids <= END).astype(mx.int32)

    Model._build_token_type_ids = kinds


def draw(name, shape, source):
    """Corrections about as large as the differences between experts."""
    return source.normal(0, 0.2, shape) if "e_score_correction_bias" in name else None


def original(weights):
    """Names as the original repository has them: experts one by one, those of images after the others, gates with their inputs first."""
    changed = {}
    for name, value in weights.items():
        name = name.replace("language_model.", "").replace("vision_tower.", "vision_model.").replace("resampler_model.", "model.resampler_model.")
        name = name.replace("_linear.layers.", "_linear.")
        layer, _, part = name.partition(".mlp.")
        if part.startswith("switch_mlp"):
            stack, projection, end = part.split(".")
            first = 4 if stack.endswith("_1") else 0
            for expert, rows in enumerate(value):
                changed[f"{layer}.mlp.experts.{first + expert}.{projection}.{end}"] = mx.contiguous(rows)
        elif part == "gate.weight":
            changed[name] = mx.contiguous(value.T)
        elif part == "gate_1.weight":
            changed[f"{layer}.mlp.gate.weight_1"] = mx.contiguous(value.T)
        elif part == "e_score_correction_bias":
            both = mx.stack([value, weights[f"language_model.{layer}.mlp.e_score_correction_bias_1"]])
            changed[f"{layer}.mlp.moe_statics.e_score_correction_bias"] = both
        elif part != "e_score_correction_bias_1":
            changed[name] = value
    return changed


def row(name, config=None, **more):
    return Row(name, config or ernie(), images_of(PATCH, 1), given, tokens=TOKENS, prepare=repair, draw=draw,
               processor={**processor(PATCH, *CLIP), "image_processor_type": "Ernie4_5_VLImageProcessor"}, **more)


ROWS = [
    row("ernie4_5_moe_vl"),
    row("ernie4_5_moe_vl-original", ernie(moe_num_shared_experts=0, tie_word_embeddings=True), layout=original),
    row("ernie4_5_vl_moe", transformers(), asked=ernie(), layout=original),
    row("ernie4_5_moe_vl-4bit", packed="language", bits=4),
    row("ernie4_5_moe_vl-tower8", packed="all"),
]
