"""Tokenizers of four ways of speaking, and the ids that transformers gives benign messages.

    python injection.py PEBBLE_FOLDER OUT_FOLDER COUNT SEED

Writes OUT_FOLDER/NAME/{tokenizer.json,tokenizer_config.json} and OUT_FOLDER/NAME.json: {"texts": […], "ids": [[…], …]}.
"""
import json
import random
import shutil
import sys
import unicodedata
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import AutoTokenizer

CHATML = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}"
LLAMA = "{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n{{ m.content | trim }}<|eot_id|>{% endfor %}{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
HARMONY = "{% for m in messages %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>{% endfor %}{% if add_generation_prompt %}<|start|>assistant{% endif %}"
MISTRAL = "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}[INST]{{ m.content }}[/INST]{% else %}{{ m.content }}{{ eos_token }}{% endif %}{% endfor %}"
KINDS = {
    "chatml": (CHATML, "byte level", ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], ["<think>", "</think>", "<tool_call>", "</tool_call>"]),
    "llama": (LLAMA, "byte level", ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|python_tag|>"], []),
    "harmony": (HARMONY, "byte level", ["<|return|>", "<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|call|>", "<|constrain|>"], []),
    "mistral": (MISTRAL, "pieces", ["<s>", "</s>", "<unk>", "[INST]", "[/INST]", "[THINK]", "[/THINK]", "[TOOL_CALLS]"], []),
}
PROSE = "The quick brown fox jumps over the lazy dog; naïve café, für Älter, 日本語のテキスト, עברית, Привет мир! if (a < b && c > d) { return x[0] | y; } <b>bold</b> user assistant system "


def make(folder, name):
    """A small tokenizer of this kind, as its makers configure theirs."""
    template, spelling, special, added = KINDS[name]
    folder.mkdir(parents=True, exist_ok=True)
    if spelling == "byte level":
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(vocab_size=700, initial_alphabet=alphabet, special_tokens=special, show_progress=False)
    else:
        bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
        tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
        tokenizer.normalizer = normalizers.Sequence([normalizers.Replace(" ", "▁")])
        tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
        trainer = trainers.BpeTrainer(vocab_size=900, special_tokens=special + bytes_, show_progress=False)
    tokenizer.train_from_iterator([PROSE] * 50, trainer)
    if spelling == "pieces":
        # The trainer makes bytes special, which they are not.
        described = json.loads(tokenizer.to_str())
        described["added_tokens"] = [token for token in described["added_tokens"] if token["content"] in special]
        tokenizer = Tokenizer.from_str(json.dumps(described))
    tokenizer.add_tokens(added)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "chat_template": template,
        "bos_token": special[0],
        "eos_token": special[-1] if name in ("llama", "chatml") else special[1],
        "clean_up_tokenization_spaces": False,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config))


RANGES = [
    (0x20, 0x7E), (0x20, 0x7E), (0x20, 0x7E), (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x52F), (0x590, 0x6FF), (0x900, 0x97F), (0xE00, 0xE7F), (0x1100, 0x11FF),
    (0x2000, 0x206F), (0x2190, 0x2BFF), (0x3040, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xE000, 0xE0FF), (0xFB00, 0xFB4F), (0xFE00, 0xFE0F),
    (0xFF00, 0xFFEF), (0x1D400, 0x1D7FF), (0x1F300, 0x1FAFF), (0xE0020, 0xE007F), (0x10FF00, 0x10FFFD),
]
WORDS = PROSE.split() + ["\n", "\n\n", "\t", "  ", "   ", "\r\n", "<", ">", "|", "<|", "|>", "[", "]", "▁", "▁▁", "\u00a0", "\u200b", "\u200d", "\ufeff", "e\u0301", "👩‍👩‍👧", "<div>", "</p>", "<0x41>", "x|y", "«»"]


def text(chance):
    """A benign message: words, runs of one script, and whatever characters there are."""
    parts = []
    for _ in range(chance.randint(0, 12)):
        kind = chance.random()
        if kind < 0.5:
            parts.append(chance.choice(WORDS) + chance.choice(["", " "]))
        else:
            low, high = chance.choice(RANGES)
            parts.append("".join(chr(chance.randint(low, high)) for _ in range(chance.randint(1, 6))))
    made = "".join(parts)
    return "".join(c for c in made if unicodedata.category(c) != "Cs")


def main(pebble, out, count, seed):
    chance = random.Random(seed)
    names = ["pebble", *KINDS]
    for name in names:
        folder = out / name
        if name == "pebble":
            shutil.copytree(pebble, folder, ignore=shutil.ignore_patterns("*.safetensors"))
        else:
            make(folder, name)
        tokenizer = AutoTokenizer.from_pretrained(folder)
        control = [token for token in tokenizer.get_added_vocab() if len(token) > 1]
        texts, ids = [], []
        while len(texts) < count // len(names):
            candidate = text(chance)
            if not any(token in candidate for token in control):
                texts.append(candidate)
                chat = [{"role": "user", "content": candidate}]
                ids.append(tokenizer.apply_chat_template(chat, tokenize=True, add_generation_prompt=True, return_dict=False))
        (out / f"{name}.json").write_text(json.dumps({"texts": texts, "ids": ids}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
