"""GGUF files for the tests of `ponder import`, written by llama.cpp's own Python, and what must come of them.

    python gguf_files.py tokenizer FOLDER PRE OUT   a small model with the tokenizer of a folder, as llama.cpp converts it
    python gguf_files.py texts FOLDER IMPORTED      tokens of many texts by both tokenizers; prints the first difference
    python gguf_files.py tensors GGUF IMPORTED      every tensor of a Llama against what MLX itself reads of the file
"""
import json
import random
import sys
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter, TokenType
from gguf.quants import quantize
from tokenizers import Tokenizer

HIDDEN, HEADS, WIDTH = 64, 2, 96
TEXTS = [
    "", " ", "  ", "Hello, world!", "What is the capital of France?", "I'm sure they'll've gone; it's 12:30:45.", "DON'T SHOUT 'LL",
    "1234567890 3.14159 007 1,000,000", "a  b   c    d\n\n\ne\t\tf \r\n g", "    def f(x):\n        return x ** 2  # comment\n",
    "ÄÖÜ ß straße é e\u0301 ñ n\u0303 Å A\u030a", "日本語のテキスト、カタカナ。漢字かな交じり文", "中文字符测试，标点符号！", "한국어 텍스트 ㄱㄴㄷ",
    "Привет, мир! Это тест.", "العربية مع أرقام ١٢٣", "हिन्दी में परीक्षण", "ไทยทดสอบ", "👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪 😀😀😀", "\u200b\u00a0\u2028\ufeff|",
    "HTTPServer getURLForID camelCaseWords XMLHttpRequest", "https://example.com/a/b?c=d&e=f#g", "foo/bar//baz\\qux", "<table><tr></tr></table>",
    "{\"key\": [1, 2, {\"a\": null}]}", "$E = mc^2$ \\frac{a}{b}", "~!@#$%^&*()_+`-={}|[]\\:\";'<>?,./", "…—–“”‘’«»", "a\u0000b\u0001c", "\n", "\n\n", " \n ", "▁▁ a▁b",
    "x" * 50, "ab" * 40, "9" * 20, " " * 17 + "x", "\t" * 5 + "y", "Ⅷ ½ ² ₃ ①", "ǅ ǈ ʰ ª", "<0x41> <0x0A>",
]


def texts(count=5000):
    chosen, letters = random.Random(20261121), list("abcXYZ  \n\t'’.,!?0123456789-_/\\äßéñ日本語中文한국Привет😀👩‍👧\u0301\u00a0ग्अ")
    words = " ".join(TEXTS).split(" ")
    yield from TEXTS
    for _ in range(count):
        yield "".join(chosen.choices(letters, k=chosen.randint(1, 40)))
        yield " ".join(chosen.choices(words, k=chosen.randint(1, 12)))


def write_tokenizer(folder, pre, out):
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    config = json.loads((folder / "tokenizer_config.json").read_text())
    model, added = tokenizer["model"], {token["id"]: token for token in tokenizer["added_tokens"]}
    by_id = {id: text for text, id in model["vocab"].items()} | {id: token["content"] for id, token in added.items()}
    writer = GGUFWriter(out, "llama")
    tokens, kinds, scores, ranks, pieces = [], [], [], {}, pre in ("spm", "gemma4")
    for rank, merge in enumerate(model["merges"]):
        ranks.setdefault("".join(merge.split(" ") if isinstance(merge, str) else merge), rank)
    for id in range(max(by_id) + 1):
        text, kind = by_id.get(id, f"[PAD{id}]"), TokenType.NORMAL if id in by_id else TokenType.UNUSED
        if id in added:
            kind = TokenType.CONTROL if added[id]["special"] else TokenType.USER_DEFINED
            if pre == "spm" and kind == TokenType.USER_DEFINED:
                text = text.replace("▁", " ")
        if pieces and text == model["unk_token"]:
            kind = TokenType.UNKNOWN
        elif pieces and len(text) == 6 and text.startswith("<0x"):
            kind = TokenType.BYTE
        tokens.append(text)
        kinds.append(kind)
        # The order of merges is that of SentencePiece's scores.
        rank = float(-ranks.get(text, len(ranks) + id))
        scores.append(rank if kind == TokenType.NORMAL else -1000.0 if kind == TokenType.USER_DEFINED else 0.0)
    if pre == "spm":
        writer.add_tokenizer_model("llama")
        writer.add_token_scores(scores)
        first = tokenizer["normalizer"].get("normalizers", [{}])[0]
        writer.add_add_space_prefix(first.get("type") == "Prepend")
    else:
        writer.add_tokenizer_model("gemma4" if pieces else "gpt2")
        writer.add_tokenizer_pre(pre)
        pairs = [merge.split(" ") if isinstance(merge, str) else merge for merge in model["merges"]]
        writer.add_token_merges([" ".join(pair) for pair in pairs])
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    named = lambda key: (token if isinstance(token := config.get(key), str) else (token or {}).get("content"))
    for role, add in (("bos", writer.add_bos_token_id), ("eos", writer.add_eos_token_id), ("unk", writer.add_unk_token_id)):
        if named(role + "_token") in tokens:
            add(tokens.index(named(role + "_token")))
    # As the converter finds it in the original.
    writer.add_add_bos_token(bool(Tokenizer.from_file(str(folder / "tokenizer.json")).encode("").ids))
    writer.add_chat_template("{% for message in messages %}{{ message.content }}{% endfor %}")
    write_model(writer, len(tokens))


