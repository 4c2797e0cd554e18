"""Tiny random models with heads that draft for them, and what mlx-vlm's drafters draft.

    drafts.py --out FOLDER --seed N     writes FOLDER/NAME (the model), FOLDER/NAME.head and, for some, FOLDER/NAME.guesses

FOLDER/table.json lists the models; FOLDER/NAME.safetensors has the figures of NAME.head:
  text     token ids
  drafts   `[places, COUNT]`, the tokens that the head drafts after the first PLACES tokens of the text
  margins  by how much each of them was likelier than the next
NAME.guesses is a head that was fitted to the model's own text, so that many of its drafts are right and many are wrong.
"""
import argparse
import json
import random
from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx.utils import tree_flatten, tree_map_with_path
from mlx_lm.models.cache import make_prompt_cache
from mlx_vlm.speculative.drafters import gemma4_assistant, qwen3_5_mtp

from families import prepare
from oracle import load_in_f32
from random_model import draw, write_model
from shapes import VOCABULARY, gemma4, gemma4_31b, qwen3_5, qwen3_5_moe
from tokens import CONTROL, write
from variants import Variant

LENGTH = 90
PLACES = [9, 10, 13, 33, 64, 65, 89]
COUNT = 7
# Tokens that the model writes for the fit.
FIT = 2000
# The part of what the layers of a model whose states are guessed add, and of Gemma's, which are many.
QUIET, QUIETER = 0.03, 0.01
# The norms of what Gemma's layers add.
LAST_NORMS = ("post_attention_layernorm.weight", "post_feedforward_layernorm.weight", "post_per_layer_input_norm.weight")
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n{% else %}<think>\n{% endif %}{% endif %}"
)


def as_the_makers_have_it(weights):
    """The names and norms of the original files, experts joined."""
    made = {}
    for name, value in weights.items():
        if value.ndim == 1 and name.endswith("norm.weight") or "pre_fc_norm" in name:
            value = value - 1.0
        made[f"mtp.{name}"] = value
    for name in [name for name in made if name.endswith("switch_mlp.gate_proj.weight")]:
        before = name.removesuffix("switch_mlp.gate_proj.weight")
        parts = {part: made.pop(f"{before}switch_mlp.{part}_proj.weight") for part in ("gate", "up", "down")}
        made[f"{before}experts.gate_up_proj"] = mx.concatenate([parts["gate"], parts["up"]], axis=-2)
        made[f"{before}experts.down_proj"] = parts["down"]
    return made


class Case:
    """A model and its head, as the head's files have it."""

    def __init__(self, name, config, layers=1, original=False, bits=None, guesses=False, groups=None):
        self.name, self.config, self.layers = name, config, layers
        self.original, self.bits, self.guesses, self.groups = original, bits, guesses, groups
        self.attends = config["model_type"] == "gemma4"
        if not self.attends:
            self.config["text_config"]["mtp_num_hidden_layers"] = layers

    def head_config(self):
        text = self.config["text_config"]
        if not self.attends:
            return {"model_type": "qwen3_5_mtp", "block_size": 3, "text_config": text}
        own = {
            "intermediate_size": 96, "num_hidden_layers": 4, "num_kv_shared_layers": 4, "hidden_size_per_layer_input": 0,
            "vocab_size_per_layer_input": 0, "use_double_wide_mlp": False,
            "layer_types": ["sliding_attention"] * 3 + ["full_attention"],
        }
        # As wide as the model where it is to guess the model's states.
        width = text["hidden_size"] if self.guesses else 32
        head = {
            "model_type": "gemma4_assistant", "backbone_hidden_size": text["hidden_size"], "block_size": 4,
            "tie_word_embeddings": text["tie_word_embeddings"], "use_ordered_embeddings": self.groups is not None,
            "text_config": {**text, **own, "hidden_size": width},
        }
        return head if self.groups is None else {**head, "num_centroids": self.groups, "centroid_intermediate_top_k": 3}


CASES = [
    Case("qwen3.5", qwen3_5(), guesses=True),
    Case("qwen3.5-tied-original", qwen3_5(tie_word_embeddings=True), original=True),
    Case("qwen3.5-two-4bit", qwen3_5(), layers=2, bits=4),
    Case("qwen3.5-moe", qwen3_5_moe()),
    Case("qwen3.5-moe-original", qwen3_5_moe(), original=True),
    Case("gemma4", gemma4(tie_word_embeddings=False), guesses=True),
    Case("gemma4-tied", gemma4()),
    Case("gemma4-groups", gemma4(), groups=20),
    Case("gemma4-31b", gemma4_31b()),
]


def random_head(case):
    config = case.head_config()
    package = gemma4_assistant if case.attends else qwen3_5_mtp
    head = package.Model(package.ModelConfig.from_dict(config))

    def fill(name, old):
        if name.endswith("token_ordering"):
            return mx.random.permutation(VOCABULARY)
        return draw(name, old.shape, 0.0, 1.0, case.attends)

    head.update(tree_map_with_path(fill, head.parameters()))
    if case.bits:
        nn.quantize(head, 64, case.bits, class_predicate=lambda path, module: hasattr(module, "to_quantized"))
        config["quantization"] = {"group_size": 64, "bits": case.bits}
    return head, config


def write_head(head, config, folder, original=False):
    folder.mkdir(parents=True, exist_ok=True)
    weights = dict(tree_flatten(head.parameters()))
    mx.save_safetensors(str(folder / "model.safetensors"), as_the_makers_have_it(weights) if original else weights, {"format": "mlx"})
    (folder / "config.json").write_text(json.dumps({**config, "dtype": "float32"}, indent=1))


