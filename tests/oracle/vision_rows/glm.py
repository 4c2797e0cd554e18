"""GLM-4.1V, GLM-OCR and PaddleOCR-VL: block-wise multimodal positions, of which GLM turns neighbors and PaddleOCR halves."""
import mlx.core as mx
import numpy as np

from vision_rows.row import END, IMAGE, START, VIDEO, VOCABULARY, Image, Row, View

PATCH = 14
GRIDS = [(4, 6), (6, 4), (8, 2)]
IDS = {"image_token_id": IMAGE, "video_token_id": VIDEO, "vision_start_token_id": START, "vision_end_token_id": END}
GLM_IDS = {**IDS, "image_start_token_id": START, "image_end_token_id": END}


def text(model_type, **more):
    return {"model_type": model_type, "vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 2,
            "num_hidden_layers": 2, "num_key_value_heads": 1, "rms_norm_eps": 1e-5, "max_position_embeddings": 4096, "eos_token_id": [1],
            "pad_token_id": 0, **more}


def vision(model_type, **more):
    # 4 x 4 learned positions, so that every grid here is interpolated.
    return {"model_type": model_type, "depth": 2, "hidden_size": 96, "intermediate_size": 80, "num_heads": 4, "patch_size": PATCH,
            "image_size": 56, "in_channels": 3, "out_hidden_size": 32, "spatial_merge_size": 2, "temporal_patch_size": 2,
            "rms_norm_eps": 1e-5, "hidden_act": "silu", **more}


def glm4v():
    language = text("glm4v_text", rope_theta=10000.0, attention_bias=True, partial_rotary_factor=0.5,
                    rope_scaling={"rope_type": "default", "mrope_section": [2, 1, 1]})
    return {"model_type": "glm4v", "text_config": language, "vision_config": vision("glm4v", attention_bias=False), "vocab_size": VOCABULARY,
            "image_token_index": IMAGE, "video_token_index": VIDEO, "hidden_size": 32, "tie_word_embeddings": False, **GLM_IDS}


def glm4v_moe():
    """GLM-4.5V: experts in all layers but the first, halves of half a head turn against each other."""
    language = text("glm4v_moe_text", rope_theta=10000.0, attention_bias=True, partial_rotary_factor=0.5, head_dim=16, use_qk_norm=False,
                    rope_scaling={"rope_type": "default", "type": "default", "mrope_section": [2, 1, 1]}, moe_intermediate_size=32,
                    n_routed_experts=4, num_experts_per_tok=2, n_shared_experts=1, n_group=1, topk_group=1, norm_topk_prob=True,
                    routed_scaling_factor=1.0, first_k_dense_replace=1, num_nextn_predict_layers=0)
    return {"model_type": "glm4v_moe", "text_config": language, "vision_config": vision("glm4v_moe", attention_bias=False),
            "vocab_size": VOCABULARY, "image_token_index": IMAGE, "video_token_index": VIDEO, "hidden_size": 32,
            "tie_word_embeddings": False, **GLM_IDS}


def glm_ocr():
    language = text("glm_ocr_text", head_dim=16, attention_bias=False, num_nextn_predict_layers=0,
                    rope_parameters={"rope_type": "default", "mrope_section": [2, 3, 3], "partial_rotary_factor": 1.0, "rope_theta": 10000})
    return {"model_type": "glm_ocr", "text_config": language, "vision_config": vision("glm_ocr_vision", attention_bias=True),
            "vocab_size": VOCABULARY, "hidden_size": 32, "tie_word_embeddings": False, **GLM_IDS}


def paddleocr_vl():
    tower = {"model_type": "paddleocr_vl", "hidden_size": 96, "intermediate_size": 80, "num_hidden_layers": 2, "num_attention_heads": 4,
             "num_channels": 3, "image_size": 56, "patch_size": PATCH, "hidden_act": "gelu_pytorch_tanh", "layer_norm_eps": 1e-6,
             "spatial_merge_size": 2}
    return {"model_type": "paddleocr_vl", "vision_config": tower, "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 64,
            "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16, "rms_norm_eps": 1e-5, "vocab_size": VOCABULARY,
            "max_position_embeddings": 4096, "rope_theta": 10000.0, "use_bias": False, "hidden_act": "silu", "tie_word_embeddings": False,
            "rope_scaling": {"rope_type": "default", "type": "default", "mrope_section": [2, 3, 3]}, **IDS}


