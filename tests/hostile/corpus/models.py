"""Model folders: Pebble's files, one of which is hostile. A pattern writes that file; its name says which it is."""
import json
import struct
from pathlib import Path

from .pattern import MEGABYTE, cut, patterns, spoiled

PEBBLE = Path(__file__).resolve().parents[3] / "src-tauri/pebble/model"
NUMBERS = [0, -1, 1, 3, 4_000_000_000, 4_294_967_296, 9_223_372_036_854_775_807, 18_446_744_073_709_551_616, 1e308, 0.5, 1e-300]
WRONG = [None, True, "", "x", [], {}, [[]], [0] * 90_000, {"a": 1}, "9" * 9000, "../../x", "\u0000"]


def pebble(name):
    return json.loads((PEBBLE / name).read_text())


def leaves(value, above=()):
    """The paths of all values that hold no other ones."""
    if isinstance(value, (dict, list)) and value:
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from leaves(value[key], (*above, key))
    else:
        yield above


def put(value, path, leaf):
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = leaf


def text(value):
    return json.dumps(value).encode()


def changed(random, name, values):
    config = pebble(name)
    places = list(leaves(config))
    for place in random.sample(places, random.choice([1, 1, 2, 5])):
        try:
            put(config, place, random.choice(values))
        except (KeyError, IndexError, TypeError):
            pass  # A place above was changed before.
    return text(config)


def config_numbers(random):
    return changed(random, "config.json", NUMBERS)


def config_kinds(random):
    return changed(random, "config.json", WRONG)


def config_families(random):
    config = pebble("config.json")
    family = random.choice(["llama", "qwen3_moe", "deepseek_v3", "gpt_oss", "mamba", "bert", "phi3", "mistral3", "../x", "x" * 9000, "qwen3_next", "glm4_moe"])
    config["model_type"] = family
    config["text_config"]["model_type"] = random.choice([family, "gemma4_text"])
    config |= {"num_experts": random.choice(NUMBERS), "n_routed_experts": random.choice(NUMBERS), "num_experts_per_tok": random.choice(NUMBERS), "rope_scaling": random.choice(WRONG), "layer_types": ["x"] * random.choice([1, 900_000])}
    return text(config)


def deep(random):
    depth = random.choice([120, 130, 100_000, 3_000_000])
    opened, closed = random.choice([("[", "]"), ('{"a":', "}"), ('{"text_config":', "}")])
    return (opened * depth + "1" + closed * depth).encode()


