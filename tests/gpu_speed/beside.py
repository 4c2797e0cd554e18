"""The parts that all engines share: sizes, rows of the table, and the modules of the bench of processors, which stand
in the folder beside this one."""
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ORACLE, CPU_SPEED = HERE.parent / "oracle", HERE.parent / "cpu_speed"
# At the end, so that a name of this folder comes first.
sys.path.append(str(CPU_SPEED))

# Prompts that are read, and those of them after which decoding is shown.
PROMPTS, DECODED = [32, 512, 2048], [32, 2048]
GENERATE = 160
SEQUENCES = [1, 2, 4, 8, 16, 32]
BATCH_PROMPT, BATCH_GENERATE = 128, 100


def environment(*libraries):
    """The variables of a process that finds libraries in these folders before it looks elsewhere."""
    folders = [str(folder) for folder in libraries if folder] + [os.environ.get("LD_LIBRARY_PATH", "")]
    return dict(os.environ, LD_LIBRARY_PATH=":".join(filter(None, folders)), PYTHONDONTWRITEBYTECODE="1")


def decode_row(length):
    return f"decode after {length:,}, tokens/s"


def share_row(length):
    return f"decode after {length:,}, % of the roofline"


def speed_rows(figures):
    """Rows of figures with the names that `ponder-bench speed` and `tests/oracle/bench.py` use."""
    decode, first = {}, {}
    for figure in figures:
        length = figure["prompt_tokens"]
        if length in DECODED:
            decode[decode_row(length)] = figure["decode_tokens_per_second"]
        first[f"first token after {length:,}, ms"] = figure["first_token_ms"]
    return decode | first | {"load, ms": figures[0]["load_ms"]}


def batch_rows(sequences, rates):
    return {f"decode of {count} together, tokens/s": rate for count, rate in zip(sequences, rates, strict=True)}


def shares(figures, engines, work, bandwidth):
    """Rows that say how much of the roofline decoding reaches: weights that are read in a second, to the bandwidth."""
    rows = {}
    for length in DECODED:
        for engine in engines:
            if rates := figures.get(decode_row(length), {}).get(engine.name):
                part = engine.bytes_a_token(work) / bandwidth
                rows.setdefault(share_row(length), {})[engine.name] = [100 * part * rate for rate in rates]
    return rows
