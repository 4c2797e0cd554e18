"""Tiny models with vision, one file per kin: each has `ROWS`, and repairs of what mlx-vlm computes otherwise than the models were trained."""
from importlib import import_module

# A new kin is a file here and its name in this list.
KINS = ["falcon", "gemma3n", "gemma4", "glm", "hunyuan", "internvl", "mllama", "pixtral", "qwen", "siglip"]


def rows():
    """Every row, by its name."""
    found = {}
    for kin in KINS:
        for row in import_module(f"vision_rows.{kin}").ROWS:
            assert row.name not in found, f"{row.name} stands twice"
            found[row.name] = row
    return found
