"""A plugin of pytest that writes down what a peer's parsers are asked in its own tests, and what they answer.

    PONDER_SUITE=NAME PONDER_SOURCES=FOLDER PONDER_CASES=OUT.jsonl python -m pytest -p recorder tests/…

One line for each question: the text, the tools, what came out, the parser's class. Only of tests that pass, since their answer is
the expected one. A stream is written down as the text and the answer that its pieces make together.
"""

import inspect
import json
import os
import signal
import sys
from pathlib import Path

import pytest

SUITE = os.environ["PONDER_SUITE"]
SOURCES = Path(os.environ["PONDER_SOURCES"])
CASES = Path(os.environ["PONDER_CASES"])
# Longer than any test of a parser needs.
SECONDS = 20

sys.path.insert(0, str(SOURCES))
if SUITE == "vllm":
    import stand_ins

    stand_ins.install(SOURCES)

BASES = {
    "vllm": [("vllm.tool_parsers", "ToolParser"), ("vllm.reasoning", "ReasoningParser"), ("vllm.parser.abstract_parser", "Parser")],
    "vllm-mlx": [("vllm_mlx.tool_parsers", "ToolParser"), ("vllm_mlx.reasoning", "ReasoningParser")],
}
WHOLE = {"extract_tool_calls": "calls", "extract_reasoning": "reasoning", "parse": "both"}
STREAMED = {"extract_tool_calls_streaming": "calls", "extract_reasoning_streaming": "reasoning", "parse_delta": "both"}

wrapped = set()
found = []
streams = {}
depth = 0


def plain(value):
    """A value of pydantic, of a data class or of JSON as JSON."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", exclude_none=True)
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if hasattr(value, "__dict__"):
        return {key: plain(item) for key, item in vars(value).items() if not key.startswith("_")}
    return None


def field(value, name):
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)


def text(value):
    return value if isinstance(value, str) else ""


def tools_of(parser, arguments):
    """The tools that were offered: the parser's own, or those of the request."""
    for holder in [parser, *arguments.values()]:
        tools = field(holder, "tools") or field(holder, "_tools")
        if isinstance(tools, (list, tuple)) and tools:
            listed = [tool for tool in plain(tools) if isinstance(tool, dict)]
            if listed:
                return listed
    return None


def call_of(call):
    function = field(call, "function") or call
    return text(field(function, "name")), text(field(function, "arguments"))


def answer(kind, result):
    """Reasoning, content and calls of what a parser gave for a whole text; `None` if it is no answer."""
    if kind == "reasoning":
        if isinstance(result, tuple) and len(result) == 2:
            return text(result[0]), text(result[1]), []
        return None
    if kind == "both":
        if isinstance(result, tuple) and len(result) == 3:
            return text(result[0]), text(result[1]), [call_of(call) for call in result[2] or []]
        return None
    if field(result, "tool_calls") is None:
        return None
    return "", text(field(result, "content")), [call_of(call) for call in field(result, "tool_calls")]


def free(arguments):
    """True if the model may call tools and need not, so that its output alone determines the calls."""
    chosen = [field(argument, "tool_choice") for argument in arguments.values() if field(argument, "tools")]
    # A request without tools says none by itself; a test's own stand-in says anything.
    return not any(choice in ("none", "required") or hasattr(choice, "function") and hasattr(choice, "model_dump") for choice in chosen)


def record(kind, parser, source, arguments, answered, streamed):
    reasoning, content, calls = answered
    if kind != "reasoning" and not free(arguments):
        return
    if kind == "both" and getattr(parser, "reasoning_parser", parser) is None:
        kind = "calls"
    # A stream of which the test shows the end alone.
    if streamed and any(name not in source for name, _ in calls):
        return
    read = []
    for name, written in calls:
        try:
            read.append({"name": name, "arguments": json.loads(written or "{}")})
        except ValueError:
            # The test is about a call that is not over.
            return
    parsers = {type(part).__name__ for part in [parser, field(parser, "reasoning_parser"), field(parser, "tool_parser")] if isinstance(part, tuple(bases()))}
    case = {"suite": SUITE, "parsers": sorted(parsers), "kind": kind, "streamed": streamed, "source": source, "tools": tools_of(parser, arguments)}
    found.append(case | {"reasoning": reasoning, "content": content, "calls": read})


