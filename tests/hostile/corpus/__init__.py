"""Hostile files, made by scripts with seeds: nothing large is in the repository."""
from . import documents, images, imports, models

# Files of a full run, by kind. Templates come from another program.
COUNTS = {"templates": 300, "documents": 200, "images": 200, "imports": 100, "models": 100}
PATTERNS = {"documents": documents.PATTERNS, "images": images.PATTERNS, "imports": imports.PATTERNS, "models": models.PATTERNS}
