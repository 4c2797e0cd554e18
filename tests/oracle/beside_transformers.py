"""The results of transformers itself for models that `vision.py` wrote: they judge the oracle's repairs, and the engine.

    python beside_transformers.py --models DIR --out DIR [--only qwen3_vl-original,gemma3-original]

For every case of a row the logits `[length, vocabulary]` of all positions go to OUT/NAME.CASE.safetensors. A row counts only if
transformers finds every weight that it looks for, so models have to be in the layout of the original repositories. Written for transformers
5.23 and torch 2.11, of which the processor is enough.
"""
import argparse
import json
import os
from pathlib import Path

os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np
import torch
from safetensors.numpy import load_file, save_file
from transformers import AutoModelForImageTextToText
from transformers.utils import logging

logging.set_verbosity_error()


class Shown:
    """The views of a case: what goes through the tower, and the grids of patches."""

    def __init__(self, case, stored):
        views = [view for image in case["images"] for view in image["views"]]
        self.grids = [view["patches"] for view in views]
        self.sizes = [(view["height"], view["width"]) for view in views]
        self.pixels = [stored[f"pixels.{index}"] for index in range(len(views))]

    def rows(self):
        """Patches of all views, one after another."""
        return torch.from_numpy(np.concatenate(self.pixels))

    def thw(self):
        return torch.tensor([[1, *grid] for grid in self.grids])

    def padded(self):
        """`[views, most patches, numbers]`, and which of them are patches."""
        most = max(len(rows) for rows in self.pixels)
        whole = np.zeros((len(self.pixels), most, self.pixels[0].shape[1]), dtype=np.float32)
        real = np.zeros((len(self.pixels), most), dtype=np.int64)
        for index, rows in enumerate(self.pixels):
            whole[index, : len(rows)], real[index, : len(rows)] = rows, 1
        return torch.from_numpy(whole), torch.from_numpy(real)

    def planes(self):
        """`[views, 3, most rows, most columns]`."""
        height, width = (max(size[axis] for size in self.sizes) for axis in (0, 1))
        whole = np.zeros((len(self.pixels), 3, height, width), dtype=np.float32)
        for index, planes in enumerate(self.pixels):
            whole[index, :, : planes.shape[1], : planes.shape[2]] = planes
        return torch.from_numpy(whole)


def packed(shown):
    return {"pixel_values": shown.rows(), "image_grid_thw": shown.thw()}


def paddle(shown):
    rows = shown.rows()
    return {"pixel_values": rows.reshape(len(rows), 3, 14, 14), "image_grid_thw": shown.thw()}


def gemma4(shown):
    pixels, real = shown.padded()
    places = torch.full((*pixels.shape[:2], 2), -1)
    for index, (rows, columns) in enumerate(shown.grids):
        down, across = np.divmod(np.arange(rows * columns), columns)
        places[index, : rows * columns] = torch.from_numpy(np.stack([across, down], axis=-1))
    return {"pixel_values": pixels, "image_position_ids": places}


def tiled(shown):
    return {"pixel_values": shown.planes()[None]}


def lfm2(shown):
    pixels, real = shown.padded()
    return {"pixel_values": pixels, "pixel_attention_mask": real, "spatial_shapes": torch.tensor(shown.grids)}


def mistral3(shown):
    return {"pixel_values": shown.planes(), "image_sizes": torch.tensor(shown.sizes)}


def planes(shown):
    return {"pixel_values": shown.planes()}


# How the images of each `model_type` are handed over, and what the kinds of its tokens (1 for an image's) are
# called, if it asks.
GIVEN = {
    "gemma3": (planes, "token_type_ids"), "gemma4": (gemma4, "mm_token_type_ids"), "glm4v": (packed, "mm_token_type_ids"),
    "glm_ocr": (packed, "mm_token_type_ids"), "idefics3": (tiled, None), "internvl": (planes, None), "lfm2_vl": (lfm2, None),
    "mistral3": (mistral3, None), "paddleocr_vl": (paddle, "mm_token_type_ids"), "qwen2_5_vl": (packed, "mm_token_type_ids"),
    "qwen3_vl": (packed, "mm_token_type_ids"), "qwen3_vl_moe": (packed, "mm_token_type_ids"),
}


def load(folder):
    model, info = AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager",
                                                              experts_implementation="eager", output_loading_info=True)
    lacking = {name: sorted(info[name])[:5] for name in ("missing_keys", "mismatched_keys") if info[name]}
    assert not lacking, f"{folder.name}: {lacking}"
    for part in model.modules() if model.config.model_type == "gemma3" else []:
        if hasattr(part, "embed_scale"):
            # In the 16 bits of published weights, and so in the other oracle, the factor of its embeddings is rounded.
            part.embed_scale = torch.as_tensor(part.embed_scale).bfloat16().float()
    return model.eval()


def logits_of(model, model_type, ids, shown):
    """The logits `[length, vocabulary]` of a prompt read at once."""
    config = model.config.to_dict()
    image = config.get("image_token_id", config.get("image_token_index"))
    given = {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids), dtype=torch.int64)}
    hand, kinds = GIVEN[model_type]
    if shown.pixels:
        given |= hand(shown)
    if kinds:
        given[kinds] = torch.tensor([[int(token == image) for token in ids]])
    with torch.no_grad():
        return model(**given).logits[0].float().numpy()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", required=True, type=Path, help="the folder that vision.py wrote")
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--only", help="names of rows, with commas")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    rows = json.loads((args.models / "table.json").read_text())["rows"]
    for row in rows:
        if args.only and row["name"] not in args.only.split(","):
            continue
        model = load(args.models / row["name"])
        for case in row["cases"]:
            name = f"{row['name']}.{case['case']}.safetensors"
            stored = load_file(args.models / name)
            logits = logits_of(model, row["model_type"], stored["ids"].tolist(), Shown(case, stored))
            apart = np.abs(logits - stored["logits"]).max()
            print(f"{row['name']:24} {case['case']:6} oracle apart {apart:.1e}", flush=True)
            save_file({"logits": np.ascontiguousarray(logits)}, args.out / name)


if __name__ == "__main__":
    main()
