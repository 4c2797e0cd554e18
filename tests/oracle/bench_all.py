"""`ponder-bench speed` for Pebble and the six small shapes, as one table in Markdown: ours, mlx-lm as it is installed and, where
PONDER_ORACLE_PRELOAD names a library, mlx-lm with that."""
import argparse
import json
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
PEBBLE = HERE.parent.parent / "src-tauri/pebble/model"
# A name, where the model is, tokens of the prompt and of the answer, repetitions.
MODELS = [("Pebble", ["--model", str(PEBBLE)], 256, 256, 5)] + [
    (name, ["--shape", name], 32, 64, 3)
    for name in (
        "gemma4-e2b-small",
        "qwen3-4b-small",
        "llama-8b-small",
        "qwen3.5-4b-small",
        "qwen3-30b-a3b-small",
        "gpt-oss-20b-small",
    )
]
COLUMNS = [
    ("decode tok/s", "decode_tokens_per_second", 1),
    ("prefill tok/s", "prefill_tokens_per_second", 1),
    ("first token ms", "first_token_ms", 1),
    ("load ms", "load_ms", 1),
    ("peak MB", "peak_bytes", 1e6),
]


def measure(args, model, prompt, generate, repeat):
    command = [args.bench, "speed", "--json", "--peer", str(HERE / "bench.py"), "--shapes", args.shapes, *model]
    command += ["--prompt-tokens", str(prompt), "--generate", str(generate), "--repeat", str(args.repeat or repeat)]
    ran = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return json.loads(ran.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bench", required=True, help="the program ponder-bench")
    parser.add_argument("--shapes", required=True, help="where random models are written and found again")
    parser.add_argument("--repeat", type=int, help="how often each is measured")
    parser.add_argument("--only", nargs="+", help="names of models")
    parser.add_argument("--json", type=Path, help="a file for the figures")
    args = parser.parse_args()
    engines = [("ours", "ours"), ("peer", "mlx-lm"), ("peer_preloaded", "mlx-lm, preloaded")]
    print("| model | prompt, generated | engine | " + " | ".join(name for name, _, _ in COLUMNS) + " | decode, prefill of ours to it |")
    print("|---|---|---|" + "---|" * (len(COLUMNS) + 1))
    versions, all_figures = {}, []
    for name, model, prompt, generate, repeat in MODELS:
        if args.only and name not in args.only:
            continue
        figures = measure(args, model, prompt, generate, repeat)
        all_figures.append({"name": name, **figures})
        ours = figures["ours"]
        for key, engine in engines:
            if not (found := figures.get(key)):
                continue
            versions[engine] = found["versions"]
            cells = [f"{found[field] / unit:,.1f}" for _, field, unit in COLUMNS]
            ratios = [ours[field] / found[field] for field in ("decode_tokens_per_second", "prefill_tokens_per_second")]
            ratio = "" if key == "ours" else "{:.2f}, {:.2f}".format(*ratios)
            print(f"| {name} | {prompt}, {generate} | {engine} | " + " | ".join(cells) + f" | {ratio} |", flush=True)
    print()
    for engine, version in versions.items():
        print(f"{engine}: {version}")
    if args.json:
        args.json.write_text(json.dumps(all_figures, indent=1))


if __name__ == "__main__":
    main()
