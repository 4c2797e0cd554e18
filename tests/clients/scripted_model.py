"""Writes a model with a context of 131,072 tokens and scripted answers: real weights, but each token has one successor, and the prompt's
last token decides the start. It answers agents whose prompts do not fit Pebble, with Pebble's tokenizer and template.

    scripted_model.py FOLDER PEBBLE SCRIPT    where SCRIPT is {"question": [pieces], "result": [pieces]}: what is said to a question and to a
                                              tool's result; a piece is a token of its own, whatever its text"""
import json
import shutil
import struct
import sys
from pathlib import Path

WIDTH, HEADS = 64, 1
TURN_END, AFTER_RESULT = "<turn|>", "<tool_response|>"


def tokens_of(tokenizer, script):
    """The id of each piece; pieces that are no token become one."""
    ids = {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
    free = len(tokenizer["model"]["vocab"])
    for piece in [piece for pieces in script.values() for piece in pieces]:
        if piece not in ids:
            ids[piece] = free
            flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
            tokenizer["added_tokens"].append({"id": free, "content": piece} | flags)
            free += 1
    return ids, free


def weights(ids, vocabulary, script):
    """Each state is a direction: a token leads to its state, and a state to its next token."""
    states, after = {AFTER_RESULT: "result"}, {"question": script["question"][0], "result": script["result"][0]}
    for name, pieces in script.items():
        for piece, following in zip(pieces, [*pieces[1:], TURN_END]):
            assert piece not in states, f"{piece!r} cannot be followed by two"
            states[piece], after[f"after {piece}"] = f"after {piece}", following
    directions = {state: number for number, state in enumerate(after)}
    assert len(directions) < WIDTH
    embedding, output = bytearray(vocabulary * WIDTH * 4), bytearray(vocabulary * WIDTH * 4)

    def put(matrix, row, column, value):
        struct.pack_into("<f", matrix, (row * WIDTH + column) * 4, value)

    by_id = {ids[piece]: state for piece, state in states.items()}
    for token in range(vocabulary):
        put(embedding, token, directions[by_id.get(token, "question")], 1.0)
    for state, following in after.items():
        put(output, ids[following], directions[state], 10.0)
    square, norm = bytes(WIDTH * WIDTH * 4), struct.pack("<f", 1.0) * WIDTH
    layer = "model.layers.0."
    named = {"model.embed_tokens.weight": ((vocabulary, WIDTH), bytes(embedding)), "lm_head.weight": ((vocabulary, WIDTH), bytes(output)),
             "model.norm.weight": ((WIDTH,), norm)}
    for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
        named[f"{layer}self_attn.{name}.weight"] = ((WIDTH, WIDTH), square)
    for name in ("gate_proj", "up_proj", "down_proj"):
        named[f"{layer}mlp.{name}.weight"] = ((WIDTH, WIDTH), square)
    for name in ("input_layernorm", "post_attention_layernorm"):
        named[f"{layer}{name}.weight"] = ((WIDTH,), norm)
    return named


def save(path, named):
    header, offset = {}, 0
    for name, (shape, data) in named.items():
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data for _, data in named.values()))


def write(folder, pebble, script):
    folder, pebble = Path(folder), Path(pebble)
    folder.mkdir(parents=True)
    tokenizer = json.loads((pebble / "tokenizer.json").read_text())
    ids, vocabulary = tokens_of(tokenizer, script)
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    shutil.copy(pebble / "chat_template.jinja", folder)
    settings = json.loads((pebble / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | {"model_max_length": 131072}))
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": WIDTH, "intermediate_size": WIDTH, "num_hidden_layers": 1,
        "num_attention_heads": HEADS, "num_key_value_heads": HEADS, "head_dim": WIDTH, "vocab_size": vocabulary, "max_position_embeddings": 131072,
        "rms_norm_eps": 1e-6, "rope_theta": 1e6, "hidden_act": "silu", "tie_word_embeddings": False, "bos_token_id": 2, "eos_token_id": [1, 106],
        "dtype": "float32",
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [1, 106], "do_sample": False, "temperature": 0.0}))
    save(folder / "model.safetensors", weights(ids, vocabulary, script))


if __name__ == "__main__":
    write(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))