def wide(random):
    one = random.choice(["[]", "{}", "1", '""'])
    return ('{"model_type":"gemma4","x":[%s]}' % ",".join([one] * (random.choice([1, 7, 30]) * MEGABYTE // 3))).encode()


def tokenizer_ids(random):
    tokenizer = pebble("tokenizer.json")
    for token in random.sample(tokenizer["added_tokens"], random.choice([1, 3])):
        token["id"] = random.choice([4_000_000_000, 4_294_967_295, 4_096, 5_000_000, -1, 1e9, 18_446_744_073_709_551_615])
    vocabulary = tokenizer["model"]["vocab"]
    for word in random.sample(sorted(vocabulary), random.choice([0, 1, 50])):
        vocabulary[word] = random.choice([4_000_000_000, 0, 4_294_967_295, 7_000])
    return text(tokenizer)


def tokenizer_merges(random):
    tokenizer = pebble("tokenizer.json")
    model = tokenizer["model"]
    words = sorted(model["vocab"])
    way = random.randrange(5)
    if way == 0:
        # Each half is the other, and the whole is one of them.
        model["merges"] = [["a", "a"], ["aa", "a"], ["a", "aa"]] * 9000
    elif way == 1:
        model["merges"] = [[random.choice(words), random.choice(words)] for _ in range(40_000)]
    elif way == 2:
        for at in range(16):
            model["vocab"]["a" * 2**at] = random.choice([at, 4096 + at])
        model["merges"] = [["a" * 2**at] * 2 for at in range(15)]
    elif way == 3:
        model["merges"] = [["x" * MEGABYTE, "y"]] * 4
    else:
        model["merges"] = random.choice([[[]], ["a"], [1], "a a", [["a", "b", "c"]], {}])
    return text(tokenizer)


def tokenizer_parts(random):
    """Normalizers, splitters and decoders that grow a text or look through it without end."""
    tokenizer = pebble("tokenizer.json")
    pattern = random.choice(["(a+)+$", "(.*)*x", "(?:a|a)*b", "(?=(a+))\\1+b", "(" * 900, "", "[", "\\p{L}{1000}{1000}", "(x+x+)+y"])
    part = random.choice(
        [
            {"type": "Replace", "pattern": {"String": ""}, "content": "x" * 9000},
            {"type": "Replace", "pattern": {"Regex": pattern}, "content": "xx"},
            {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * MEGABYTE},
            {"type": "Sequence", "normalizers": [{"type": "Replace", "pattern": {"String": "e"}, "content": "ee"}] * 40},
            {"type": "Prepend", "prepend": "x" * 9 * MEGABYTE},
            {"type": "Precompiled", "precompiled_charsmap": "A" * 9000},
        ]
    )
    if random.random() < 0.5:
        tokenizer["normalizer"] = part
    else:
        tokenizer["pre_tokenizer"] = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": random.random() < 0.5}
    for _ in range(random.choice([0, 0, 200, 9000])):
        if isinstance(tokenizer["normalizer"], dict):
            tokenizer["normalizer"] = {"type": "Sequence", "normalizers": [tokenizer["normalizer"]]}
            if len(str(tokenizer["normalizer"])) > 200_000 or random.random() < 0.01:
                break
    return text(tokenizer)


def tokenizer_added(random):
    tokenizer = pebble("tokenizer.json")
    content = random.choice(["", "a", " ", "e", "\n", "<", "x" * 900])
    flags = {"single_word": random.random() < 0.5, "lstrip": random.random() < 0.5, "rstrip": random.random() < 0.5, "normalized": random.random() < 0.5, "special": True}
    tokenizer["added_tokens"] += [{"id": 4096 + at, "content": f"{content}{at % 999 if at else ''}"} | flags for at in range(random.choice([1, 40_000]))]
    return text(tokenizer)


def tokenizer_changed(random):
    return random.choice([cut, spoiled])(random, (PEBBLE / "tokenizer.json").read_bytes())


def tokenizer_config(random):
    return random.choice([lambda: changed(random, "tokenizer_config.json", WRONG + NUMBERS), lambda: deep(random), lambda: wide(random)])()


def weights(random):
    """Headers of safetensors, before as many bytes as they say or far fewer."""
    def header(body, length=None, data=b""):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        return struct.pack("<Q", len(body) if length is None else length) + body + data

    name = "language_model.model.embed_tokens.weight"
    of = lambda shape, offsets, kind="F32": {name: {"dtype": kind, "shape": shape, "data_offsets": offsets}}
    return random.choice(
        [
            lambda: header({}, random.choice([0, 1, 99, 2**31, 2**63, 2**64 - 1])),
            lambda: header(of([2**31, 2], [0, 2**34])),
            lambda: header(of([4_294_967_296, 4_294_967_296], [0, 16]), data=bytes(16)),
            lambda: header(of([-1, 4], [0, 16]), data=bytes(16)),
            lambda: header(of([4], [16, 0]), data=bytes(16)),
            lambda: header(of([4], [0, 16], random.choice(["F64", "X", "", "U32", "F8_E4M3", "BOOL"])), data=bytes(16)),
            lambda: header(of([1] * 90_000, [0, 4]), data=bytes(4)),
            lambda: header(of([], [0, 4]), data=bytes(4)),
            lambda: header(of([0, 4], [0, 0])),
            lambda: header(of([4], [2**63, 2**63 + 16])),
            lambda: header({f"t{at}": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]} for at in range(200_000)}, data=bytes(4)),
            lambda: header(b'{"a":' * 90_000),
            lambda: header(b" " * (20 * MEGABYTE)),
            lambda: header({"__metadata__": {"x": "y" * MEGABYTE}}),
            lambda: header({"__metadata__": [[]] * 9000}),
            lambda: cut(random, (PEBBLE / "model.safetensors").read_bytes()),
            lambda: spoiled(random, (PEBBLE / "model.safetensors").read_bytes()[:60_000]) + (PEBBLE / "model.safetensors").read_bytes()[60_000:],
            lambda: b"",
            lambda: b"PK\x03\x04" + bytes(99),
        ]
    )()


def index(random):
    return random.choice(
        [
            lambda: changed(random, "model.safetensors.index.json", WRONG + ["../../../etc/passwd", "/etc/passwd", "x.safetensors", "config.json"]),
            lambda: deep(random),
            lambda: wide(random),
            lambda: text({"weight_map": {f"t{at}": f"model-{at}.safetensors" for at in range(200_000)}}),
        ]
    )()


def processor(random):
    return random.choice([lambda: changed(random, "processor_config.json", WRONG + NUMBERS), lambda: deep(random), lambda: wide(random)])()


def generation(random):
    return random.choice([lambda: changed(random, "generation_config.json", WRONG + NUMBERS), lambda: deep(random)])()


PATTERNS = patterns(
    ("config.json, absurd numbers", "config.json", config_numbers),
    ("config.json, other kinds", "config.json", config_kinds),
    ("config.json, other families", "config.json", config_families),
    ("config.json, nested", "config.json", deep),
    ("config.json, long", "config.json", wide),
    ("tokenizer.json, ids", "tokenizer.json", tokenizer_ids),
    ("tokenizer.json, merges", "tokenizer.json", tokenizer_merges),
    ("tokenizer.json, parts", "tokenizer.json", tokenizer_parts),
    ("tokenizer.json, added tokens", "tokenizer.json", tokenizer_added),
    ("tokenizer.json, damaged", "tokenizer.json", tokenizer_changed),
    ("tokenizer.json, nested", "tokenizer.json", deep),
    ("tokenizer_config.json", "tokenizer_config.json", tokenizer_config),
    ("safetensors", "model.safetensors", weights),
    ("the index of weights", "model.safetensors.index.json", index),
    ("processor_config.json", "processor_config.json", processor),
    ("generation_config.json", "generation_config.json", generation),
)
