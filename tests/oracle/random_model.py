"""Random weights of a model's shapes, written as a repository has them."""
import copy
import json
import math

import mlx.core as mx
from mlx.utils import tree_flatten, tree_map_with_path
from mlx_lm.utils import quantize_model

from layouts import packed_blocks
from oracle import model_classes

# Above 1, so that what layers add outweighs the embedding and a tied model does more than repeat its input.
GAIN = 1.6
LOGIT_SPREAD = 4.0
# Embeddings of tokens and of positions by the names that families have for them.
TABLES = ("embed_tokens", ".embedders.", "model.embeddings", "tok_embeddings", "token_embeddings", "wte", "wpe", "embed.weight", "word_embeddings", ".embedding.weight", ".ngram_embedding.")
# Numbers that no training changes.
CONSTANTS = ("act_fn.beta", "act_fn.eps")
# Families whose norms are stored as their difference from 1.
OFFSET = ("gear", "gemma", "gemma2", "gemma3", "gemma3_text", "minimax_m3", "minimax_m3_vl", "nemotron", "plamo2", "plamo3", "qwen4_exp", "recurrent_gemma")


def embedding_factor(config):
    """The factor that the model applies to its embedding."""
    if config["model_type"].startswith(("gear", "gemma", "recurrent_gemma")) or config.get("mup_enabled"):
        return math.sqrt(config["hidden_size"])
    names = ("embedding_multiplier", "scale_emb", "mup_embedding_multiplier", "embedding_scale")
    return next((config[name] for name in names if config.get(name)), 1.0)


def draw(name, shape, offset, factor, sharp):
    """Random numbers that suit a weight: `offset` is what a norm's weight is counted from, `factor` the embedding's, and
    `sharp` that attention divides scores by nothing, so that queries and keys have to be small."""
    noise = mx.random.normal(shape)
    if name.endswith(("layer_scalar", "linear_attn.norm.weight")):
        return 1.0 + 0.2 * noise
    if name.endswith("weight_scale"):
        return 0.15 * (1.0 + 0.2 * noise)
    if name.endswith(("quant_key_scale", "quant_value_scale")):
        # Steps so small that one which is rounded to the other side changes no logit by much.
        return (0.002 if "key" in name else 0.0004) * (1.0 + 0.2 * noise)
    if name.endswith("z_L_init"):
        return noise
    if name.endswith("embed_skip.a_g"):
        return 0.3 * noise
    if name.endswith(("head_g", "a_g", "w_g")):
        return 1.0 + 0.2 * noise
    if name.endswith(("alpha_p", "alpha_n")):
        return 0.5 * noise
    if name.endswith(("norm_weight", "q_weight", "k_weight")):
        return 1.0 + 0.2 * noise
    if name.endswith(("conv_k", "conv_v")):
        return 0.7 * noise
    if name.endswith(("hc_scale", "hc_head_scale", "_hc.scale", "hc_head.scale")):
        return 1.0 + 0.2 * noise
    if name.endswith(("hc_base", "hc_head_base", "_hc.base", "hc_head.base", ".ape")):
        return 0.5 * noise
    if name.endswith("A_log"):
        return mx.log(mx.random.uniform(1.0, 8.0, shape))
    if name.endswith("recurrent_param"):
        # Units that forget within some tokens.
        return noise - 3.0
    if name.endswith(("sinks", "learnable_sink_param", "attn_sink")) or name.endswith("dt_bias") or name.endswith(".D"):
        return noise
    if name.endswith(("e_score_correction_bias", "expert_bias", "router_bias")):
        # Never below 0, what left out groups count as: which of them would win is anybody's choice.
        return 0.1 * mx.abs(noise)
    if name.endswith("per_expert_scale") or name.endswith("router.scale"):
        return 1.0 + 0.2 * noise
    if name.endswith(("k_k", "k_a", "r_k", "g_norm.weight")):
        return 1.0 + 0.2 * noise
    if name.endswith(("x_r", "x_w", "x_k", "x_v", "x_a", "x_g")):
        return 0.5 + 0.3 * noise
    if name.endswith("bias"):
        return 0.3 * noise
    if len(shape) == 1:
        assert "norm" in name or "ln_" in name or ".ln." in name, f"what is {name}?"
        # The norm before an output layer makes up for an embedding with small weights.
        scale = factor if name.endswith(("model.norm.weight", "final_layernorm.weight")) else 2.0 if "post_" in name else 1.0
        if sharp and name.endswith(("q_norm.weight", "k_norm.weight")):
            scale = 1.2 * shape[0] ** -0.25
        return scale * (1.0 + 0.2 * noise) - offset
    if "conv" in name:
        return noise / math.sqrt(shape[1])
    if any(table in name for table in TABLES):
        return 0.5 * noise / factor
    if name.startswith("lm_head") or name.endswith("lm_head.weight"):
        return LOGIT_SPREAD * noise / math.sqrt(shape[-1])
    gain = 1.0 if name.endswith(("q_proj.weight", "k_proj.weight")) else GAIN
    return gain * noise / math.sqrt(shape[-1])


