"""Ask an exported Pebble the picture exam through mlx-vlm and transformers' own image processor, away from the code that trained it.

usage: picture_exam.py MODEL_FOLDER [SEED [COUNT]]      needs mlx-vlm, transformers, Pillow; no GPU
"""
import json
import sys
from pathlib import Path

import mlx.core as mx
import numpy as np
from mlx_vlm.utils import load_model
from PIL import Image
from transformers import AutoTokenizer
from transformers.models.gemma4.image_processing_pil_gemma4 import Gemma4ImageProcessorPil

import pictures as P


def planes(processor, picture):
    """The processed picture as [1, 3, height, width], 0..1, put together from its patches."""
    made = processor([picture], return_tensors="np")
    places, patches = made["image_position_ids"][0], made["pixel_values"][0]
    real = places[:, 0] >= 0
    columns, rows = places[real].max(0) + 1
    side = processor.patch_size
    grid = patches[real].reshape(rows, columns, side, side, 3).transpose(4, 0, 2, 1, 3)
    return mx.array(grid.reshape(1, 3, rows * side, columns * side)), rows * columns // processor.pooling_kernel_size ** 2


def main():
    folder, seed, count = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1, int(sys.argv[3]) if len(sys.argv) > 3 else 200
    mx.set_default_device(mx.cpu)
    mx.disable_compile()
    loaded = load_model(folder)
    model = loaded[0] if isinstance(loaded, tuple) else loaded
    config = json.loads((folder / "config.json").read_text())
    tokenizer, processor, maps = AutoTokenizer.from_pretrained(folder), Gemma4ImageProcessorPil.from_pretrained(folder), P.atlas()
    table = {}
    for skill, scenes, question, answer in P.exam(seed, count):
        pixels, tokens = zip(*(planes(processor, Image.fromarray(P.draw(s, maps))) for s in scenes))
        content = [{"type": "image"}] * len(scenes) + [{"type": "text", "text": question}]
        asked = tokenizer.apply_chat_template([{"role": "user", "content": content}], add_generation_prompt=True, enable_thinking=False, tokenize=False)
        ids, left = [], list(tokens)
        for i in tokenizer.encode(asked, add_special_tokens=False):
            ids += [config["boi_token_id"], *[i] * left.pop(0), config["eoi_token_id"]] if i == config["image_token_id"] else [i]
        said = tokenizer.encode(answer + "<turn|>", add_special_tokens=False)
        # Greedy text equals the answer exactly if each of its tokens is the likeliest after those before it.
        out = model(mx.array([ids + said[:-1]]), list(pixels), mm_token_type_ids=mx.array([[int(i == config["image_token_id"]) for i in ids + said[:-1]]]))
        best = np.array(mx.argmax(out.logits[0, len(ids) - 1:], axis=-1)).tolist()
        right = best == said
        score = table.setdefault(skill, [0, 0])
        score[0] += right
        score[1] += 1
        if not right:
            print(f"[{skill}] {question} want {answer!r} got {tokenizer.decode(best)!r}", flush=True)
    for skill, (a, n) in table.items():
        print(f"{skill:8} {a}/{n} = {a / n:.2f}")
    a, n = (sum(x) for x in zip(*table.values()))
    print(f"all      {a}/{n} = {a / n:.3f}")


if __name__ == "__main__":
    main()
