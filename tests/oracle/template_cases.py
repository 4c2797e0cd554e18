"""Conversations that chat templates are compared on: a name and the variables of `apply_chat_template`."""


def say(role, content, **more):
    return {"role": role, "content": content, **more}


def call(name, arguments, id="call_001"):
    return {"type": "function", "id": id, "function": {"name": name, "arguments": arguments}}


def tool(name, description, properties, required):
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


SYSTEM = say("system", "You are brief & kind; <b>bold</b> is not \"used\".")
HELLO = say("user", "Hello, wörld! It's me.")
WEATHER = tool(
    "get_weather",
    "The weather in a city.",
    {
        "city": {"type": "string", "description": "The city's \"name\""},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
        "days": {"type": ["integer", "null"], "minimum": 1, "description": "How many <days>"},
    },
    ["city"],
)
ORDER = tool(
    "place_order",
    "Orders things\nfor people.",
    {
        "items": {
            "type": "array",
            "items": {"type": "object", "properties": {"sku": {"type": "string"}, "price": {"type": "number"}}, "required": ["sku"]},
        },
        "address": {"type": "object", "properties": {"street": {"type": "string"}}, "additionalProperties": False},
        "either": {"anyOf": [{"type": "string"}, {"type": "number"}], "nullable": True},
        "express": {"type": "boolean"},
    },
    [],
)
PLAIN_TOOL = {"type": "function", "function": {"name": "now", "description": "The time", "parameters": {"type": "object", "properties": {}}}}
BARE_TOOL = {"type": "function", "function": {"name": "ping", "description": "Pings"}}
ARGUMENTS = {"city": "Tromsø", "unit": None, "days": 3, "scale": 1.0, "tiny": 1e-07, "big": 12345678901234567890, "flag": True, "list": [], "map": {}}
ROUND = [
    say("user", "What is the weather?"),
    say("assistant", "", tool_calls=[call("get_weather", ARGUMENTS)]),
    say("tool", "{\"temperature\": -3.5}", name="get_weather", tool_call_id="call_001"),
]
THOUGHT = [
    say("user", "2+2?"),
    say("assistant", "4", reasoning_content="Two and two\nare four."),
    say("user", "And 3+3?"),
]
TURNS = [HELLO, say("assistant", "Hi there."), say("user", "How are you?"), say("assistant", "Fine.\n\nAnd you?"), say("user", "Well 🐱 日本語")]
PARTS = [say("user", [{"type": "text", "text": "One."}, {"type": "text", "text": " Two."}])]
IMAGE = [say("user", [{"type": "image"}, {"type": "text", "text": "What is this?"}])]
DOCUMENTS = [{"title": "Oslo", "text": "It rains."}, {"title": "Bergen", "text": "It rains more."}]


def case(name, messages, **variables):
    return name, {"messages": messages, "tools": None, "documents": None, "add_generation_prompt": True, **variables}


TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
BOTH = [WEATHER, ORDER]
CASES = [
    case("user", [HELLO], **TOKENS),
    case("user, no tokens", [HELLO]),
    case("system and user", [SYSTEM, HELLO], **TOKENS),
    case("no generation prompt", [SYSTEM, HELLO], add_generation_prompt=False, **TOKENS),
    case("turns", TURNS, **TOKENS),
    case("system and turns", [SYSTEM, *TURNS], **TOKENS),
    case("answered", TURNS[:2], add_generation_prompt=False, **TOKENS),
    case("answered, prompt again", TURNS[:2], **TOKENS),
    case("empty texts", [say("system", ""), say("user", "")], **TOKENS),
    case("nothing", [], **TOKENS),
    case("null answer", [HELLO, say("assistant", None), say("user", "?")], **TOKENS),
    case("blanks", [say("system", "  s \n"), say("user", "\n\n  u\t "), say("assistant", " a \n"), say("user", " v")], **TOKENS),
    case("unicode", [say("user", "naïve – “quoted” \u00a0 \u2028 \u200b e\u0301 👩‍👩‍👧 𝔘 السلام עברית ไทย \\n \\ ' \" ` {{ x }} {% raw %}")], **TOKENS),
    case("two users", [HELLO, say("user", "Are you there?")], **TOKENS),
    case("system late", [HELLO, say("assistant", "Hi."), say("system", "Be formal."), say("user", "Yes?")], **TOKENS),
    case("two systems", [SYSTEM, say("system", "And quick."), HELLO], **TOKENS),
    case("developer", [say("developer", "Be brief."), HELLO], **TOKENS),
    case("unknown role", [say("robot", "Beep."), HELLO], **TOKENS),
    case("tools", [HELLO], tools=BOTH, **TOKENS),
    case("tools and system", [SYSTEM, HELLO], tools=BOTH, **TOKENS),
    case("small tools", [HELLO], tools=[PLAIN_TOOL, BARE_TOOL], **TOKENS),
    case("no tools, a list", [HELLO], tools=[], **TOKENS),
    case("tool call", ROUND[:2], tools=[WEATHER], add_generation_prompt=False, **TOKENS),
    case("tool answer", ROUND, tools=[WEATHER], **TOKENS),
    case("tool answer, no tools", ROUND, **TOKENS),
    case("tool round", [SYSTEM, *ROUND, say("assistant", "It is cold."), say("user", "Thanks!")], tools=BOTH, **TOKENS),
    case("null with a call", [ROUND[0], {**ROUND[1], "content": None}, ROUND[2]], tools=[WEATHER], **TOKENS),
    case("words with a call", [ROUND[0], {**ROUND[1], "content": "Let me see."}, ROUND[2]], tools=[WEATHER], **TOKENS),
    case(
        "arguments as text",
        [ROUND[0], say("assistant", "", tool_calls=[call("get_weather", "{\"city\": \"Oslo\"}")]), ROUND[2]],
        tools=[WEATHER],
        **TOKENS,
    ),
    case(
        "two calls",
        [
            ROUND[0],
            say("assistant", "", tool_calls=[call("get_weather", {"city": "Oslo"}, "abcdefgh1"), call("place_order", {"items": [{"sku": "a", "price": 2.5}]}, "abcdefgh2")]),
            say("tool", "cold", name="get_weather", tool_call_id="abcdefgh1"),
            say("tool", {"ok": True, "total": 2.5, "note": None}, name="place_order", tool_call_id="abcdefgh2"),
        ],
        tools=BOTH,
        **TOKENS,
    ),
    case("nine letters for an id", [ROUND[0], say("assistant", "", tool_calls=[call("now", {}, "abcdefghi")]), say("tool", "noon", name="now", tool_call_id="abcdefghi")], tools=[PLAIN_TOOL], **TOKENS),
    case("reasoning with a call", [ROUND[0], {**ROUND[1], "reasoning_content": "I should look."}, ROUND[2]], tools=[WEATHER], **TOKENS),
    case("reasoning", THOUGHT, **TOKENS),
    case("reasoning as thinking", [say("user", "2+2?"), say("assistant", "4", thinking="Easy."), say("user", "Sure?")], **TOKENS),
    case("reasoning inline", [say("user", "2+2?"), say("assistant", "<think>\nEasy.\n</think>\n\n4"), say("user", "Sure?")], **TOKENS),
    case("reasoning kept", THOUGHT, enable_thinking=True, clear_thinking=False, preserve_thinking=True, truncate_history_thinking=False, **TOKENS),
    case("reasoning last", THOUGHT[:2], add_generation_prompt=False, **TOKENS),
    case("thinking on", [SYSTEM, HELLO], enable_thinking=True, thinking=True, **TOKENS),
    case("thinking off", [SYSTEM, HELLO], enable_thinking=False, thinking=False, **TOKENS),
    case("thinking on with tools", ROUND, tools=[WEATHER], enable_thinking=True, thinking=True, **TOKENS),
    case("thinking off with tools", ROUND, tools=[WEATHER], enable_thinking=False, thinking=False, **TOKENS),
    case("thinking off, reasoned before", THOUGHT, enable_thinking=False, thinking=False, **TOKENS),
    case("told to think", [say("system", "Answer. /think"), HELLO], **TOKENS),
    case("told not to think", [say("user", "Hi /no_think")], enable_thinking=True, **TOKENS),
    case("mode of thinking", [HELLO], thinking_mode="thinking", **TOKENS),
    case("mode of chatting", [HELLO], thinking_mode="chat", **TOKENS),
    *[case(f"effort {effort}", [SYSTEM, HELLO], reasoning_effort=effort, enable_thinking=True, thinking=True, **TOKENS) for effort in ("none", "minimal", "low", "medium", "high", "xhigh", "max")],
    case("budget", [HELLO], thinking_budget=512, reasoning_budget=512, **TOKENS),
    case("no budget", [HELLO], thinking_budget=0, reasoning_budget=0, **TOKENS),
    case("text parts", PARTS, **TOKENS),
    case("text parts everywhere", [say("system", [{"type": "text", "text": "S."}]), *PARTS, say("assistant", [{"type": "text", "text": "A."}]), PARTS[0]], **TOKENS),
    case("image", IMAGE, **TOKENS),
    case("images", [say("user", [{"type": "image_url", "image_url": {"url": "x"}}, {"type": "text", "text": "And"}, {"type": "image"}]), say("assistant", "Cats."), say("user", "Sure?")], **TOKENS),
    case("audio and video", [say("user", [{"type": "audio"}, {"type": "video"}, {"type": "text", "text": "?"}])], **TOKENS),
    case("tool answer in parts", [*ROUND[:2], say("tool", [{"type": "text", "text": "cold"}], tool_call_id="call_001")], tools=[WEATHER], **TOKENS),
    case("documents", [HELLO], documents=DOCUMENTS, **TOKENS),
    case("documents and tools", [SYSTEM, HELLO], documents=DOCUMENTS, tools=[WEATHER], citation_mode="fast", **TOKENS),
    case("names", [say("user", "Hi", name="Ann"), say("assistant", "Hello", name="Bob"), say("user", "Bye", name="Ann")], **TOKENS),
    case("a number and a truth", [say("user", 3.0), say("assistant", True), say("user", "ok")], **TOKENS),
]