def ternary(shape):
    """Bytes with four of 0, 1 and 2 each, which stand for -1, 0 and 1."""
    quarters = (mx.random.randint(0, 3, shape) * 4**place for place in range(4))
    return sum(quarters).astype(mx.uint8)


def mixed(path, module):
    """Some layers in other bits, some not at all, as files that were quantized with care have it."""
    if not hasattr(module, "to_quantized"):
        return False
    if "layers.0.self_attn.v_proj" in path or path.endswith("lm_head"):
        return {"group_size": 32, "bits": 8}
    return "layers.1.mlp" not in path and "layers.2.self_attn.q_proj" not in path


def only_experts(path, module):
    return hasattr(module, "to_quantized") and ".mlp.experts." in path


def write_weights(weights, folder, variant):
    """One file, or several with or without an index."""
    metadata = {"format": "mlx"}
    if variant.shards == 1:
        mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata)
        return
    names = sorted(weights)
    places = {}
    for shard in range(variant.shards):
        file = f"model-{shard + 1:05}-of-{variant.shards:05}.safetensors"
        part = names[shard :: variant.shards]
        mx.save_safetensors(str(folder / file), {name: weights[name] for name in part}, metadata)
        places.update(dict.fromkeys(part, file))
    if variant.index:
        index = {"metadata": {"total_size": sum(value.nbytes for value in weights.values())}, "weight_map": places}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=1))


def write_model(variant, folder, seed, special):
    """Writes config.json and the weights of a variant."""
    mx.random.seed(seed)
    config = {**copy.deepcopy(variant.config), "eos_token_id": special["end"], "dtype": variant.dtype}
    model_class, args_class = model_classes(config)
    model = model_class(args_class.from_dict(copy.deepcopy(config)))
    if variant.headless:
        text = getattr(model, "language_model", model)
        text.pop("lm_head")
        text.tie_word_embeddings = True
    factor = embedding_factor(config.get("text_config", config))
    sharp = config["model_type"].startswith("gemma4")
    counted = config["model_type"] in OFFSET and config.get("text_config", config).get("use_gemma_norm", True)
    offset = 1.0 if counted else 0.0
    dtype = getattr(mx, variant.dtype)
    tied = not any("lm_head" in name for name, _ in tree_flatten(model.parameters()))
    keep = getattr(model, "cast_predicate", lambda name: True)

    def fill(name, old):
        if name.endswith(CONSTANTS):
            return old.astype(dtype)
        if old.dtype == mx.uint8:
            return ternary(old.shape)
        if old.dtype == mx.int64:
            # Factors of a hash.
            return old
        if name.endswith("tid2eid"):
            # Experts of a token, none twice.
            order = mx.argsort(mx.random.uniform(shape=(old.shape[0], config["n_routed_experts"])), axis=-1)
            return order[:, : old.shape[1]].astype(old.dtype)
        made = draw(name, old.shape, offset, factor if tied or "embed" in name else 1.0, sharp)
        return made.astype(dtype) if keep(name) else made

    model.update(tree_map_with_path(fill, model.parameters()))
    if quantization := variant.quantization:
        predicate = None
        if quantization.mixed:
            predicate = only_experts if variant.config["model_type"] == "gpt_oss" else mixed
        modules = dict(model.named_modules())
        model, config = quantize_model(
            model, config, quantization.group, quantization.bits, mode=quantization.mode, quant_predicate=predicate
        )
        if predicate is mixed:
            # Files of some quantizers say what was left as it is.
            left = [path for path, module in modules.items() if hasattr(module, "to_quantized") and not mixed(path, module)]
            config["quantization"] |= dict.fromkeys(left, False)
    if packed_blocks in variant.layout:
        del config["quantization"]
        config["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]}
    weights = dict(tree_flatten(model.parameters()))
    for change in variant.layout:
        weights = change(weights)
    for tower in variant.towers:
        weights[f"{tower}.encoder.layers.0.self_attn.q_proj.linear.weight"] = mx.random.normal((32, 32)).astype(dtype)
    write_weights(weights, folder, variant)
    (folder / "config.json").write_text(json.dumps(config, indent=1))