def images_of(frames):
    """Patches C, T, y, x: in GLM those of a block of 2 x 2 next to each other, in PaddleOCR row after row."""

    def image(numbers, index):
        rows, columns = GRIDS[index % len(GRIDS)]
        tokens = (rows // 2, columns // 2)
        view = View(numbers.pixels(rows * columns, 3 * frames * PATCH * PATCH), columns * PATCH, rows * PATCH, (rows, columns), tokens)
        return Image([view], [START] + [IMAGE] * (tokens[0] * tokens[1]) + [END])

    return image


def given(images, ids):
    if not images:
        return {}
    views = [view for image in images for view in image.views]
    return {"pixel_values": mx.array(np.concatenate([view.pixels for view in views])),
            "image_grid_thw": mx.array([[1, *view.patches] for view in views], dtype=mx.int32)}


def paddle_given(images, ids):
    found = given(images, ids)
    if found:
        found["pixel_values"] = found["pixel_values"].reshape(1, -1, 3, PATCH, PATCH)
    return found


def repair_glm4v():
    """Learned positions are stretched by cubic sampling that repeats the border; mlx-vlm samples linearly with zeros beyond it."""
    from mlx_vlm.models.glm4v import vision
    from mlx_vlm.models.glm4v_moe import vision as vision_of_moe

    def weights(t):
        a = -0.75
        near = lambda x: ((a + 2) * x - (a + 3)) * x * x + 1
        far = lambda x: ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return [far(t + 1), near(t), near(1 - t), far(2 - t)]

    def sample(table, grid):
        height, width = table.shape[1:3]
        x, y = ((grid[0, :, 0, 0] + 1) * width - 1) / 2, ((grid[0, :, 0, 1] + 1) * height - 1) / 2
        left, top = mx.floor(x), mx.floor(y)
        total = 0
        for row, by in enumerate(weights(y - top)):
            for column, bx in enumerate(weights(x - left)):
                at_y = mx.clip(top + row - 1, 0, height - 1).astype(mx.int32)
                at_x = mx.clip(left + column - 1, 0, width - 1).astype(mx.int32)
                total = total + table[0][at_y, at_x] * (by * bx)[:, None]
        return total[None, :, None, :]

    vision.grid_sample = vision_of_moe.grid_sample = sample


def repair_paddle():
    """mlx-vlm's projector writes rows of 1024 numbers whatever the config says."""
    from mlx_vlm.models.paddleocr_vl import vision

    def begin(self, dim, context_dim, spatial_merge_size, plain=vision.PaddleOCRProjector.__init__):
        plain(self, dim, 32, spatial_merge_size)

    vision.PaddleOCRProjector.__init__ = begin


def glm_original(weights):
    """Names as the original repositories have them, and convolutions with the channels second."""
    changed = {}
    for name, value in weights.items():
        short = name.replace("language_model.model.", "model.language_model.").replace("language_model.lm_head", "lm_head")
        short = short.replace("vision_tower.", "model.visual.")
        if name.endswith("patch_embed.proj.weight"):
            value = mx.contiguous(value.transpose(0, 4, 1, 2, 3))
        if name.endswith("downsample.weight"):
            value = mx.contiguous(value.transpose(0, 3, 1, 2))
        changed[short] = value
    return changed


def paddle_original(weights):
    """Names as the original repository has them, with the three projections of attention apart."""
    changed = {}
    for name, value in weights.items():
        name = name.replace("language_model.", "").replace("visual.projector.", "mlp_AR.")
        name = name.replace("visual.layers.", "visual.vision_model.encoder.layers.").replace("visual.embeddings.", "visual.vision_model.embeddings.")
        name = name.replace("visual.post_layernorm.", "visual.vision_model.post_layernorm.")
        if ".self_attn.qkv." in name:
            for part, rows in zip("qkv", mx.split(value, 3, axis=0)):
                changed[name.replace(".qkv.", f".{part}_proj.")] = mx.contiguous(rows)
            continue
        if name.endswith("patch_embedding.weight"):
            value = mx.contiguous(value.transpose(0, 3, 1, 2))
        changed[name] = value
    return changed


CLIP = [0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]
HALF = [0.5] * 3, [0.5] * 3


def row(name, config, kind, look, frames=2, **more):
    processor = {"image_processor_type": kind, "patch_size": PATCH, "temporal_patch_size": frames, "merge_size": 2, "do_resize": True,
                 "size": {"shortest_edge": 12544, "longest_edge": 9633792}, "image_mean": look[0], "image_std": look[1],
                 "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True, "do_convert_rgb": True, "resample": 3}
    more.setdefault("given", given)
    return Row(name, config, images_of(frames), processor=processor, **more)


def glm(name, config, **more):
    tokens = {IMAGE: "<|image|>", VIDEO: "<|video|>", START: "<|begin_of_image|>", END: "<|end_of_image|>"}
    return row(name, config, "Glm4vImageProcessor", CLIP, tokens=tokens, prepare=repair_glm4v, **more)


def paddle(name, **more):
    tokens = {IMAGE: "<|IMAGE_PLACEHOLDER|>", VIDEO: "<|video_pad|>", START: "<|IMAGE_START|>", END: "<|IMAGE_END|>"}
    return row(name, paddleocr_vl(), "PaddleOCRVLImageProcessor", HALF, 1, given=paddle_given, tokens=tokens, prepare=repair_paddle, **more)


ROWS = [
    glm("glm4v", glm4v()),
    glm("glm4v-original", glm4v(), layout=glm_original),
    glm("glm4v-4bit", glm4v(), packed="language", bits=4),
    glm("glm4v-tower8", glm4v(), packed="all"),
    glm("glm4v_moe", glm4v_moe()),
    glm("glm_ocr", glm_ocr()),
    glm("glm_ocr-original", glm_ocr(), layout=glm_original),
    glm("glm_ocr-tower8", glm_ocr(), packed="all"),
    paddle("paddleocr_vl"),
    paddle("paddleocr_vl-original", layout=paddle_original),
    paddle("paddleocr_vl-4bit", packed="language", bits=4),
    paddle("paddleocr_vl-tower8", packed="all"),
]
