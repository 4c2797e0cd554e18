"""Runs scripts of this folder one after another in one process, since frameworks take longer to be imported than to ask.

    several.py URL EMBEDDER SCRIPT...    where EMBEDDER is what the server calls an embedding model; empty if it has none"""
import runpy
import sys
from pathlib import Path

URL, EMBEDDER, SCRIPTS = sys.argv[1], sys.argv[2], sys.argv[3:]
FOLDER = Path(__file__).parent

for script in SCRIPTS:
    sys.argv = [script, URL, *([EMBEDDER] if EMBEDDER else [])]
    runpy.run_path(str(FOLDER / script), run_name="__main__")
