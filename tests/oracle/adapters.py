"""A random adapter for a model, and what mlx-lm computes with it.

adapters.py --model MODEL --out OUT --seed SEED [--dora] [--keys NAME…] [--trained TEXTS]

With --trained, mlx_lm.lora trains it for 20 steps on the paragraphs of a text; it is random otherwise.

OUT/mlx is the adapter as mlx-lm writes it, OUT/peft the same in PEFT's layout, unless it changes stacks of experts, which that
does not have, and OUT/figures.safetensors:
  prompt  token ids
  base    logits of every position without the adapter, in 32 bit floats
  logits  the same with it
  greedy  64 tokens that follow the prompt with it
"""
import argparse
import json
import random
import subprocess
import sys
from pathlib import Path

import mlx.core as mx
from mlx.utils import tree_flatten, tree_map_with_path
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.tuner.utils import linear_to_lora_layers, load_adapters

from families import logits_of, prepare
from oracle import load_in_f32

PROMPT = 40
RANK, SCALE = 5, 3.0


def greedy(model, ids, count):
    """The tokens that follow."""
    cache = make_prompt_cache(model)
    last = model(mx.array(ids)[None], cache=cache)[0, -1]
    made = []
    for _ in range(count):
        made.append(mx.argmax(last).item())
        last = model(mx.array([[made[-1]]]), cache=cache)[0, -1]
    return made


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


def train(model, folder, texts, seed):
    """An adapter that mlx_lm.lora trained; its tensors."""
    data = folder.parent / "data"
    data.mkdir(parents=True)
    paragraphs = [part.strip() for part in texts.read_text().split("\n\n") if len(part) > 200]
    rows = "\n".join(json.dumps({"text": part[:800]}) for part in paragraphs[:40])
    for name in ("train", "valid"):
        (data / f"{name}.jsonl").write_text(rows + "\n")
    command = [sys.executable, "-m", "mlx_lm", "lora", "--train", "--model", model, "--data", data, "--adapter-path", folder]
    command += ["--iters", "20", "--batch-size", "1", "--num-layers", "4", "--val-batches", "1", "--steps-per-eval", "100"]
    command += ["--max-seq-length", "128", "--seed", str(seed)]
    subprocess.run([str(part) for part in command], check=True, stdout=sys.stderr)
    return mx.load(str(folder / "adapters.safetensors"))


def write_peft(drawn, folder, dora):
    names = {"lora_a": "lora_A.weight", "lora_b": "lora_B.weight", "m": "lora_magnitude_vector"}
    of_tables = {"lora_a": "lora_embedding_A", "lora_b": "lora_embedding_B"}
    tensors = {}
    for path, value in drawn.items():
        module, part = path.rsplit(".", 1)
        if module.endswith("embed_tokens"):
            tensors[f"base_model.model.{module}.{of_tables[part]}"] = mx.contiguous(value.T)
            continue
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
    parser.add_argument("--trained", type=Path)
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
    if args.trained:
        train(args.model, args.out / "mlx", args.trained, args.seed)
    else:
        drawn = write_mlx(model, args.out / "mlx", parameters, args.dora)
        if all(value.ndim < 3 for value in drawn.values()):
            write_peft(drawn, args.out / "peft", args.dora)
    adapted = load_adapters(load_in_f32(args.model), str(args.out / "mlx"))
    adapted.eval()
    logits = logits_of(adapted, ids)
    made = greedy(adapted, ids, 64)
    figures = {"prompt": mx.array(ids, dtype=mx.int32), "base": base, "logits": logits, "greedy": mx.array(made, dtype=mx.int32)}
    mx.save_safetensors(str(args.out / "figures.safetensors"), figures)


if __name__ == "__main__":
    main()
