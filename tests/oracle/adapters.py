"""A random adapter for a model, and what mlx-lm computes with it.

adapters.py --model MODEL --out OUT --seed SEED [--dora] [--keys NAME…]

OUT/mlx is the adapter as mlx-lm writes it, OUT/peft the same in PEFT's layout, and OUT/figures.safetensors:
  prompt  token ids
  base    logits of every position without the adapter, in 32 bit floats
  logits  the same with it
"""
import argparse
import json
import random
from pathlib import Path

import mlx.core as mx
from mlx.utils import tree_flatten, tree_map_with_path
from mlx_lm.tuner.utils import linear_to_lora_layers, load_adapters

from families import logits_of, prepare
from oracle import load_in_f32

PROMPT = 40
RANK, SCALE = 5, 3.0


def write_mlx(model, folder, parameters, dora):
    """Random numbers of a size that changes every logit and drowns none."""
    linear_to_lora_layers(model, len(model.layers), parameters, use_dora=dora)

    def fill(path, value):
        match path.rsplit(".", 1)[-1]:
            case "lora_a" | "lora_b":
                return 0.08 * mx.random.normal(value.shape)
            case "m":
                return value * (1 + 0.2 * mx.random.normal(value.shape))
        return None

    drawn = {path: value for path, value in tree_flatten(tree_map_with_path(fill, model.parameters())) if value is not None}
    mx.eval(drawn)
    folder.mkdir(parents=True)
    mx.save_safetensors(str(folder / "adapters.safetensors"), drawn)
    config = {
        "fine_tune_type": "dora" if dora else "lora",
        "num_layers": len(model.layers),
        "lora_parameters": parameters,
        "model": "ponder/random",
    }
    (folder / "adapter_config.json").write_text(json.dumps(config))
    return drawn


def write_peft(drawn, folder, dora):
    names = {"lora_a": "lora_A.weight", "lora_b": "lora_B.weight", "m": "lora_magnitude_vector"}
    tensors = {}
    for path, value in drawn.items():
        module, part = path.rsplit(".", 1)
        tensors[f"base_model.model.{module}.{names[part]}"] = mx.contiguous(value.T) if value.ndim == 2 else value
    folder.mkdir(parents=True)
    mx.save_safetensors(str(folder / "adapter_model.safetensors"), tensors)
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": "ponder/random",
        "r": RANK,
        "lora_alpha": SCALE * RANK,
        "lora_dropout": 0.0,
        "bias": "none",
        "use_dora": dora,
        "use_rslora": False,
        "modules_to_save": None,
        "alpha_pattern": {},
        "rank_pattern": {},
        "layer_replication": None,
    }
    (folder / "adapter_config.json").write_text(json.dumps(config))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--dora", action="store_true")
    parser.add_argument("--keys", nargs="+")
    args = parser.parse_args()
    prepare()
    mx.random.seed(args.seed)
    model = load_in_f32(args.model)
    vocabulary = json.loads((args.model / "config.json").read_text())
    vocabulary = vocabulary.get("text_config", vocabulary)["vocab_size"]
    drawing = random.Random(args.seed)
    ids = [drawing.randrange(vocabulary) for _ in range(PROMPT)]
    base = logits_of(model, ids)
    parameters = {"rank": RANK, "dropout": 0.0, "scale": SCALE} | ({"keys": args.keys} if args.keys else {})
    drawn = write_mlx(model, args.out / "mlx", parameters, args.dora)
    write_peft(drawn, args.out / "peft", args.dora)
    adapted = load_adapters(load_in_f32(args.model), str(args.out / "mlx"))
    adapted.eval()
    figures = {"prompt": mx.array(ids, dtype=mx.int32), "base": base, "logits": logits_of(adapted, ids)}
    mx.save_safetensors(str(args.out / "figures.safetensors"), figures)


if __name__ == "__main__":
    main()