def states_of(model, ids, cache=None):
    return model.language_model.model(mx.array([ids]), cache=cache or make_prompt_cache(model))


def let_read(case, model, head, ids, last, choose):
    """Lets a head read what the model has read; the result is the state that it goes on from."""
    cache = make_prompt_cache(model)
    states = states_of(model, ids, cache)
    if not case.attends:
        head.prefill_from_target_hidden(mx.array([ids]), states, last, choose)
        return None
    kinds = case.config["text_config"]["layer_types"][: len(cache)]
    # The last of each kind counts.
    keys = {kind: (layer.keys[..., : len(ids), :], layer.values[..., : len(ids), :]) for kind, layer in zip(kinds, cache)}
    head.set_shared_kv(keys, len(ids), position=len(ids) - 1, kv_valid_len=len(ids))
    return states[:, -1:]


def figures(case, model, head, ids):
    """The drafts of a head at each place of a text."""
    drafts, margins = [], []
    for place in PLACES:
        head.reset(model)
        seen = []

        def choose(logits):
            seen.append(logits.reshape(-1))
            return mx.argmax(logits, axis=-1)

        state = let_read(case, model, head, ids[:place], ids[place], choose)
        drafted = head.draft_block(ids[place], state, None, COUNT + 1, choose)
        drafts.append(drafted.reshape(-1).tolist())
        margins.append([float(np.diff(np.sort(np.array(logits))[-2:])[0]) for logits in seen])
    return {"text": mx.array(ids, dtype=mx.int32), "drafts": mx.array(drafts, dtype=mx.int32), "margins": mx.array(margins)}


def normed(rows):
    return rows / np.sqrt((rows**2).mean(-1, keepdims=True) + 1e-6)


def fit(case, model, head, ids):
    """Gives a head whose layers add little the projection that guesses the model's next state best."""
    states = np.array(states_of(model, ids)[0])
    inner = model.language_model.model
    embedded = np.array(inner.embed_tokens(mx.array(ids))) * getattr(inner, "embed_scale", 1.0)
    read = np.concatenate([embedded[1:], states[:-1]], axis=1)
    if not case.attends:
        read = np.concatenate([normed(embedded[1:]), normed(states[:-1])], axis=1)
    found, *_ = np.linalg.lstsq(read, states[1:] / np.array(inner.norm.weight), rcond=None)
    projection = mx.array(found.T.astype(np.float32))
    weights = {"pre_projection.weight": projection} if case.attends else {"fc.weight": projection}
    for name, value in tree_flatten(head.parameters()):
        if name.startswith("pre_fc_norm") or name.endswith("layer_scalar"):
            weights[name] = mx.ones(value.shape)
        elif name.endswith(("o_proj.weight", "down_proj.weight") if not case.attends else LAST_NORMS):
            # A little of both, so that they are not for nothing.
            weights[name] = 0.002 * value
        elif name in ("norm.weight", "model.norm.weight"):
            weights[name] = inner.norm.weight
        elif name == "lm_head.weight":
            weights[name] = model.language_model.lm_head.weight
        elif name == "post_projection.weight":
            weights[name] = mx.eye(value.shape[0])
    head.load_weights(list(weights.items()), strict=False)


def spoken(model, seed):
    """A text that the model writes."""
    mx.random.seed(seed)
    cache, ids = make_prompt_cache(model), [5]
    while len(ids) < FIT:
        logits = model(mx.array([[ids[-1]]]), cache=cache)[0, -1]
        ids.append(mx.random.categorical(logits).item())
    return ids


def quieten(folder, attends):
    """Lets the layers of a model add less, so that its next state can be guessed."""
    path = str(folder / "model.safetensors")
    ends = LAST_NORMS if attends else ("o_proj.weight", "out_proj.weight", "down_proj.weight")
    factor = QUIETER if attends else QUIET
    weights = {name: factor * value if name.endswith(ends) else value for name, value in mx.load(path).items()}
    mx.eval(weights)
    mx.save_safetensors(path, weights, {"format": "mlx"})


def write_case(case, out, seed):
    folder = out / case.name
    folder.mkdir(parents=True, exist_ok=True)
    control = ["<think>", "</think>", *CONTROL]
    special = write(folder, VOCABULARY - len(control), control, TEMPLATE)
    write_model(Variant(case.name, case.config), folder, seed, special)
    if case.guesses:
        quieten(folder, case.attends)
    model = load_in_f32(folder)
    mx.random.seed(seed + 1)
    head, config = random_head(case)
    write_head(head, config, out / f"{case.name}.head", case.original)
    source = random.Random(seed)
    ids = [source.randrange(special["ordinary"]) for _ in range(LENGTH + 1)]
    mx.save_safetensors(str(out / f"{case.name}.safetensors"), figures(case, model, head, ids))
    if case.guesses:
        fit(case, model, head, spoken(model, seed))
        write_head(head, config, out / f"{case.name}.guesses")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=Path, help="the folder to write into")
    parser.add_argument("--seed", required=True, type=int)
    args = parser.parse_args()
    prepare()
    for index, case in enumerate(CASES):
        write_case(case, args.out, args.seed + index)
    table = {"names": [case.name for case in CASES], "places": PLACES}
    (args.out / "table.json").write_text(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
