"""Gemma 3n: MobileNet v5, a network of convolutions and attention over a grid, and a language part of several streams."""
import mlx.core as mx
import mlx.nn as nn
import numpy as np

from vision_rows.row import AUDIO, END, IMAGE, START, VOCABULARY, Image, Row, View

SIDE, TOKENS = 96, 2
# The mark that closes an image, and one more, have embeddings in the tower's width.
FIRST_MARK, MARKS = END, 2
# The tower is 96 wide and its stages less; the real one's are 128, 256, 640 and 1280, and it is 2048.
STAGES, FEATURES = [32, 48, 64, 80], 96


def config():
    text = {"model_type": "gemma3n_text", "hidden_size": 32, "num_hidden_layers": 6, "intermediate_size": [64] * 6,
            "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 32, "rms_norm_eps": 1e-6, "vocab_size": VOCABULARY,
            "vocab_size_per_layer_input": IMAGE, "laurel_rank": 32, "altup_num_inputs": 3, "altup_active_idx": 0,
            "altup_coef_clip": 120.0, "altup_correct_scale": True, "hidden_size_per_layer_input": 32, "num_kv_shared_layers": 2,
            "sliding_window": 16, "layer_types": ["sliding_attention", "full_attention"] * 3, "rope_local_base_freq": 1e4,
            "rope_theta": 1e6, "rope_scaling": None, "final_logit_softcapping": 30.0, "activation_sparsity_pattern": [0.8, 0.8, 0.0, 0.0, 0.0, 0.0],
            "max_position_embeddings": 4096}
    vision = {"model_type": "gemma3n_vision", "architecture": "mobilenetv5_300m_enc", "hidden_size": FEATURES, "vocab_size": MARKS,
              "vocab_offset": FIRST_MARK, "rms_norm_eps": 1e-6}
    audio = {"hidden_size": 48, "conf_num_hidden_layers": 1, "conf_num_attention_heads": 2, "vocab_size": 8, "vocab_offset": VOCABULARY - 8,
             "sscp_conv_channel_size": [8, 4]}
    return {"model_type": "gemma3n", "text_config": text, "vision_config": vision, "audio_config": audio, "image_token_id": IMAGE,
            "audio_token_id": AUDIO, "boi_token_id": START, "eoi_token_id": END, "vision_soft_tokens_per_image": TOKENS * TOKENS,
            "vocab_size": VOCABULARY, "hidden_size": 32}


PROCESSOR = {"image_processor_type": "SiglipImageProcessorFast", "do_resize": True, "do_rescale": True, "rescale_factor": 1 / 255,
             "do_normalize": False, "image_mean": None, "image_std": None, "resample": 2, "size": {"height": SIDE, "width": SIDE}}


def image(numbers, _):
    # Real pixels lie from 0 to 1.
    pixels = 1 / (1 + np.exp(-numbers.pixels(3, SIDE, SIDE)))
    grid = (TOKENS, TOKENS)
    return Image([View(pixels, SIDE, SIDE, grid, grid)], [START] + [IMAGE] * (TOKENS * TOKENS) + [END])


def given(images, _):
    if not images:
        return {}
    return {"pixel_values": mx.array(np.stack([view.pixels for one in images for view in one.views]))}


# ------------------------------------------------------------------------------------------------------- the tower, as timm has it

