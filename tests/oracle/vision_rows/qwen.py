"""Qwen's towers: 2 and 2.5 with block-wise multimodal positions, 3 and 3.5 with interleaved ones and learned positions."""
import mlx.core as mx
import numpy as np

from vision_rows.row import END, IMAGE, START, VIDEO, VOCABULARY, Image, Row, View

GRIDS = [(4, 6), (6, 4), (8, 2)]
IDS = {"image_token_id": IMAGE, "video_token_id": VIDEO, "vision_start_token_id": START, "vision_end_token_id": END}
TOKENS = {IMAGE: "<|image_pad|>", VIDEO: "<|video_pad|>", START: "<|vision_start|>", END: "<|vision_end|>"}


def qwen2_text():
    """The fields that the older configs keep at the top level."""
    return {"hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 64, "num_attention_heads": 2, "num_key_value_heads": 1,
            "rms_norm_eps": 1e-6, "vocab_size": VOCABULARY, "max_position_embeddings": 4096, "rope_theta": 10000.0,
            "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]}, "tie_word_embeddings": False}


def qwen2_vl():
    vision = {"model_type": "qwen2_vl", "depth": 2, "embed_dim": 96, "hidden_size": 32, "num_heads": 4, "mlp_ratio": 2, "in_channels": 3,
              "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2}
    return {"model_type": "qwen2_vl", "vision_config": vision, **qwen2_text(), **IDS}


def qwen2_5_vl():
    vision = {"model_type": "qwen2_5_vl", "depth": 2, "hidden_size": 96, "intermediate_size": 80, "out_hidden_size": 32, "num_heads": 4,
              "in_channels": 3, "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2, "window_size": 56,
              "fullatt_block_indexes": [1], "tokens_per_second": 2}
    return {"model_type": "qwen2_5_vl", "vision_config": vision, **qwen2_text(), **IDS}


def qwen3_vision(model_type, **more):
    # 4 x 4 learned positions, so that every grid here is interpolated.
    return {"model_type": model_type, "depth": 2, "hidden_size": 96, "intermediate_size": 80, "out_hidden_size": 32, "num_heads": 4,
            "in_channels": 3, "patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2, "num_position_embeddings": 16,
            "deepstack_visual_indexes": [0, 1], "hidden_act": "gelu_pytorch_tanh", **more}


def qwen3_text(model_type, **more):
    return {"model_type": model_type, "hidden_size": 32, "num_hidden_layers": 3, "intermediate_size": 64, "num_attention_heads": 2,
            "num_key_value_heads": 1, "head_dim": 16, "rms_norm_eps": 1e-6, "vocab_size": VOCABULARY, "rope_theta": 10000.0,
            "max_position_embeddings": 4096, "attention_bias": False, "hidden_act": "silu", "tie_word_embeddings": False,
            "rope_scaling": {"rope_type": "default", "mrope_interleaved": True, "mrope_section": [4, 2, 2]}, **more}


def qwen3_vl():
    return {"model_type": "qwen3_vl", "tie_word_embeddings": False, "text_config": qwen3_text("qwen3_vl_text"),
            "vision_config": qwen3_vision("qwen3_vl"), **IDS}


def qwen3_vl_moe():
    experts = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64, "decoder_sparse_step": 1, "mlp_only_layers": [],
               "norm_topk_prob": True}
    return {"model_type": "qwen3_vl_moe", "tie_word_embeddings": False, "text_config": qwen3_text("qwen3_vl_moe_text", **experts),
            "vision_config": qwen3_vision("qwen3_vl_moe"), **IDS}


def qwen3_omni_moe():
    """The thinker of Qwen3-Omni, which is Qwen3-VL with experts inside one more wrapper."""
    inner = qwen3_vl_moe()
    inner["text_config"]["model_type"], inner["vision_config"]["model_type"] = "qwen3_omni_moe_text", "qwen3_omni_moe_vision_encoder"
    return {"model_type": "qwen3_omni_moe", "thinker_config": {**inner, "model_type": "qwen3_omni_moe_thinker"}}


def qwen3_5():
    text = {"model_type": "qwen3_5_text", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 4, "num_attention_heads": 2,
            "num_key_value_heads": 1, "head_dim": 32, "linear_num_value_heads": 4, "linear_num_key_heads": 2, "linear_key_head_dim": 32,
            "linear_value_head_dim": 32, "linear_conv_kernel_dim": 4, "full_attention_interval": 4, "rms_norm_eps": 1e-6,
            "vocab_size": VOCABULARY, "max_position_embeddings": 4096, "tie_word_embeddings": False, "attention_bias": False,
            "layer_types": ["linear_attention"] * 3 + ["full_attention"],
            "rope_parameters": {"rope_type": "default", "mrope_interleaved": True, "mrope_section": [2, 1, 1], "rope_theta": 10000.0,
                                "partial_rotary_factor": 0.25}}
    return {"model_type": "qwen3_5", "tie_word_embeddings": False, "text_config": text,
            "vision_config": qwen3_vision("qwen3_5", deepstack_visual_indexes=[]), **IDS}


def qwen4_exp():
    """An index that chooses among the blocks of an image and of the text, and tables of runs."""
    config = qwen3_5()
    more = {"model_type": "qwen4_exp_text", "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64,
            "shared_expert_intermediate_size": 32, "hc_count": 2, "hc_lowrank": 16, "ple_layer_ids": [1, 3], "ple_embed_dim": 32,
            "ngram_size": 3, "heads_per_ngram": 2, "ngram_vocab_size_base": 50, "make_ngram_vocab_size_divisible_by": 16,
            "split_ngram_parts": 3, "indexer_n_heads": 8, "indexer_head_dim": 16, "indexer_budget": 60,
            "indexer_compress_ratio": 3, "eos_token_id": 5}
    config["text_config"] = {**config["text_config"], **more}
    del config["text_config"]["intermediate_size"]
    return {**config, "model_type": "qwen4_exp", "vision_config": {**config["vision_config"], "model_type": "qwen4_exp"}}


def processor(patch, mean, std):
    return {"image_processor_type": "Qwen2VLImageProcessor", "patch_size": patch, "temporal_patch_size": 2, "merge_size": 2,
            "size": {"shortest_edge": 65536, "longest_edge": 16777216}, "image_mean": mean, "image_std": std, "do_resize": True,
            "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True, "do_convert_rgb": True, "resample": 3}


def images_of(patch, frames=2):
    """Patches sorted into the blocks of 2 x 2 that are merged, each C, T, y, x."""

    def image(numbers, index):
        rows, columns = GRIDS[index % len(GRIDS)]
        tokens = (rows // 2, columns // 2)
        view = View(numbers.pixels(rows * columns, 3 * frames * patch * patch), columns * patch, rows * patch, (rows, columns), tokens)
        return Image([view], [START] + [IMAGE] * (tokens[0] * tokens[1]) + [END])

    return image


def given(images, ids):
    if not images:
        return {}
    views = [view for image in images for view in image.views]
    return {"pixel_values": mx.array(np.concatenate([view.pixels for view in views])),
            "image_grid_thw": mx.array([[1, *view.patches] for view in views], dtype=mx.int32)}


def repair_moe():
    """The exact GELU belongs into the mergers and the approximate one into the blocks; mlx-vlm has them the other way round."""
    import mlx.nn as nn
    from mlx_vlm.models.qwen3_vl_moe import vision

    for part, activation in ((vision.MLP, nn.GELU(approx="tanh")), (vision.PatchMerger, nn.GELU())):
        def begin(self, *args, plain=part.__init__, activation=activation, **more):
            plain(self, *args, **more)
            self.act_fn = activation

        part.__init__ = begin


def original(weights):
    """Names as the original repositories have them, and convolutions with the channels second."""
    changed = {}
    for name, value in weights.items():
        name = name.replace("language_model.model.", "model.language_model.").replace("language_model.lm_head", "lm_head")
        name = name.replace("vision_tower.", "model.visual.")
        if name.endswith("patch_embed.proj.weight"):
            value = mx.contiguous(value.transpose(0, 4, 1, 2, 3))
        changed[name] = value
    return changed


def original_2(weights):
    """The same of the older models: the tower beside `model.`, which is the language part."""
    names = {"model.language_model.": "model.", "model.visual.": "visual."}
    changed = original(weights)
    for old, new in names.items():
        changed = {name.replace(old, new): value for name, value in changed.items()}
    return changed


def original_moe(weights):
    """Experts as the original repositories have them: [experts, hidden, 2 · width] and [experts, width, hidden]."""
    changed = original(weights)
    for name in [name for name in changed if name.endswith("switch_mlp.gate_proj.weight")]:
        part = lambda which: changed.pop(name.replace("gate_proj", which)).transpose(0, 2, 1)
        experts = name.replace("switch_mlp.gate_proj.weight", "experts.")
        both = mx.concatenate([part("gate_proj"), part("up_proj")], axis=2)
        changed[experts + "gate_up_proj"], changed[experts + "down_proj"] = mx.contiguous(both), mx.contiguous(part("down_proj"))
    return changed


def original_omni(weights):
    """Names as the original repository of Qwen3-Omni has them: mergers like those of Qwen2-VL, experts one by one, all below `thinker.`."""
    merger = {".norm.": ".ln_q.", ".linear_fc1.": ".mlp.0.", ".linear_fc2.": ".mlp.2.", "deepstack_merger_list.": "merger_list."}
    changed = {}
    for name, value in original(weights).items():
        name = name.replace("model.visual.", "visual.").replace("model.language_model.", "model.")
        if ".switch_mlp." in name:
            for index, expert in enumerate(value):
                changed["thinker." + name.replace(".switch_mlp.", f".experts.{index}.")] = mx.contiguous(expert)
            continue
        if "merger" in name:
            for old, new in merger.items():
                name = name.replace(old, new)
        changed[f"thinker.{name}"] = value
    return changed


def remembers(name, shape, source):
    """States that forget slowly, so that an image far back is seen through them, too."""
    return source.normal(-3.0, 0.1, shape) if name.endswith("A_log") else None


CLIP = [0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]
HALF = [0.5] * 3, [0.5] * 3


def row(name, config, patch, look, **more):
    return Row(name, config, images_of(patch), given, tokens=TOKENS, processor=processor(patch, *look), **more)


ROWS = [
    row("qwen2_vl", qwen2_vl(), 14, CLIP),
    row("qwen2_5_vl", qwen2_5_vl(), 14, CLIP),
    row("qwen2_5_vl-original", qwen2_5_vl(), 14, CLIP, layout=original_2),
    row("qwen3_vl", qwen3_vl(), 16, HALF),
    row("qwen3_vl-original", qwen3_vl(), 16, HALF, layout=original),
    row("qwen3_vl-4bit", qwen3_vl(), 16, HALF, packed="language", bits=4),
    row("qwen3_vl-tower8", qwen3_vl(), 16, HALF, packed="all"),
    row("qwen3_vl_moe", qwen3_vl_moe(), 16, HALF, prepare=repair_moe),
    row("qwen3_vl_moe-original", qwen3_vl_moe(), 16, HALF, prepare=repair_moe, layout=original_moe),
    row("qwen3_omni_moe", qwen3_omni_moe(), 16, HALF, prepare=repair_moe, asked=qwen3_vl_moe(), layout=original_omni),
    row("qwen3_5", qwen3_5(), 16, HALF),
    row("qwen4_exp", qwen4_exp(), 16, HALF, draw=remembers),
    row("qwen4_exp-4bit", qwen4_exp(), 16, HALF, draw=remembers, packed="language", bits=4),
]
