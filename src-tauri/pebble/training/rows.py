"""Token rows for the tower's training: questions about pictures in Pebble's own turns."""
import random

import numpy as np
from tokenizers import Tokenizer

import dialogues as D
import pictures as P
from tower import HERE, IDS

#: Skills that ask about two pictures.
PAIRS = ("both", "same", "changed", "more")
THOUGHT = "<|channel>thought\nLook at the picture.\n<channel|>"


class Rows:
    def __init__(self):
        self.tok = Tokenizer.from_file(f"{HERE}/../model/tokenizer.json")
        self.known = {}

    def encode(self, text):
        if text not in self.known:
            if len(self.known) > 200_000:
                self.known.clear()
            self.known[text] = self.tok.encode(text, add_special_tokens=False).ids
        return self.known[text]

    def row(self, pictures, tokens, turns, thinking=False, system="", before=()):
        """(ids, targets) of one dialogue: text turns `before`, then `pictures` runs of `tokens` placeholders with the first of `turns`; a turn is (question, answer)."""
        ids = [2]
        if thinking or system:
            ids = ids + self.encode("<|turn>system\n" + ("<|think|>\n" if thinking else "") + system + "<turn|>\n")
        target = [0] * len(ids)
        shown = len(before)
        turns = [*before, *turns]
        for i, (q, a) in enumerate(turns):
            ask = self.encode("\n<|turn>user\n" if i else "<|turn>user\n")
            if i == shown:
                ask = ask + ([IDS["boi"]] + [IDS["image"]] * tokens + [IDS["eoi"]]) * pictures + IDS["look"]
            ask = ask + self.encode(q) + self.encode("<turn|>\n<|turn>model\n")
            say = (self.encode(THOUGHT) if thinking and i + 1 == len(turns) else []) + self.encode(a) + [106]
            ids += ask + say
            target += [0] * len(ask) + [int(i >= shown)] * len(say)
        return ids, target

    def prompt(self, pictures, tokens, question, thinking=False):
        ids, target = self.row(pictures, tokens, [(question, "")], thinking)
        return ids[: target.index(1)]


def text_turn(r):
    while True:
        q, _, a, hard = D.question(r)
        if not hard and len(q) + len(a) < 90:
            return q, a


def pad(rows, length=None):
    length = length or max(len(i) for i, _ in rows)
    ids, target = np.zeros((len(rows), length), np.int16), np.zeros((len(rows), length), bool)
    for n, (i, t) in enumerate(rows):
        ids[n, : len(i)], target[n, : len(t)] = i, t
    return ids, target
