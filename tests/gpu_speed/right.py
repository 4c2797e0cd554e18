"""Right answers on an NVIDIA card: the same responses with and without recorded steps, logits and perplexity beside the
processor's, steps that are recorded, and Pebble's exams. Prints a line for each and ends with 1 if one is not as it
must be.

    python right.py --bench PONDER_BENCH --cuda MLX_CUDA/lib --cpu MLX_CPU/lib --shapes DIR [--worker TEST]
"""
import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Its tests run there.
ENGINE = ROOT / "src-tauri/crates/engine"
# A family each.
SHAPES = ["qwen3-4b-small", "qwen3-30b-a3b-small", "gpt-oss-20b-small", "gemma4-e2b-small", "llama-8b-small",
          "qwen3.5-4b-small"]
# Those whose steps are recorded; experts have to be quantized for that.
RECORDED = ["qwen3-4b-small", "gemma4-e2b-small", "llama-8b-small", "gpt-oss-20b"]
# Half of them are within a window of 128 tokens.
LENGTHS = [40, 150]
# The largest difference of logits as a part of the largest one: numbers of 16 bits on the card, of 32 on the processor.
LOGITS = 0.05
# The part by which the perplexity may differ.
PERPLEXITY = 0.005
# The least part of responses that are the same to the last token. A rounding decides between two tokens as likely.
SAME = 0.99


class Checks:
    def __init__(self):
        self.failed = False

    def show(self, what, right, figures):
        self.failed |= not right
        print(f"{'right' if right else 'WRONG'}  {what}: {figures}", flush=True)


def run(command, libraries, **variables):
    folders = [str(libraries), os.environ.get("LD_LIBRARY_PATH", "")]
    environment = dict(os.environ, LD_LIBRARY_PATH=":".join(filter(None, folders)), **variables)
    ran = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True, env=environment)
    if ran.returncode:
        raise SystemExit(f"{command[0]} {command[1]} failed")
    return ran.stdout


def answers(args, checks):
    command = [args.bench, "answers", "--model", args.model, "--prompts", args.prompts]
    plain, recorded = (
        json.loads(run(command, args.cuda, PONDER_GRAPHS=graphs))["answers"] for graphs in ("0", "1")
    )
    same = {}
    for wanted, found in zip(plain, recorded, strict=True):
        right, all_of_way = same.get(wanted["way"], (0, 0))
        same[wanted["way"]] = (right + (wanted["tokens"] == found["tokens"]), all_of_way + 1)
    right = sum(count for count, _ in same.values())
    figures = ", ".join(f"{way} {count} of {of}" for way, (count, of) in same.items())
    checks.show("responses with and without recorded steps", right >= SAME * len(plain), figures)


def logits(args, checks):
    for shape in SHAPES:
        prepare = [args.bench, "speed", "--json", "--shape", shape, "--shapes", args.shapes, "--prompt-tokens", 4]
        run([*prepare, "--generate", 2, "--repeat", 1], args.cuda)
        worst = 0.0
        for length in LENGTHS:
            tokens = ",".join(str(place * 17 % 1000 + 20) for place in range(length))
            command = [args.bench, "logits", "--model", args.shapes / shape, "--tokens", tokens]
            wanted = json.loads(run(command, args.cpu, PONDER_KERNELS="0"))["logits"]
            for chunk in (length, 1):
                found = json.loads(run([*command, "--chunk", chunk], args.cuda))["logits"]
                apart = max(abs(a - b) for a, b in zip(wanted, found, strict=True))
                worst = max(worst, apart / max(map(abs, wanted)))
        checks.show(f"logits of {shape} beside the processor's", worst <= LOGITS, f"{worst:.4f} of the largest")


def recorded(args, checks):
    """The first process compiles and compares, the second knows and begins with what the first ended with."""
    for shape in RECORDED:
        command = [args.bench, "speed", "--json", "--shape", shape, "--shapes", args.shapes, "--prompt-tokens", 4]
        said = [run([*command, "--generate", 4, "--repeat", 1], args.cuda) for _ in range(2)]
        steps = [json.loads(text)["ours"]["recorded"] for text in said]
        checks.show(f"steps of {shape} are recorded, by a first and a second process", all(steps), steps)


def perplexity(args, checks):
    command = [args.bench, "perplexity", "--model", args.model, "--json", "--tokens", args.tokens, args.text]
    wanted, found = (json.loads(run(command, libraries))["perplexity"] for libraries in (args.cpu, args.cuda))
    apart = abs(found - wanted) / wanted
    checks.show("perplexity beside the processor's", apart <= PERPLEXITY, f"{found:.4f}, there {wanted:.4f}")


def exams(args, checks):
    for name, program in (("Pebble's exam", args.worker), ("Pebble's pictures", args.vision)):
        if program:
            folders = [str(args.cuda), os.environ.get("LD_LIBRARY_PATH", "")]
            environment = dict(os.environ, LD_LIBRARY_PATH=":".join(filter(None, folders)))
            command = [str(program), "--test-threads=1", "--nocapture", "exam"]
            output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
            ran = subprocess.run(command, **output, env=environment, cwd=ENGINE)
            lines = [line for line in ran.stdout.splitlines() if "%" in line or "test result" in line]
            checks.show(name, ran.returncode == 0 and "1 passed" in ran.stdout, " ".join(lines[-2:]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", type=Path, required=True, help="ponder-bench")
    parser.add_argument("--cuda", type=Path, required=True, help="the folder of MLX's CUDA build")
    parser.add_argument("--cpu", type=Path, required=True, help="the folder of MLX's build for processors")
    parser.add_argument("--shapes", type=Path, required=True, help="where models of random weights are written")
    parser.add_argument("--worker", type=Path, help="the engine's test program of that name")
    parser.add_argument("--vision", type=Path, help="the engine's test program of that name")
    parser.add_argument("--model", default="pebble", help="what answers, and predicts the text")
    parser.add_argument("--prompts", type=int, default=200)
    parser.add_argument("--text", type=Path, default=ROOT / "ARCHITECTURE.md")
    parser.add_argument("--tokens", type=int, default=4000)
    args = parser.parse_args()
    checks = Checks()
    exams(args, checks)
    answers(args, checks)
    perplexity(args, checks)
    logits(args, checks)
    recorded(args, checks)
    sys.exit(checks.failed)


if __name__ == "__main__":
    main()
