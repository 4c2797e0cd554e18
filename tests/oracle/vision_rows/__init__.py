"""Tiny models with vision, one file per kin: each has `ROWS`, and repairs of what mlx-vlm computes otherwise than the models were trained."""
from importlib import import_module
from pathlib import Path

# Every file here but this one and the type of a row.
KINS = sorted({file.stem for file in Path(__file__).parent.glob("*.py")} - {"__init__", "row"})


def rows():
    """Every row, by its name."""
    found = {}
    for kin in KINS:
        for row in import_module(f"vision_rows.{kin}").ROWS:
            assert row.name not in found, f"{row.name} stands twice"
            found[row.name] = row
    return found
