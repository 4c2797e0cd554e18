"""The cases of the channel parser through the parsers of mlx-lm and vllm-mlx: where they differ, as a Markdown table.

Run by hand, in an environment with channels.requirements.txt and `pip install --no-deps vllm-mlx==0.6.0`:
    python tests/oracle/channels.py src-tauri/crates/prompt/tests/fixtures/channels.json > channels.md
Every case comes character by character and then ends with a stop token, as in the servers of both.
"""

import importlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace

from mlx_lm.generate import TextStateMachine, make_text_state_machine

# format: mlx-lm's thought markers and tool parser, vllm-mlx's reasoning parser and tool parser; None if there is none.
THINK = ("<think>", "</think>")
PEERS = {
    "cohere": (None, None, None, None),
    "deepseek": (THINK, None, "deepseek_r1", "deepseek"),
    "deepseek-dsml": (THINK, None, "deepseek_v4", "deepseek_v4"),
    "function-gemma": (None, "function_gemma", None, None),
    "gemma4": (("<|channel>thought", "<channel|>"), "gemma4", "gemma4", "gemma4"),
    "glm": (THINK, "glm47", "glm4", "glm47"),
    "granite": (THINK, None, "qwen3", "granite"),
    "harmony": (None, None, "harmony", "harmony"),
    "kimi-k2": (THINK, "kimi_k2", "qwen3", "kimi"),
    "kimi-k3": (("<|open|>think<|sep|>", "<|close|>think<|sep|>"), "kimi_k3", None, None),
    "lfm2": (THINK, "pythonic", "qwen3", None),
    "llama3": (None, None, None, "llama"),
    "longcat": (("<longcat_think>", "</longcat_think>"), "longcat", None, None),
    "minicpm": (THINK, "minicpm5", "qwen3", None),
    "minimax": (THINK, "minimax_m2", "qwen3", "minimax"),
    "mistral": (None, "mistral", "mistral", "mistral"),
    "nemotron": (THINK, None, "qwen3", "nemotron"),
    "qwen": (THINK, "json_tools", "qwen3", "qwen"),
    "qwen-coder": (THINK, "qwen3_coder", "qwen3", "qwen3_xml"),
}


def mlx_lm(peer, case, tools):
    """As mlx-lm's server reads an answer that ends with a stop token."""
    think, parser, _, _ = peer
    module = importlib.import_module(f"mlx_lm.tool_parsers.{parser}") if parser else None
    tokenizer = SimpleNamespace(
        has_thinking=think is not None,
        think_start=think and think[0],
        think_end=think and think[1],
        has_tool_calling=module is not None,
        tool_call_start=module and module.tool_call_start,
        tool_call_end=module and module.tool_call_end,
        response_transitions={},
        structural_markers=(),
    )
    machine = make_text_state_machine(tokenizer)
    state = machine.make_state("reasoning" if case.get("opened") and think else "normal")
    reasoning = text = tool = ""
    calls, bodies, before = [], [], None
    for character in [*case["source"], None]:
        if character is None:
            state, current = TextStateMachine.discard(state)
            segments = [(current, "")]
        else:
            state, segments = TextStateMachine.split(state, character)
        for current, clean in segments:
            if current == "reasoning":
                reasoning += clean
            elif current == "tool":
                tool += clean
            else:
                if before == "tool":
                    bodies.append(tool)
                    tool = ""
                text += clean
            before = current
    if before == "tool" and tool:
        bodies.append(tool)
    for body in bodies:
        try:
            found = module.parse_tool_call(body, tools)
            calls += found if isinstance(found, list) else [found]
        except Exception:
            calls.append({"name": "(lost)", "arguments": {}})
    return reasoning, text, [(call["name"], call["arguments"]) for call in calls]