def wrap_functions():
    """mlx-lm's parsers are modules, each with its markers and a function for what stands between them."""
    for name, module in list(sys.modules.items()):
        function = getattr(module, "parse_tool_call", None)
        if name.startswith("mlx_lm.tool_parsers.") and inspect.isfunction(function) and function not in wrapped:
            module.parse_tool_call = recorded_function(name.rpartition(".")[2], module, function)
            wrapped.add(module.parse_tool_call)


def recorded_function(name, module, function):
    def call(text, tools=None):
        result = function(text, tools)
        calls = plain(result if isinstance(result, list) else [result])
        calls = [{"name": call.get("name"), "arguments": call.get("arguments")} for call in calls]
        # Some begin with the marker that was found, others after it.
        begun = text.startswith(module.tool_call_start)
        source = text if begun else f"{module.tool_call_start}{text}{module.tool_call_end}"
        case = {"suite": SUITE, "parsers": [name], "kind": "calls", "streamed": False, "source": source, "tools": plain(tools)}
        found.append(case | {"reasoning": "", "content": "", "calls": calls})
        return result

    return call


def bases():
    loaded = ((sys.modules.get(module), name) for module, name in BASES.get(SUITE, []))
    return [getattr(module, name) for module, name in loaded if module and hasattr(module, name)]


def wrap_all():
    """Wraps the methods of every parser that is loaded by now."""
    todo = bases()
    while todo:
        kind = todo.pop()
        todo += kind.__subclasses__()
        if kind in wrapped:
            continue
        wrapped.add(kind)
        for name, method in list(vars(kind).items()):
            if name in WHOLE and inspect.isfunction(method):
                setattr(kind, name, whole(method, WHOLE[name]))
            elif name in STREAMED and inspect.isfunction(method):
                setattr(kind, name, streamed(method, STREAMED[name]))


def outermost(method, then):
    """The method; what `then` writes down is of the outermost call alone."""

    def call(self, *arguments, **options):
        global depth
        depth += 1
        try:
            result = method(self, *arguments, **options)
        finally:
            depth -= 1
        if depth == 0:
            bound = inspect.signature(method).bind(self, *arguments, **options)
            bound.apply_defaults()
            then(self, bound.arguments, result)
        return result

    call.__wrapped__ = method
    return call


def whole(method, kind):
    def then(self, arguments, result):
        source = next((arguments[name] for name in ("model_output", "text", "content") if isinstance(arguments.get(name), str)), None)
        answered = answer(kind, result)
        if source is not None and answered:
            record(kind, self, source, dict(arguments), answered, False)

    return outermost(method, then)


def streamed(method, kind):
    def then(self, arguments, result):
        delta = arguments.get("delta_text")
        key = (id(self), kind)
        # A test that does not say what came before goes on with its stream.
        begins = arguments.get("previous_text") == "" and arguments.get("current_text") == delta and kind != "both"
        if begins and key in streams:
            end_stream(key)
        stream = streams.setdefault(key, {"parser": self, "kind": kind, "source": "", "reasoning": "", "content": "", "calls": {}, "arguments": {}})
        if arguments.get("previous_text") and arguments["previous_text"] != stream["source"]:
            stream["broken"] = True
        stream["source"] += text(delta)
        stream["arguments"] = dict(arguments)
        take_delta(stream, result)

    return outermost(method, then)


def take_delta(stream, delta):
    if delta is None:
        return
    stream["content"] += text(field(delta, "content"))
    stream["reasoning"] += text(field(delta, "reasoning"))
    for number, call in enumerate(field(delta, "tool_calls") or []):
        index = field(call, "index")
        name, arguments = call_of(call)
        before = stream["calls"].setdefault(number if index is None else index, ["", ""])
        before[0] += name
        before[1] += arguments


def end_stream(key):
    stream = streams.pop(key)
    calls = [tuple(call) for _, call in sorted(stream["calls"].items())]
    if stream["source"] and not stream.get("broken"):
        record(stream["kind"], stream["parser"], stream["source"], stream["arguments"], (stream["reasoning"], stream["content"], calls), True)


def too_long(*_):
    raise TimeoutError("the test takes too long")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(SECONDS)
    wrap_all()
    wrap_functions()
    found.clear()
    streams.clear()


def pytest_runtest_call(item):
    wrap_all()


def pytest_runtest_makereport(item, call):
    if call.when != "call":
        return
    signal.alarm(0)
    # A test that looks at the middle of a stream expects nothing of its end.
    for key in list(streams):
        end_stream(key)
    if call.excinfo is None:
        with CASES.open("a") as out:
            for case in found:
                out.write(json.dumps({"test": item.nodeid} | case, ensure_ascii=False) + "\n")
    found.clear()
