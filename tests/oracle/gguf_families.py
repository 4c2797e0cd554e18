"""Small random models of the architectures that `ponder import` knows, as folders and as GGUF files: names of tensors are those of
llama.cpp's own table, metadata and changed numbers those of its converter.

    python gguf_families.py OUT

writes OUT/NAME, OUT/NAME.gguf and OUT/NAME-q8.gguf, whose matrices have 8 bits, and prints the names."""
import json
import math
import sys
from pathlib import Path

import gguf
import mlx.core as mx
import numpy as np

import further_shapes as further
import shapes
from random_model import write_model
from variants import LLAMA3, YARN, Variant, long_factors, rope


def text(config):
    """The text part alone of a model that sees; config.json has no wrapper then."""
    return {"architectures": config["architectures"], "wrapped": config, **config["text_config"]}


# Constants that no file tells stand in the rows of `checkpoint/src/gguf/architecture.rs` as real models have it.
CASES = {
    "llama": ("llama", shapes.llama()),
    "llama-bias": ("llama", shapes.llama(attention_bias=True, mlp_bias=True, head_dim=64, tie_word_embeddings=True)),
    "llama-llama3": ("llama", shapes.llama(**LLAMA3)),
    "llama-linear": ("llama", shapes.llama(**rope("linear", factor=4.0))),
    "llama-yarn": ("llama", shapes.llama(**YARN)),
    "mixtral": ("llama", shapes.mixtral()),
    "ministral3": ("mistral3", shapes.ministral3()),
    "qwen2": ("qwen2", shapes.qwen2()),
    "qwen2-moe": ("qwen2moe", shapes.qwen2_moe(mlp_only_layers=[])),
    "qwen3": ("qwen3", shapes.qwen3(tie_word_embeddings=True)),
    "qwen3-moe": ("qwen3moe", shapes.qwen3_moe(mlp_only_layers=[])),
    "gemma": ("gemma", further.gemma()),
    "gemma2": ("gemma2", further.gemma2(query_pre_attn_scalar=32)),
    "qwen3.5": ("qwen35", text(shapes.qwen3_5(tie_word_embeddings=True))),
    "qwen3.5-even": ("qwen35", text(shapes.qwen3_5(linear_num_key_heads=4))),
    "qwen3.5-moe": ("qwen35moe", text(shapes.qwen3_5_moe())),
    "gemma4-e2b": ("gemma4", shapes.gemma4("gemma4_text")),
    "gemma4-31b": ("gemma4", shapes.gemma4_31b(model_type="gemma4_text")),
    "gemma4-26b": ("gemma4", shapes.gemma4_26b(model_type="gemma4_text")),
    "gemma3": ("gemma3", shapes.gemma3_text(query_pre_attn_scalar=32, sliding_window_pattern=6, num_hidden_layers=7)),
    "phi3": ("phi3", shapes.phi3()),
    "phi3-longrope": ("phi3", shapes.phi3(partial_rotary_factor=0.5, rope_scaling={"type": "longrope", **long_factors(8)})),
    "gpt-oss": ("gpt-oss", shapes.gpt_oss()),
    "glm4": ("glm4", shapes.glm4()),
    "granite": ("granite", shapes.granite()),
    "olmo2": ("olmo2", shapes.olmo2()),
    "olmoe": ("olmoe", shapes.olmoe()),
    "smollm3": ("smollm3", shapes.smollm3()),
    "cohere": ("command-r", further.cohere()),
    "cohere2": ("cohere2", further.cohere2(sliding_window_pattern=4)),
    "starcoder2": ("starcoder2", further.starcoder2(hidden_act="gelu_pytorch_tanh", sliding_window=64)),
    "seed-oss": ("seed_oss", shapes.seed_oss()),
}
# Architectures that the converter turns the rows of queries and keys for.
TURNED = {"llama", "mistral3", "granite", "smollm3"}
# Those whose norms it adds 1 to.
OFFSET = {"gemma", "gemma2", "gemma3"}
ARCHITECTURES = {name: number for number, name in gguf.MODEL_ARCH_NAMES.items()}


