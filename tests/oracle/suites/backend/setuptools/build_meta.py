"""Answers pip's question for a source distribution's metadata with what the distribution says of itself."""

import re
from pathlib import Path


def prepare_metadata_for_build_wheel(directory, settings=None):
    text = Path("PKG-INFO").read_text()
    name, version = (re.search(rf"^{field}: (.*)$", text, re.M)[1] for field in ("Name", "Version"))
    info = Path(directory) / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(text)
    (info / "WHEEL").write_text("Wheel-Version: 1.0\n")
    return info.name
