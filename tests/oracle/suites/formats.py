"""Which of Ponder's formats a peer's parser is for."""

import re

# The first that fits the name of a parser counts; a name without a format is what Ponder does not know, and is left
# out.
FORMATS = [
    (r"Apertus", "apertus"),
    (r"DeepSeekV(32|4)", "deepseek-dsml"),
    (r"DeepSeek", "deepseek"),
    (r"Dots", "dots"),
    (r"FunctionGemma|^function_gemma", "function-gemma"),
    (r"Functionary", "functionary"),
    (r"Gemma4|^gemma4", "gemma4"),
    (r"GigaChat", "gigachat"),
    (r"Poolside", "glm"),
    (r"Glm4|^glm", "glm"),
    (r"GptOss|Harmony", "harmony"),
    (r"Granite20b", "granite-20b"),
    (r"Granite4", "qwen-coder"),
    (r"GraniteThinking", "qwen-coder"),
    (r"GraniteReasoning", "granite-3.2"),
    (r"Granite", "granite"),
    (r"HYV3", "hunyuan-3"),
    (r"Hunyuan", "hunyuan"),
    (r"Internlm2", "internlm2"),
    (r"Jamba", "thinking"),
    (r"K2Horizon", "k2-horizon"),
    (r"KimiK3|^kimi_k3", "kimi-k3"),
    (r"Kimi|^kimi_k2", "kimi-k2"),
    (r"Lfm2|^pythonic", "lfm2"),
    (r"Llama4", "llama4"),
    (r"Llama|Pythonic(?=ToolParser)(?<!Olmo3Pythonic)", "llama3"),
    (r"Longcat|^longcat", "longcat"),
    (r"MiniCPM5|^minicpm5", "minicpm"),
    (r"Mini[Mm]axM3", "minimax-m3"),
    (r"Mini[Mm]axM2|MiniMax|^minimax_m2", "minimax"),
    (r"Mistral|^mistral", "mistral"),
    (r"Muse|^muse", "muse"),
    (r"Olmo3", "olmo3"),
    (r"Phi4Mini", "functools"),
    (r"SeedOss", "seed"),
    (r"Step3p5", "qwen-coder"),
    (r"xLAM", "xlam"),
    (r"Hermes|QwenToolParser|^json_tools|MiMo|Nemotron|Qwen3|MiniCPMV|^qwen3_coder", "qwen-coder"),
]

THOUGHTS = {
    "<think>": "</think>",
    "<|channel>": "<channel|>",
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",
    "<mm:think>": "</mm:think>",
    "<think:opensource>": "</think:opensource>",
    "<|open|>think<|sep|>": "<|close|>think<|sep|>",
}


def format_of(parsers):
    names = sorted(parsers, key=lambda name: ("Reasoning" in name, name))
    for pattern, format in FORMATS:
        if any(re.search(pattern, name) for name in names):
            return format
    return None


def opened(case):
    """True if the prompt opened the thought. Other projects' parsers do not know that: for them, text that ends like a
    thought is one."""
    source, reasoning = case["source"].lstrip(), case["reasoning"].strip()
    if any(source.startswith(marker) for marker in [*THOUGHTS, "<|start|>", " to="]):
        return False
    if any(source.startswith(marker) for marker in THOUGHTS.values()):
        return True
    if case["kind"] != "calls":
        return bool(reasoning) and source.startswith(reasoning[:20])
    # A parser of calls leaves out a thought that it knows.
    closed = [source.index(marker) for marker in THOUGHTS.values() if marker in source and marker not in case["content"]]
    return bool(closed) and source[: min(closed)].strip()[:20] not in case["content"]


def depth(value):
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0


# Ends of answers, which never reach our parser.
ENDS = re.compile(r"(<\|im_end\|>|<turn\|>|<｜end▁of▁sentence｜>|<\|role_end\|>|<\|END_OF_TURN_TOKEN\|>)$")


def named(case):
    """The case with Ponder's name of its format; `None` if it has none or is no case for a parser."""
    format = format_of(case["parsers"])
    if format == "granite" and "<tool_call>" in case["source"]:
        format = "qwen-coder"
    if format == "hunyuan-3" and ":opensource>" not in case["source"]:
        # The preview's markers, which had no ending; no model that loads here writes them.
        format = None
    if format == "functionary":
        # Its three versions, by the texts that they write; the first is obsolete.
        format = None if "<|recipient|>" in case["source"] else "qwen-coder" if "<function=" in case["source"] else "xlam"
    # Deeper than any program of ours reads; tokens that end an answer or are dropped before a parser sees them.
    if format is None or depth(case["calls"]) > 100 or re.search("<bos>|<eos>", case["source"]):
        return None
    kept = {name: case[name] for name in ("suite", "test", "kind", "streamed", "source", "tools", "reasoning", "content", "calls")}
    kept["source"] = ENDS.sub("", kept["source"])
    return kept | {"format": format, "parser": case["parsers"][0], "opened": opened(case)}