# Names that the converter itself gives, and those after which no `weight` follows.
NAMES = {
    "linear_attn.A_log": "ssm_a", "linear_attn.dt_bias": "ssm_dt.bias", "router.scale": "ffn_gate_inp.scale",
    "router.per_expert_scale": "ffn_down_exps.scale", "experts.switch_glu.gate_up_proj.weight": "ffn_gate_up_exps.weight",
    "experts.switch_glu.down_proj.weight": "ffn_down_exps.weight",
}


def name_of(table, name):
    """The name of one of MLX's tensors in GGUF files."""
    layer, part = name.removeprefix("model.layers.").partition(".")[::2]
    if part in NAMES:
        return f"blk.{layer}.{NAMES[part]}"
    stem, end = name.rsplit(".", 1)
    if end not in ("weight", "bias"):
        stem, end = name, "weight"
    experts = stem.replace("switch_mlp", "experts")
    short = experts.replace("gate_proj", "w1").replace("up_proj", "w3").replace("down_proj", "w2")
    found = table.get_name(experts) or table.get_name(short)
    return f"{found}.{end}"


def side_by_side(tensor, heads):
    return tensor.reshape(heads, 2, -1, *tensor.shape[1:]).swapaxes(1, 2).reshape(tensor.shape)


def tiled(tensor, config, start, width, axis=0):
    """The value heads of a delta net: the first ones of all key heads, then the second ones."""
    keys, values = config["linear_num_key_heads"], config["linear_num_value_heads"]
    before, heads = np.split(tensor, [start], axis=axis)
    grouped = np.moveaxis(heads, axis, 0).reshape(keys, values // keys, width, -1).swapaxes(0, 1)
    return np.concatenate([before, np.moveaxis(grouped.reshape(np.moveaxis(heads, axis, 0).shape), 0, axis)], axis=axis)


def delta_net(name, tensor, config):
    """A tensor of a delta net as the converter leaves it."""
    width, part = config["linear_value_head_dim"], name.partition(".linear_attn.")[2].split(".")[0]
    before = 2 * config["linear_num_key_heads"] * config["linear_key_head_dim"]
    if part in ("in_proj_qkv", "conv1d"):
        return tiled(tensor, config, before, width)
    if part in ("in_proj_z", "in_proj_a", "in_proj_b", "A_log", "dt_bias"):
        tensor = tiled(tensor, config, 0, width if part == "in_proj_z" else 1)
    if part == "out_proj":
        tensor = tiled(tensor, config, 0, width, axis=1)
    return -np.exp(tensor) if part == "A_log" else tensor


def joined(tensors):
    """Gates and ups of Gemma 4's experts in one tensor."""
    gate, both = "experts.switch_glu.gate_proj", {}
    for name, tensor in tensors.items():
        if gate in name:
            up = tensors[name.replace("gate_proj", "up_proj")]
            both[name.replace("gate_proj", "gate_up_proj")] = mx.concatenate([tensor, up], axis=-2)
        elif "experts.switch_glu.up_proj" not in name:
            both[name] = tensor
    return both


def add_qwen35(writer, config):
    writer.add_ssm_conv_kernel(config["linear_conv_kernel_dim"])
    writer.add_ssm_state_size(config["linear_key_head_dim"])
    writer.add_ssm_group_count(config["linear_num_key_heads"])
    writer.add_ssm_time_step_rank(config["linear_num_value_heads"])
    writer.add_ssm_inner_size(config["linear_value_head_dim"] * config["linear_num_value_heads"])
    writer.add_full_attention_interval(config["full_attention_interval"])
    writer.add_rope_dimension_sections([*config["rope_parameters"]["mrope_section"], 0])


def add_gemma4(writer, config):
    """What is told beside, and in place, of the fields that all architectures have."""
    layers, shared = config["num_hidden_layers"], config["num_kv_shared_layers"]
    windows = [kind == "sliding_attention" for kind in config["layer_types"]]
    writer.add_shared_kv_layers(shared)
    writer.add_embedding_length_per_layer_input(config["hidden_size_per_layer_input"] or 0)
    writer.add_sliding_window_pattern(windows)
    writer.add_key_length(config["global_head_dim"])
    writer.add_value_length(config["global_head_dim"])
    writer.add_key_length_swa(config["head_dim"])
    writer.add_value_length_swa(config["head_dim"])
    if config["use_double_wide_mlp"]:
        writer.add_feed_forward_length([config["intermediate_size"] * (1 if layer < layers - shared else 2) for layer in range(layers)])
    if full := config["num_global_key_value_heads"]:
        writer.add_head_count_kv([config["num_key_value_heads"] if window else full for window in windows])
    rope = config["rope_parameters"]
    writer.add_rope_freq_base(rope["full_attention"]["rope_theta"])
    writer.add_rope_freq_base_swa(rope["sliding_attention"]["rope_theta"])
    writer.add_rope_dimension_count(config["global_head_dim"])
    writer.add_rope_dimension_count_swa(config["head_dim"])
    pairs = config["global_head_dim"] // 2
    turned = int(pairs * rope["full_attention"]["partial_rotary_factor"])
    writer.add_tensor("rope_freqs.weight", np.array([1.0] * turned + [1e30] * (pairs - turned), np.float32))
    if config["enable_moe_block"]:
        writer.add_expert_used_count(config["top_k_experts"])


def add_rope(writer, config, width):
    """What is written of `rope_scaling`, and tensors that stand for it."""
    scaling = config.get("rope_scaling") or config.get("rope_parameters") or {}
    kind = scaling.get("rope_type", scaling.get("type"))
    if kind in ("linear", "yarn"):
        writer.add_rope_scaling_type(gguf.RopeScalingType(kind))
        writer.add_rope_scaling_factor(scaling["factor"])
    if kind == "yarn":
        writer.add_rope_scaling_orig_ctx_len(scaling["original_max_position_embeddings"])
    if "llama_4_scaling_beta" in scaling:
        writer.add_rope_scaling_yarn_log_mul(scaling["mscale_all_dim"])
        writer.add_attn_temperature_scale(scaling["llama_4_scaling_beta"])
    if kind == "llama3":
        theta, low, high = config.get("rope_theta", 10000.0), scaling["low_freq_factor"], scaling["high_freq_factor"]
        old, factors = scaling["original_max_position_embeddings"], []
        for pair in range(0, width, 2):
            length = 2 * math.pi * theta ** (pair / width)
            if length < old / high:
                factors.append(1.0)
            elif length > old / low:
                factors.append(scaling["factor"])
            else:
                smooth = (old / length - low) / (high - low)
                factors.append(1 / ((1 - smooth) / scaling["factor"] + smooth))
        writer.add_tensor("rope_freqs.weight", np.array(factors, np.float32))
    if kind == "longrope":
        longer = config["max_position_embeddings"] / config["original_max_position_embeddings"]
        writer.add_rope_scaling_attn_factors(math.sqrt(1 + math.log(longer) / math.log(config["original_max_position_embeddings"])))
        writer.add_tensor("rope_factors_long.weight", np.array(scaling["long_factor"], np.float32))
        writer.add_tensor("rope_factors_short.weight", np.array(scaling["short_factor"], np.float32))
    if "original_max_position_embeddings" in config:
        writer.add_rope_scaling_orig_ctx_len(config["original_max_position_embeddings"])


def add_metadata(writer, architecture, config):
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    width = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    partial = config.get("partial_rotary_factor") or config.get("rope_parameters", {}).get("partial_rotary_factor", 1.0)
    if "head_dim" in config:
        writer.add_key_length(width)
        writer.add_value_length(width)
    if theta := config.get("rope_theta") or config.get("rope_parameters", {}).get("rope_theta"):
        writer.add_rope_freq_base(float(theta))
    writer.add_rope_dimension_count(int(width * partial))
    for field, add in (
        ("rms_norm_eps", writer.add_layer_norm_rms_eps), ("layer_norm_eps", writer.add_layer_norm_eps),
        ("norm_epsilon", writer.add_layer_norm_eps), ("sliding_window", writer.add_sliding_window),
        ("attn_logit_softcapping", writer.add_attn_logit_softcapping), ("final_logit_softcapping", writer.add_final_logit_softcapping),
        ("logit_scale", writer.add_logit_scale), ("logits_scaling", writer.add_logit_scale),
        ("embedding_multiplier", writer.add_embedding_scale), ("residual_multiplier", writer.add_residual_scale),
        ("attention_multiplier", writer.add_attention_scale), ("num_experts_per_tok", writer.add_expert_used_count),
        ("moe_intermediate_size", writer.add_expert_feed_forward_length),
        ("shared_expert_intermediate_size", writer.add_expert_shared_feed_forward_length),
    ):
        # The converter writes no window for Qwen, whose configs have one that is switched off.
        if config.get(field) is not None and not (field == "sliding_window" and architecture.startswith("qwen")):
            add(config[field])
    if experts := config.get("num_experts") or config.get("num_local_experts"):
        writer.add_expert_count(experts)
    if architecture == "gpt-oss":
        writer.add_expert_feed_forward_length(config["intermediate_size"])
    if architecture == "gemma4":
        add_gemma4(writer, config)
    elif architecture.startswith("qwen35"):
        add_qwen35(writer, config)
    else:
        add_rope(writer, config, int(width * partial))


def is_matrix(name, tensor):
    """True for what llama.cpp quantizes; routers stay as they are."""
    return tensor.ndim > 1 and tensor.shape[-1] % 32 == 0 and name.endswith("weight") and "ffn_gate_inp" not in name


def write_gguf(path, architecture, config, tensors, quantized=False):
    writer = gguf.GGUFWriter(path, architecture)
    add_metadata(writer, architecture, config)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(["a", "b", "ab"] + [f"t{id}" for id in range(3, config["vocab_size"])])
    writer.add_token_merges(["a b"])
    writer.add_eos_token_id(1)
    writer.add_chat_template("{{ messages[0].content }}")
    table = gguf.get_tensor_name_map(ARCHITECTURES[architecture], config["num_hidden_layers"])
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
    for name, tensor in joined(tensors).items():
        # As the converter leaves out dimensions of 1.
        tensor = np.atleast_1d(np.array(tensor.astype(mx.float32)).squeeze())
        if ".linear_attn." in name:
            tensor = delta_net(name, tensor, config)
        if architecture in TURNED and (count := heads.get(name.split(".")[-2])):
            tensor = side_by_side(tensor, count)
        if architecture in OFFSET and name.endswith("norm.weight"):
            tensor = tensor + np.float32(1)
        tensor, called = np.ascontiguousarray(tensor), name_of(table, name)
        if quantized and is_matrix(called, tensor):
            kind = gguf.GGMLQuantizationType.Q8_0
            writer.add_tensor(called, gguf.quants.quantize(tensor, kind), raw_dtype=kind)
        else:
            writer.add_tensor(called, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    out = Path(sys.argv[1])
    for name, (architecture, config) in CASES.items():
        folder = out / name
        folder.mkdir(parents=True, exist_ok=True)
        write_model(Variant(name, config.get("wrapped", config), headless=name == "gemma3"), folder, 20261121, {"end": 1})
        tensors = mx.load(str(folder / "model.safetensors"))
        if "wrapped" in config:
            tensors = {name.removeprefix("language_model."): tensor for name, tensor in tensors.items()}
            config = {field: value for field, value in config.items() if field != "wrapped"}
            mx.save_safetensors(str(folder / "model.safetensors"), tensors)
            (folder / "config.json").write_text(json.dumps(config))
        config = json.loads((folder / "config.json").read_text())
        write_gguf(out / f"{name}.gguf", architecture, config, tensors)
        write_gguf(out / f"{name}-q8.gguf", architecture, config, tensors, quantized=True)
    print(json.dumps(list(CASES)))


if __name__ == "__main__":
    main()
