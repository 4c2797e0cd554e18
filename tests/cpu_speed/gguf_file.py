"""A model's tensors, by their names in MLX's folders, as a GGUF file."""
import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf import GGUFWriter

ARCHITECTURES = {"llama": "llama", "qwen3": "qwen3", "qwen3_moe": "qwen3moe"}
TOP = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
LAYER = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "mlp.gate": "ffn_gate_inp",
    "mlp.switch_mlp.gate_proj": "ffn_gate_exps",
    "mlp.switch_mlp.up_proj": "ffn_up_exps",
    "mlp.switch_mlp.down_proj": "ffn_down_exps",
}
# Weights of a block.
BLOCK = 32


def name_of(path):
    path = path.removesuffix(".weight")
    if path in TOP:
        return TOP[path] + ".weight"
    _, _, number, part = path.split(".", 3)
    return f"blk.{number}.{LAYER[part]}.weight"


def bytes_of(numbers):
    """The bytes of 16 bit floats, one for each block, whose groups may be of several."""
    return np.ascontiguousarray(numbers)[..., None].view(np.uint8)


def blocks(packed):
    """Codes as blocks: Q4_0 and Q4_1 have the first half of a block in the low halves of its bytes."""
    codes = packed.codes.reshape(*packed.codes.shape[:-1], -1, BLOCK)
    repeat = codes.shape[-2] // packed.scales.shape[-1]
    scales, biases = (np.repeat(numbers, repeat, axis=-1) for numbers in (packed.scales, packed.biases))
    if packed.bits == 8:
        kind, parts = Type.Q8_0, [bytes_of(scales), codes ^ 0x80]
    else:
        halves = codes[..., : BLOCK // 2] | codes[..., BLOCK // 2 :] << 4
        if np.array_equal(biases, scales * np.float16(-8)):
            kind, parts = Type.Q4_0, [bytes_of(scales), halves]
        else:
            kind, parts = Type.Q4_1, [bytes_of(scales), bytes_of(biases), halves]
    joined = np.concatenate(parts, axis=-1)
    return kind, joined.reshape(*joined.shape[:-2], -1)


def side_by_side(tensor, heads):
    """Rows of queries or keys with the two halves of a head's rotation side by side, as llama.cpp turns Llama's."""
    return tensor.reshape(heads, 2, -1, tensor.shape[-1]).swapaxes(1, 2).reshape(tensor.shape)


def add_shapes(writer, config):
    """The sizes that every decoder has."""
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_vocab_size(config["vocab_size"])
    # Ids are measured, not text.
    writer.add_tokenizer_model("none")
    if experts := config.get("num_experts") or config.get("num_local_experts"):
        writer.add_expert_count(experts)
        writer.add_expert_used_count(config["num_experts_per_tok"])
        writer.add_expert_feed_forward_length(config.get("moe_intermediate_size", config["intermediate_size"]))


def write(path, name, config, tensors):
    writer = GGUFWriter(path, ARCHITECTURES[config["model_type"]])
    writer.add_name(name)
    add_shapes(writer, config)
    writer.add_rope_dimension_count(config["head_dim"])
    turned = {}
    if config["model_type"] == "llama":
        turned = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
    for key, tensor in tensors.items():
        heads = turned.get(key.split(".")[-2])
        if not isinstance(tensor, np.ndarray):
            kind, tensor = blocks(tensor)
        elif tensor.ndim == 1 or key.endswith("mlp.gate.weight"):
            kind, tensor = Type.F32, tensor.astype(np.float32)
        else:
            kind = Type.F16 if tensor.dtype == np.float16 else Type.F32
        writer.add_tensor(name_of(key), side_by_side(tensor, heads) if heads else tensor, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