def write_model(writer, vocabulary):
    """The tensors of a small Llama with random numbers."""
    made = np.random.default_rng(20261121)
    writer.add_context_length(128)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(1)
    writer.add_feed_forward_length(WIDTH)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    add = lambda name, *shape: writer.add_tensor(
        name, quantize(made.standard_normal(shape, dtype=np.float32), kind := GGMLQuantizationType.Q8_0), raw_dtype=kind
    )
    add("token_embd.weight", vocabulary, HIDDEN)
    for part in ("q", "k", "v", "output"):
        add(f"blk.0.attn_{part}.weight", HIDDEN, HIDDEN)
    add("blk.0.ffn_gate.weight", WIDTH, HIDDEN)
    add("blk.0.ffn_up.weight", WIDTH, HIDDEN)
    add("blk.0.ffn_down.weight", HIDDEN, WIDTH)
    for name in ("blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"):
        writer.add_tensor(name + ".weight", np.ones(HIDDEN, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def compare_texts(folder, imported):
    original, made = (Tokenizer.from_file(str(path / "tokenizer.json")) for path in (folder, imported))
    count = 0
    for text in texts():
        for framed in (False, True):
            pair = [tokenizer.encode(text, add_special_tokens=framed).ids for tokenizer in (original, made)]
            if pair[0] != pair[1]:
                print(json.dumps({"text": text, "framed": framed, "original": pair[0], "imported": pair[1]}))
                return
        pair = [tokenizer.decode(original.encode(text).ids, skip_special_tokens=False) for tokenizer in (original, made)]
        if pair[0] != pair[1]:
            print(json.dumps({"text": text, "original": pair[0], "imported": pair[1]}))
            return
        count += 1
    print(json.dumps({"equal": count, "tokens": original.get_vocab_size()}))


def compare_tensors(path, imported):
    import mlx.core as mx

    from smollm2 import LAYER, TOP, plain

    arrays, raw = mx.load(str(path), return_metadata=True)
    meta = {key: plain(value) for key, value in raw.items()}
    heads = {"attn_q": meta["llama.attention.head_count"], "attn_k": meta["llama.attention.head_count_kv"]}
    made = {}
    for file in sorted(imported.glob("*.safetensors")):
        made |= mx.load(str(file))
    for name, array in arrays.items():
        stem, end = name.rsplit(".", 1)
        part = stem.split(".")[-1]
        ours = TOP[stem] if stem in TOP else f"model.layers.{stem.split('.')[1]}.{LAYER[part]}"
        if part in heads:
            array = array.reshape(heads[part], -1, 2, array.shape[-1]).swapaxes(1, 2).reshape(array.shape)
        found = made.pop(f"{ours}.{end}")
        if found.dtype == mx.uint32:
            same = array.dtype == mx.uint32 and mx.array_equal(array, found)
        else:
            same = mx.array_equal(array.astype(mx.float16), found)
        if not same:
            print(json.dumps({"different": name}))
            return
    print(json.dumps({"equal": len(arrays), "left": sorted(made)}))


def main():
    what, *args = sys.argv[1:]
    if what == "tokenizer":
        write_tokenizer(Path(args[0]), args[1], args[2])
    else:
        {"texts": compare_texts, "tensors": compare_tensors}[what](*map(Path, args))


if __name__ == "__main__":
    main()
