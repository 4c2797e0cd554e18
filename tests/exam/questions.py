"""Pebble's exam: questions from the generator that Pebble learnt from, with the answers it must give.

usage: questions.py --training DIR --count N --seed S      prints a JSON list

Every skill gets the same number of questions, half of them with thinking; N is rounded up to that. A question is
{"skill", "thinking", "messages", "tools", "answer"}: the answer is {"text": …}, {"one_of": […]}, {"story": true} or
{"call": {"name": …, "arguments": …}}.
"""
import argparse
import json
import random
import sys

parser = argparse.ArgumentParser()
parser.add_argument("--training", required=True)
parser.add_argument("--count", type=int, required=True)
parser.add_argument("--seed", type=int, required=True)
args = parser.parse_args()
sys.path.insert(0, args.training)

import dialogues  # noqa: E402

SKILLS = [function.__name__ for function in dialogues.FUNCS] + ["memory", "tools"]
GREETINGS = ["Hello! How can I help you?", "Hi! What can I do for you?"]


def user(text):
    return {"role": "user", "content": text}


def question(rng, skill):
    if skill == "memory":
        (told, _, reply), (asked, _, answer) = dialogues.memory(rng)
        return [user(told), {"role": "assistant", "content": reply}, user(asked)], [], {"text": answer}
    if skill == "tools":
        made = dialogues.tool_dialogue(rng)
        call = made.turns[1]["tool_calls"][0]["function"]
        return [user(made.turns[0]["content"])], made.tools, {"call": {"name": call["name"], "arguments": call["arguments"]}}
    asked, _, answer, _ = getattr(dialogues, skill)(rng)
    if skill == "story":
        return [user(asked)], [], {"story": True}
    if skill == "small_talk" and answer in dialogues.JOKES + GREETINGS:
        return [user(asked)], [], {"one_of": dialogues.JOKES if answer in dialogues.JOKES else GREETINGS}
    return [user(asked)], [], {"text": answer.strip()}


rng = random.Random(args.seed)
exam = []
for skill in SKILLS:
    for thinking in (False, True):
        for _ in range(-(-args.count // (2 * len(SKILLS)))):
            messages, tools, answer = question(rng, skill)
            exam.append({"skill": skill, "thinking": thinking, "messages": messages, "tools": tools, "answer": answer})
json.dump(exam, sys.stdout, ensure_ascii=False)