def vllm_mlx(peer, case, tools):
    """As vllm-mlx's server streams an answer: reasoning first, then the tool parser on the whole content."""
    from vllm_mlx.reasoning import get_parser
    from vllm_mlx.tool_parsers import ToolParserManager

    _, _, reasoner, caller = peer
    reasoning, text = "", ""
    if reasoner:
        parser = get_parser(reasoner)()
        parser.reset_state(implicit_mode=bool(case.get("opened")))
        previous = ""
        for character in case["source"]:
            message = parser.extract_reasoning_streaming(previous, previous + character, character)
            previous += character
            if message:
                reasoning += message.reasoning or ""
                text += message.content or ""
        message = parser.finalize_stream()
        if message:
            reasoning += message.reasoning or ""
            text += message.content or ""
    else:
        text = case["source"]
    calls = []
    if caller:
        # Harmony's calls stand in a channel of their own, which the reasoning parser takes away.
        source = case["source"] if caller == "harmony" else text
        found = ToolParserManager.get_tool_parser(caller)(None).extract_tool_calls(source, {"tools": tools})
        if found.tools_called:
            calls = [(call["name"], json.loads(call["arguments"])) for call in found.tool_calls]
            text = found.content or ""
    return reasoning, text, calls


def ours(case):
    parts = {"T": "", "A": ""}
    calls = []
    for event in case["events"]:
        kind, body = event[0], event[2:]
        if kind in parts:
            parts[kind] += body
        elif kind == "C":
            name, arguments = body.split("{", 1)
            calls.append((name, json.loads("{" + arguments)))
    return parts["T"], parts["A"], calls


def shown(reading):
    if isinstance(reading, str):
        return reading
    thought, text, calls = reading
    parts = [f"T {thought!r}"] if thought else []
    parts += [f"A {text!r}"] if text else []
    parts += [f"C {name}{json.dumps(arguments, ensure_ascii=False)}" for name, arguments in calls]
    return " · ".join(parts) or "nothing"


def same(a, b):
    return not isinstance(a, str) and (a[0].strip(), a[1].strip(), a[2]) == (b[0].strip(), b[1].strip(), b[2])


def cell(text):
    return "`" + text.replace("|", "\\|").replace("`", "'").replace("\n", "\\n") + "`"


def main():
    fixture = json.loads(Path(sys.argv[1]).read_text())
    totals, rows = [], []
    for name, cases in fixture["formats"].items():
        if name not in PEERS:
            continue
        peer, counts = PEERS[name], {"mlx-lm": 0, "vllm-mlx": 0}
        has = {"mlx-lm": any(peer[:2]), "vllm-mlx": any(peer[2:])}
        asked = [case for case in cases if case.get("thinking") != "off"]
        for case in asked:
            right, readings = ours(case), []
            for label, read in (("mlx-lm", mlx_lm), ("vllm-mlx", vllm_mlx)):
                if not has[label]:
                    readings.append("–")
                    continue
                try:
                    reading = read(peer, case, fixture["tools"])
                except Exception as error:
                    reading = f"{type(error).__name__}"
                equal = same(reading, right)
                counts[label] += equal
                readings.append("same" if equal else cell(shown(reading)))
            if any(reading not in ("same", "–") for reading in readings):
                source = cell(case["source"]) + (" (opened)" if case.get("opened") else "")
                rows.append(f"| {name} | {source} | {cell(shown(right))} | {readings[0]} | {readings[1]} |")
        totals.append((name, len(asked), *(counts[label] if has[label] else "no parser" for label in counts)))
    print("# The channel parser beside those of mlx-lm 0.32.2 and vllm-mlx 0.6.0\n")
    print("Made by `tests/oracle/channels.py` from `tests/fixtures/channels.json`; the cases come character by character and end")
    print("with a stop token. Whitespace at the ends is not compared. T is a thought, A the answer, C a call. Where one of the two")
    print("has no parser for the calls of a format, its parser for thoughts alone was run, so that calls differ.\n")
    print("| format | cases | read alike by mlx-lm | by vllm-mlx |\n|-|-|-|-|")
    for row in totals:
        print("| " + " | ".join(map(str, row)) + " |")
    print("\n| format | written | Ponder | mlx-lm | vllm-mlx |\n|-|-|-|-|-|")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
