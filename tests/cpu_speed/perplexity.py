"""The perplexity of each engine on the same tokens of a text that every computer has after the set-up: Python's own
reference, which the module pydoc_data brings. Its words depend on Python's version."""
import json
import platform
import tempfile
from pathlib import Path

from pydoc_data.topics import topics

from engines import LlamaCpp, Ours

TEXT = "\n\n".join(topics[name] for name in sorted(topics))


def measure(engines, work, args):
    """The perplexity by engine; the tokens are those of ours, so that no other tokenizer counts."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        text, tokens = Path(folder) / "text.txt", Path(folder) / "tokens.json"
        text.write_text(TEXT)
        for engine in engines:
            if isinstance(engine, Ours):
                figure = engine.perplexity(work, text, args.tokens)
                tokens.write_text(json.dumps(figure["tokens"]))
            else:
                figure = engine.perplexity(work, tokens)
            found[engine.name] = {"perplexity": figure["perplexity"], "predictions": figure["predictions"]}
    counts = {figure["predictions"] for figure in found.values()}
    assert len(counts) == 1, f"the engines predicted different numbers of tokens: {counts}"
    return found


def table(predicted, engines, args):
    names = [engine.name for engine in engines]
    count = next(iter(next(iter(predicted.values())).values()))["predictions"]
    text = f"{args.tokens:,} tokens of the reference of Python {platform.python_version()} (pydoc_data.topics)"
    print(f"\n### Perplexity\n\n{text}, {count:,} predictions in chunks of 512")
    print("as `llama-perplexity` makes them; mlx-lm computes in 32 bits.\n")
    print("| weights | " + " | ".join(names) + " |\n|---|" + "---|" * len(names))
    for name, figures in predicted.items():
        cells = [f"{figures[engine]['perplexity']:.4f}" for engine in names]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
