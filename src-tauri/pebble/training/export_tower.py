"""Give Pebble its eyes: add a trained tower to the model folder. The text weights keep their bytes.

usage: export_tower.py CHECKPOINT MODEL_FOLDER OUT_FOLDER
"""
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from tower import BUDGET, CFG, FREE_ROWS, IDS, VISION

GROUP = 64


def tower_tensors(weights):
    """The tower's tensors under Gemma 4's names, bf16."""
    out = {}
    for name, w in weights.items():
        if not name.startswith("tower.") or name == "tower.per_layer_rows":
            continue
        name = name.removeprefix("tower.")
        if name.startswith("layers."):
            _, n, part, *_ = name.split(".")
            if part.endswith("_proj"):
                room = "self_attn" if part[0] in "qkvo" else "mlp"
                name = f"vision_tower.encoder.layers.{n}.{room}.{part}.linear.weight"
            else:
                name = f"vision_tower.encoder.layers.{n}.{'self_attn.' if part in ('q_norm', 'k_norm') else ''}{part}.weight"
        elif name == "embedding_projection.weight":
            name = "embed_vision.embedding_projection.weight"
        else:
            name = f"vision_tower.patch_embedder.{name}"
        out[name] = w.to(torch.bfloat16).contiguous()
    return out


def replace_rows(tensors, rows):
    """Packs the learnt per-layer rows into the packed table, 8 bits in groups of 64; no other row changes."""
    base = "language_model.model.embed_tokens_per_layer"
    packed, scales, biases = (tensors[f"{base}.{k}"] for k in ("weight", "scales", "biases"))
    table = packed.numpy().view(np.uint8).reshape(packed.shape[0], -1)
    for at, row in zip(FREE_ROWS, rows.float()):
        groups = row.view(-1, GROUP)
        low, high = groups.min(1).values, groups.max(1).values
        scale, bias = ((high - low) / 255).clamp(min=1e-8).to(torch.bfloat16), low.to(torch.bfloat16)
        q = ((groups - bias.float()[:, None]) / scale.float()[:, None]).round().clamp(0, 255)
        table[at] = q.numpy().astype(np.uint8).reshape(-1)
        scales[at], biases[at] = scale, bias


def marks(folder, out):
    """Names the spare ids of the vocabulary that stand for pictures. Their old names were reachable by no text."""
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    vocab = tokenizer["model"]["vocab"]
    names = {i: n for n, i in vocab.items()}
    ids = [*IDS["look"], IDS["boi"], IDS["image"], IDS["eoi"]]
    for i, mark in zip(ids, VISION["marks"], strict=True):
        names[i] = mark
    tokenizer["model"]["vocab"] = {n: i for i, n in sorted(names.items())}
    known = {t["id"] for t in tokenizer["added_tokens"]}
    tokenizer["added_tokens"] += [{"id": i, "content": names[i], "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
                                  for i in sorted(ids) if i not in known]
    (out / "tokenizer.json").write_text(json.dumps(tokenizer, indent=2, ensure_ascii=False))


def seeing_template(template):
    """The chat template with content in parts: pictures first, then the marks that Pebble looks by, then the words. Plain text renders as before."""
    look = "".join(VISION["marks"][: len(IDS["look"])])
    macro = """{%- macro spoken(content) -%}
    {%- if content is string -%}
        {{- content | trim -}}
    {%- else -%}
        {%- set ns = namespace(pictures='', words='') -%}
        {%- for part in content -%}
            {%- if part.type == 'text' -%}
                {%- set ns.words = ns.words + part.text -%}
            {%- else -%}
                {%- set ns.pictures = ns.pictures + '<|image|>' -%}
            {%- endif -%}
        {%- endfor -%}
        {{- ns.pictures -}}{{- 'LOOK' if ns.pictures -}}{{- ns.words | trim -}}
    {%- endif -%}
{%- endmacro -%}
""".replace("LOOK", look)
    before, asked = "{%- set thinking = ", "message.role + '\\n' + message.content | trim + '<turn|>"
    if "macro spoken" in template:
        return template
    assert template.count(before) == 1 and template.count(asked) == 1
    return template.replace(before, macro + before).replace(asked, asked.replace("message.content | trim", "spoken(message.content)"))


def main():
    checkpoint, folder, out = (Path(p) for p in sys.argv[1:4])
    out.mkdir(parents=True, exist_ok=True)
    weights = load_file(checkpoint)
    with safe_open(folder / "model.safetensors", "pt") as f:
        tensors = {n: f.get_tensor(n) for n in f.keys() if n.startswith("language_model.")}
    replace_rows(tensors, weights["tower.per_layer_rows"])
    tensors |= tower_tensors(weights)
    (out / "chat_template.jinja").write_text(seeing_template((folder / "chat_template.jinja").read_text()))
    for name in ("generation_config.json", "tokenizer_config.json"):
        if folder != out:
            shutil.copy(folder / name, out / name)
    save_file(tensors, out / "model.safetensors", metadata={"format": "mlx"})
    size = sum(t.numel() * t.element_size() for t in tensors.values())
    (out / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": size}, "weight_map": {n: "model.safetensors" for n in sorted(tensors)}}, indent=4))
    config = json.loads((folder / "config.json").read_text())
    config |= {"vision_config": CFG, "audio_config": None, "image_token_id": IDS["image"], "boi_token_id": IDS["boi"], "eoi_token_id": IDS["eoi"], "vision_soft_tokens_per_image": BUDGET}
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    processor = {"do_convert_rgb": True, "do_normalize": False, "do_rescale": True, "do_resize": True, "image_mean": [0.0, 0.0, 0.0], "image_std": [1.0, 1.0, 1.0],
                 "image_processor_type": "Gemma4ImageProcessor", "image_seq_length": BUDGET, "max_soft_tokens": BUDGET, "patch_size": CFG["patch_size"],
                 "pooling_kernel_size": CFG["pooling_kernel_size"], "resample": 3, "rescale_factor": 1 / 255}
    (out / "processor_config.json").write_text(json.dumps({"image_processor": processor, "image_seq_length": BUDGET, "processor_class": "Gemma4Processor"}, indent=2) + "\n")
    marks(folder, out)
    print(f"{size / 1e6:.1f} MB in {len(tensors)} tensors")


if __name__ == "__main__":
    main()
