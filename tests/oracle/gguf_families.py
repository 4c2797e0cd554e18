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


def name_of(table, name):
    """The name of one of MLX's tensors in GGUF files."""
    stem, end = name.rsplit(".", 1)
    if end not in ("weight", "bias"):
        stem, end = name, "weight"
    experts = stem.replace("switch_mlp", "experts")
    short = experts.replace("gate_proj", "w1").replace("up_proj", "w3").replace("down_proj", "w2")
    found = table.get_name(experts) or table.get_name(short)
    return f"{found}.{end}"


def side_by_side(tensor, heads):
    return tensor.reshape(heads, 2, -1, *tensor.shape[1:]).swapaxes(1, 2).reshape(tensor.shape)


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
    if "head_dim" in config:
        writer.add_key_length(width)
        writer.add_value_length(width)
    if theta := config.get("rope_theta") or config.get("rope_parameters", {}).get("rope_theta"):
        writer.add_rope_freq_base(float(theta))
    writer.add_rope_dimension_count(int(width * config.get("partial_rotary_factor", 1.0)))
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
    add_rope(writer, config, int(width * config.get("partial_rotary_factor", 1.0)))


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
    for name, tensor in tensors.items():
        # As the converter leaves out dimensions of 1.
        tensor = np.array(tensor.astype(mx.float32)).squeeze()
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
        write_model(Variant(name, config, headless=name == "gemma3"), folder, 20261121, {"end": 1})
        config = json.loads((folder / "config.json").read_text())
        tensors = mx.load(str(folder / "model.safetensors"))
        write_gguf(out / f"{name}.gguf", architecture, config, tensors)
        write_gguf(out / f"{name}-q8.gguf", architecture, config, tensors, quantized=True)
    print(json.dumps(list(CASES)))


if __name__ == "__main__":
    main()
