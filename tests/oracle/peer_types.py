"""Every model type that mlx-lm and mlx-vlm load, one a line: `package type`. Their sources are read, not run.

peer_types.py [SITE]: SITE is the folder with both packages; without it, the one that this Python imports from.
"""

import ast
import re
import sys
import sysconfig
from pathlib import Path

FOLDERS = ["mlx_lm/models", "mlx_vlm/models", "mlx_vlm/speculative/drafters"]
# Base classes and parts of models, which these packages keep among their models.
PARTS = {"base", "cache", "pipeline", "switch_layers", "rope_utils", "activations"}


def defines_model(source):
    """True for a module that has a class `Model`, its own or another module's."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef) and node.name == "Model":
            return True
        if isinstance(node, ast.ImportFrom) and any((name.asname or name.name) == "Model" for name in node.names):
            return True
        if isinstance(node, ast.Assign) and any(getattr(target, "id", None) == "Model" for target in node.targets):
            return True
    return False


def base_of_embedder(folder):
    """`X` for a folder `X_embedding` or `Y_embedding` that reads the config of `X`: configs of embedders say `X`."""
    config = folder / "config.py"
    if not folder.name.endswith("_embedding") or not config.is_file():
        return None
    found = re.search(r"^from \.\.(\w+)\.config import", config.read_text(), re.MULTILINE)
    return found and found[1]


def renamed(utilities):
    """The keys of `MODEL_REMAPPING`: types that are loaded as another one."""
    for node in ast.parse(utilities.read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == "MODEL_REMAPPING":
            yield from ast.literal_eval(node.value)


def types(site):
    for package in FOLDERS:
        name = package.split("/")[0]
        if not (site / package).is_dir():
            sys.exit(f"{site} has no {package}")
        for entry in sorted((site / package).iterdir()):
            if entry.suffix == ".py" and entry.stem not in PARTS and defines_model(entry.read_text()):
                yield name, entry.stem
            elif (entry / "__init__.py").is_file():
                yield name, base_of_embedder(entry) or entry.name
    for name in ("mlx_lm", "mlx_vlm"):
        for model_type in renamed(site / name / "utils.py"):
            yield name, model_type


if __name__ == "__main__":
    site = Path(sys.argv[1] if len(sys.argv) > 1 else sysconfig.get_paths()["purelib"])
    for package, model_type in types(site):
        print(package, model_type)