def convolved(x, conv):
    """Zeros as TensorFlow adds them: one more after than before if they are odd in number."""
    stride, side = conv.stride[0], conv.weight.shape[1]
    zeros = max((-(-x.shape[1] // stride) - 1) * stride + side - x.shape[1], 0)
    pad = (zeros // 2, zeros - zeros // 2)
    made = mx.conv2d(mx.pad(x, [(0, 0), pad, pad, (0, 0)]), conv.weight, stride, groups=x.shape[-1] // conv.weight.shape[-1])
    return made + conv.bias if "bias" in conv else made


def normed(x, norm):
    return x * mx.rsqrt(mx.mean(x * x, axis=-1, keepdims=True) + 1e-6) * norm.weight


def present(module):
    return not isinstance(module, nn.Identity)


def edge(x, block):
    wide = nn.gelu_approx(normed(convolved(x, block.conv_exp), block.bn1))
    return normed(convolved(wide, block.conv_pwl), block.bn2)


def inverted(x, block):
    if present(block.dw_start):
        x = normed(convolved(x, block.dw_start.conv), block.dw_start.bn)
    x = nn.gelu_approx(normed(convolved(x, block.pw_exp.conv), block.pw_exp.bn))
    if present(block.dw_mid):
        x = nn.gelu_approx(normed(convolved(x, block.dw_mid.conv), block.dw_mid.bn))
    x = normed(convolved(x, block.pw_proj.conv), block.pw_proj.bn)
    return x * block.layer_scale.gamma if present(block.layer_scale) else x


def attended(x, block):
    attn, y = block.attn, normed(x, block.norm)

    def reduced(part):
        z = normed(convolved(y, part.down_conv), part.norm) if "down_conv" in part else y
        return convolved(z, part.proj).reshape(1, 1, -1, part.proj.weight.shape[0])

    keys, values = reduced(attn.key), reduced(attn.value)
    queries = convolved(y, attn.query.proj).reshape(1, -1, attn.num_heads, attn.key_dim).swapaxes(1, 2)
    found = mx.softmax(queries * attn.key_dim**-0.5 @ keys.swapaxes(2, 3), axis=-1) @ values
    found = found.swapaxes(1, 2).reshape(1, *x.shape[1:3], -1)
    return x + convolved(found, attn.output.proj) * block.layer_scale.gamma


def tower(network, pixels):
    """Features `[images, TOKENS * TOKENS, FEATURES]`, row by row."""
    from mlx_vlm.models.gemma3n import vision

    made = []
    for one in pixels:
        x = one.transpose(1, 2, 0)[None]
        x = nn.gelu_approx(normed(convolved(x, network.conv_stem.conv), network.conv_stem.bn))
        joined = []
        for stage in network.blocks:
            for block in stage:
                if isinstance(block, vision.MobileAttention):
                    x = attended(x, block)
                    continue
                y = edge(x, block) if isinstance(block, vision.EdgeResidual) else inverted(x, block)
                x = x + y if x.shape == y.shape else y
            joined.append(x)
        high, low = joined[-2:]
        times = high.shape[1] // low.shape[1]
        low = mx.repeat(mx.repeat(low, times, axis=1), times, axis=2)
        x = inverted(mx.concatenate([high, low], axis=-1), network.msfa.ffn)
        share = x.shape[1] // TOKENS
        x = x.reshape(1, TOKENS, share, TOKENS, share, -1).mean(axis=(2, 4))
        made.append(normed(x, network.msfa.norm).reshape(1, TOKENS * TOKENS, -1))
    return mx.concatenate(made)


# -------------------------------------------------------------------------------------------------------------- the language part

def repair():
    """mlx-vlm's tower differs from timm's in its GELU, its epsilon and the zeros of convolutions with a stride, and its features come column by column; its
    language part takes embeddings beside images without their factor, and layers that share keys turn their queries at the wrong places, or have
    keys of their own if there is no cache. All of it is computed here as transformers 5.23 with timm 1.0.31 does."""
    from mlx_vlm.models.gemma3n import gemma3n, language, vision

    if hasattr(vision, "repaired"):
        return
    vision.repaired = True

    def network():
        first, second, third, fourth = STAGES
        return [[vision._er(3, first, 2), vision._er(3, first, 1)], [vision._uir(3, 5, second, 2, 2.0), vision._uir(5, 0, second, 1, 1.5)],
                [vision._uir(5, 5, third, 2, 2.0), vision._mmqa(3, 16, 2), vision._uir(0, 0, third, 1, 2.0, is_multiscale=True)],
                [vision._uir(5, 5, fourth, 2, 1.0), vision._mmqa(2, 24, 1), vision._uir(0, 0, fourth, 1, 1.0, is_multiscale=True)]]

    plain = vision.MobileNetV5MultiScaleFusionAdapter.__init__

    def fusion(self, in_chs, out_chs, **more):
        plain(self, in_chs=[sum(STAGES[-2:])], out_chs=FEATURES, **more)

    vision.gemma3n_mobilenet_def = network
    vision.MobileNetV5MultiScaleFusionAdapter.__init__ = fusion
    shared = {}

    def attend(self, x, mask=None, cache=None):
        heads = lambda part: part.reshape(*x.shape[:2], -1, self.head_dim)
        turned = lambda part: self.rope(part.swapaxes(1, 2), offset=0)
        if not self.is_kv_shared_layer:
            values = self.v_norm(heads(self.v_proj(x))).swapaxes(1, 2)
            shared[self.is_sliding] = (turned(self.k_norm(heads(self.k_proj(x)))), values)
        keys, values = shared[self.is_sliding]
        queries = turned(self.q_norm(heads(self.q_proj(x))))
        found = mx.fast.scaled_dot_product_attention(queries, keys, values, scale=1.0, mask=mask)
        return self.o_proj(found.swapaxes(1, 2).reshape(*x.shape[:2], -1))

    def call(self, input_ids, pixel_values=None, **_):
        text = self.language_model.model
        h = text.embed_tokens(input_ids) * text.hidden_size**0.5
        inputs = text.get_per_layer_inputs(input_ids)
        marks = input_ids - FIRST_MARK
        is_mark = (marks >= 0) & (marks < MARKS)
        h = mx.where(is_mark[..., None], self.embed_vision(input_ids=mx.where(is_mark, input_ids, FIRST_MARK)), h)
        if pixel_values is not None:
            features = tower(self.vision_tower.timm_model, pixel_values) * FEATURES**0.5
            features = self.embed_vision(inputs_embeds=features).reshape(-1, h.shape[-1])
            is_feature = (input_ids == IMAGE)[0]
            places = mx.maximum(mx.cumsum(is_feature.astype(mx.int32)) - 1, 0)
            h = mx.where(is_feature[:, None], features[places], h[0])[None]
        return self.language_model(None, inputs_embeds=h, per_layer_inputs=inputs)

    language.Gemma3nAttention.__call__ = attend
    gemma3n.Model.__call__ = call


def original(weights):
    """Names and layouts as transformers writes them."""
    changed = {}
    for name, value in weights.items():
        short = "model." + name.replace("language_model.model.", "language_model.")
        changed[short] = mx.contiguous(value.transpose(0, 3, 1, 2)) if "timm_model" in name and value.ndim == 4 else value
    return changed


def row(name, **more):
    tokens = {IMAGE: "<image_soft_token>", START: "<start_of_image>", END: "<end_of_image>", AUDIO: "<audio_soft_token>"}
    return Row(name, config(), image, given, tokens=tokens, processor=PROCESSOR, prepare=repair, **more)


ROWS = [
    row("gemma3n"),
    row("gemma3n-original", layout=original),
    row("gemma3n-4bit", packed="language", bits=4),
    row("gemma3n-tower8", packed="all"),
]
