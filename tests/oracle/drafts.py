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
from mlx_vlm.speculative.drafters.qwen3_5_mtp import Model as Head
from mlx_vlm.speculative.drafters.qwen3_5_mtp import ModelConfig

from families import prepare
from oracle import load_in_f32
from random_model import draw, write_model
from shapes import VOCABULARY, qwen3_5, qwen3_5_moe
from tokens import CONTROL, write
from variants import Variant

LENGTH = 90
PLACES = [9, 10, 13, 33, 64, 65, 89]
COUNT = 7
# Tokens that the model writes for the fit.
FIT = 2000
# The part of what the layers of a model whose states are guessed add.
QUIET = 0.03
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

    def __init__(self, name, config, layers=1, original=False, bits=None, guesses=False):
        self.name, self.config, self.layers = name, config, layers
        self.original, self.bits, self.guesses = original, bits, guesses
        self.config["text_config"]["mtp_num_hidden_layers"] = layers


CASES = [
    Case("qwen3.5", qwen3_5(), guesses=True),
    Case("qwen3.5-tied-original", qwen3_5(tie_word_embeddings=True), original=True),
    Case("qwen3.5-two-4bit", qwen3_5(), layers=2, bits=4),
    Case("qwen3.5-moe", qwen3_5_moe()),
    Case("qwen3.5-moe-original", qwen3_5_moe(), original=True),
]


def random_head(case):
    config = {"model_type": "qwen3_5_mtp", "block_size": 3, "text_config": case.config["text_config"]}
    head = Head(ModelConfig.from_dict(config))
    head.update(tree_map_with_path(lambda name, old: draw(name, old.shape, 0.0, 1.0, False), head.parameters()))
    if case.bits:
        nn.quantize(head, 64, case.bits, class_predicate=lambda path, module: hasattr(module, "to_quantized"))
        config["quantization"] = {"group_size": 64, "bits": case.bits}
    return head, config


def write_head(head, config, folder, original=False):
    folder.mkdir(parents=True, exist_ok=True)
    weights = dict(tree_flatten(head.parameters()))
    mx.save_safetensors(str(folder / "model.safetensors"), as_the_makers_have_it(weights) if original else weights, {"format": "mlx"})
    (folder / "config.json").write_text(json.dumps({**config, "dtype": "float32"}, indent=1))


def states_of(model, ids):
    language = model.language_model
    return language.model(mx.array([ids]), cache=make_prompt_cache(model))


def output_of(model, states):
    language = model.language_model
    tied = language.args.tie_word_embeddings
    return language.model.embed_tokens.as_linear(states) if tied else language.lm_head(states)


def figures(model, head, ids):
    """The drafts of a head at each place of a text."""
    drafts, margins = [], []
    for place in PLACES:
        head.reset(model)
        seen = []

        def choose(logits):
            seen.append(logits.reshape(-1))
            return mx.argmax(logits, axis=-1)

        head.prefill_from_target_hidden(mx.array([ids[:place]]), states_of(model, ids[:place]), ids[place], choose)
        drafted = head.draft_block(ids[place], None, None, COUNT + 1, choose)
        drafts.append(drafted.reshape(-1).tolist())
        margins.append([float(np.diff(np.sort(np.array(logits))[-2:])[0]) for logits in seen])
    return {"text": mx.array(ids, dtype=mx.int32), "drafts": mx.array(drafts, dtype=mx.int32), "margins": mx.array(margins)}


def fit(model, head, ids):
    """Gives a head without attention and network the projection that guesses the model's next state best."""
    states = np.array(states_of(model, ids)[0])
    embedded = np.array(model.language_model.model.embed_tokens(mx.array(ids)))
    normed = lambda rows: rows / np.sqrt((rows**2).mean(-1, keepdims=True) + 1e-6)
    read = np.concatenate([normed(embedded[1:]), normed(states[:-1])], axis=1)
    last = model.language_model.model.norm.weight
    found, *_ = np.linalg.lstsq(read, states[1:] / np.array(last), rcond=None)
    weights = {"fc.weight": mx.array(found.T.astype(np.float32))}
    for name, value in tree_flatten(head.parameters()):
        if name.startswith("pre_fc_norm"):
            weights[name] = mx.ones(value.shape)
        elif name.endswith(("o_proj.weight", "down_proj.weight")):
            # A little of both, so that they are not for nothing.
            weights[name] = 0.002 * value
        elif name == "norm.weight":
            weights[name] = last
    head.load_weights(list(weights.items()), strict=False)


def spoken(model, seed):
    """A text that the model writes."""
    mx.random.seed(seed)
    cache, ids = make_prompt_cache(model), [5]
    while len(ids) < FIT:
        logits = model(mx.array([[ids[-1]]]), cache=cache)[0, -1]
        ids.append(mx.random.categorical(logits).item())
    return ids


def quieten(folder):
    """Lets the layers of a model add less, so that its next state can be guessed."""
    path = str(folder / "model.safetensors")
    ends = ("o_proj.weight", "out_proj.weight", "down_proj.weight")
    weights = {name: QUIET * value if name.endswith(ends) else value for name, value in mx.load(path).items()}
    mx.eval(weights)
    mx.save_safetensors(path, weights, {"format": "mlx"})


def write_case(case, out, seed):
    folder = out / case.name
    folder.mkdir(parents=True, exist_ok=True)
    control = ["<think>", "</think>", *CONTROL]
    special = write(folder, VOCABULARY - len(control), control, TEMPLATE)
    write_model(Variant(case.name, case.config), folder, seed, special)
    if case.guesses:
        quieten(folder)
    model = load_in_f32(folder)
    mx.random.seed(seed + 1)
    head, config = random_head(case)
    write_head(head, config, out / f"{case.name}.head", case.original)
    source = random.Random(seed)
    ids = [source.randrange(special["ordinary"]) for _ in range(LENGTH + 1)]
    mx.save_safetensors(str(out / f"{case.name}.safetensors"), figures(model, head, ids))
    if case.guesses:
        fit(model, head, spoken(model, seed))
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
