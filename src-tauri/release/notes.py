"""Prints what CHANGELOG.md says about a version: notes.py X.Y.Z"""
import re
import sys
from pathlib import Path

changes = (Path(__file__).resolve().parents[2] / "CHANGELOG.md").read_text()
found = re.search(rf"^## {re.escape(sys.argv[1])}\b[^\n]*\n(.*?)(?=^## |\Z)", changes, re.MULTILINE | re.DOTALL)
if not found or not found[1].strip():
    sys.exit(f"CHANGELOG.md says nothing about {sys.argv[1]}")
print(found[1].strip())
