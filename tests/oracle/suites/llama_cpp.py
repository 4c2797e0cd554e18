"""The cases of llama.cpp's tests/test-chat.cpp: what each template's model writes and what is to be read from it.

The file is C++; only what its cases are made of is understood: strings, their sums, lists, and calls of the functions that make
messages. A case that needs more is counted and left out.
"""

import json
import re

import formats

FILE = "vendor/llama.cpp/tests/test-chat.cpp"
TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)|(?:u8)?R"(?P<fence>[^(\s]{0,16})\((?P<raw>.*?)\)(?P=fence)"|(?:u8)?"(?P<text>(?:\\.|[^"\\])*)"|(?P<char>'(?:\\.|[^'\\])+')"""
    r"""|(?P<word>[A-Za-z_]\w*(?:::\w+)*)|(?P<number>\d[\w.]*)|(?P<sign>.)""",
    re.S,
)
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", '"': '"', "\\": "\\", "'": "'"}


class Unknown(Exception):
    """An expression that is none of a case."""


def unescaped(text):
    def one(match):
        word = match[1]
        if word[0] in "uU":
            return chr(int(word[1:], 16))
        if word[0] == "x":
            return "\0x" + word[1:]
        return ESCAPES.get(word, word)

    text = re.sub(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|.)", one, text, flags=re.S)
    # Bytes that are written one by one make characters together.
    return re.sub(r"(?:\0x[0-9a-fA-F]{2})+", lambda run: bytes.fromhex(run[0].replace("\0x", "")).decode("utf-8", "replace"), text)


def tokens(source):
    found = []
    for match in TOKEN.finditer(source):
        kind = match.lastgroup
        if kind == "space":
            continue
        if match["raw"] is not None:
            found.append(("text", match["raw"]))
        elif kind == "text":
            found.append(("text", unescaped(match["text"])))
        else:
            found.append((kind, match[0]))
    return found


def message(content="", reasoning="", name="", arguments="", id=""):
    return {"reasoning": reasoning, "content": content, "calls": [(name, arguments)] if name or id else []}


MESSAGES = {
    "simple_assist_msg": message,
    "message_with_tool_calls": lambda name, arguments: message("", "", name, arguments),
    "message_with_tool_calls_and_reasoning": lambda name, arguments, reasoning: message("", reasoning, name, arguments),
    "message_with_reasoning_content_and_multiple_tool_calls": lambda reasoning, content, calls: {
        "reasoning": reasoning, "content": content, "calls": [tuple(call[:2]) for call in calls]
    },
    "message_with_content_and_tool_call": lambda content, name, arguments: message(content, "", name, arguments),
    "message_with_reasoning_and_tool_call": lambda reasoning, name, arguments: message("", reasoning, name, arguments),
}


class Reader:
    """Reads the file from the left; the names it knows come and go with their blocks."""

    def __init__(self, source):
        self.tokens, self.at = tokens(source), 0
        self.names = [{}]
        self.cases, self.left_out = [], 0

    def peek(self, ahead=0):
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else ("end", "")

    def next(self):
        token = self.peek()
        self.at += 1
        return token

    def take(self, sign):
        if self.peek()[1] != sign or self.peek()[0] == "text":
            raise Unknown(f"{self.peek()[1]!r} instead of {sign!r}")
        self.at += 1

    def lookup(self, name):
        for block in reversed(self.names):
            if name in block:
                return block[name]
        raise Unknown(name)

    def expression(self):
        """A sum."""
        value = self.operand()
        while self.peek() == ("sign", "+"):
            self.at += 1
            more = self.operand()
            if not isinstance(value, str) or not isinstance(more, str):
                raise Unknown("a sum of no strings")
            value += more
        return value

    def operand(self):
        kind, text = self.next()
        if kind == "text":
            while self.peek()[0] == "text":
                text += self.next()[1]
            return text
        if kind == "number":
            return text
        if (kind, text) == ("sign", "{"):
            return self.list("}")
        if (kind, text) == ("sign", "("):
            value = self.expression()
            self.take(")")
            return value
        if kind != "word":
            raise Unknown(text)
        if text in ("true", "false"):
            return text == "true"
        if text in ("std::string", "std::vector") and self.peek() == ("sign", "("):
            self.at += 1
            (value,) = self.list(")")
            return value
        if self.peek() == ("sign", "("):
            self.at += 1
            arguments = self.list(")")
            if text not in MESSAGES:
                raise Unknown(text)
            return MESSAGES[text](*arguments)
        if "::" in text or text.isupper():
            return text
        return self.lookup(text)

    def list(self, close):
        items = []
        while self.peek() != ("sign", close):
            items.append(self.expression())
            if self.peek() == ("sign", ","):
                self.at += 1
        self.at += 1
        return items

    def read(self):
        while self.peek()[0] != "end":
            start = self.at
            try:
                self.statement()
            except (Unknown, TypeError, ValueError, IndexError):
                self.at = start + 1
        return self.cases

    def statement(self):
        kind, text = self.peek()
        if (kind, text) == ("sign", "{"):
            self.names.append({})
            self.at += 1
        elif (kind, text) == ("sign", "}"):
            if len(self.names) > 1:
                self.names.pop()
            self.at += 1
        elif kind == "word" and text in ("static", "const", "auto", "std::string", "common_chat_tool", "common_chat_msg"):
            self.definition()
        elif kind == "word" and text == "for":
            self.loop()
        elif kind == "word" and self.peek(1) == ("sign", ".") and self.peek(2) == ("word", "test"):
            self.case()
        else:
            self.at += 1

    def definition(self):
        type = ""
        while self.peek()[0] == "word" and self.peek(1)[0] == "word" or self.peek(1)[1] in ("*", "&") and self.peek()[0] == "word":
            type = self.next()[1]
            while self.peek()[1] in ("*", "&"):
                self.at += 1
        name = self.next()[1]
        if self.peek() == ("sign", "{") and type == "common_chat_tool":
            self.at += 1
            fields = self.list("}")
            self.names[-1][name] = {"type": "function", "function": {"name": fields[0], "description": fields[1], "parameters": json.loads(fields[2])}}
            return
        if self.peek() == ("sign", "{") and type == "common_chat_msg":
            self.at += 1
            self.names[-1][name] = message(self.list("}")[1])
            return
        if self.peek() == ("sign", "{") and type.startswith("std::vector"):
            self.at += 1
            self.names[-1][name] = self.list("}")
            return
        self.take("=")
        if self.peek() == ("word", "peg_tester"):
            self.at += 2
            value = self.expression()
            self.names[-1][name] = {"templates": value if isinstance(value, list) else [value]}
            return
        self.names[-1][name] = self.expression()

    def loop(self):
        """`for (const auto & path : { "…", "…" })`: the name stands for all of them in the block that follows."""
        self.at += 1
        self.take("(")
        while self.peek()[1] in ("const", "auto", "&", "std::string"):
            self.at += 1
        name = self.next()[1]
        self.take(":")
        value = self.expression()
        self.take(")")
        self.names[-1][name] = value
        # The function that is called for each of them is written before: its parameter has the name that it is given.
        self.names[0].setdefault("template_path", value)

    def case(self):
        tester = self.lookup(self.next()[1])
        self.at += 2
        start = self.at
        try:
            self.take("(")
            (source,) = self.list(")")
            case = {"source": source, "expect": message()}
            while self.peek() == ("sign", "."):
                self.at += 1
                name = self.next()[1]
                self.take("(")
                arguments = self.list(")")
                self.setter(case, name, arguments)
        except (Unknown, TypeError, ValueError, IndexError):
            self.left_out += 1
            self.at = start
            return
        for template in tester["templates"]:
            self.cases.append(case | {"template": template})

    def setter(self, case, name, arguments):
        expect = case["expect"]
        if name == "expect":
            case["expect"] = dict(arguments[0])
        elif name == "expect_content":
            case["expect"] = expect | {"content": arguments[0]}
        elif name == "expect_reasoning":
            case["expect"] = expect | {"reasoning": arguments[0]}
        elif name == "expect_tool_calls":
            case["expect"] = expect | {"calls": [tuple(call[:2]) for call in arguments[0]]}
        else:
            case[name] = arguments[0] if arguments else True


def cases(folder, root):
    """Each case of the file with its template, and how many were left out."""
    source = (root / FILE).read_text()
    reader = Reader(source)
    # The cases of LFM2 are a function that stands before the templates it is called for.
    reader.names[0]["template_path"] = ["models/templates/LFM2-8B-A1B.jinja"]
    found = [finished(case, folder, root) for case in reader.read()]
    return [case for case in found if case], reader.left_out + found.count(None)


def finished(case, folder, root):
    """The case as every suite's; `None` if it shows a step on the way or asks for something that no parser of ours does."""
    # Thoughts that stay in the answer, which Ponder never asks for; a cut-off call whose arguments are not over.
    if case.get("is_partial") or case.get("reasoning_format") == "COMMON_REASONING_FORMAT_NONE":
        return None
    expect = case["expect"]
    reasoning, content = expect["reasoning"], expect["content"]
    before = (case.get("messages") or [{}])[-1] if case.get("continue_final_message") else {}
    # A continued answer is expected whole, and we are given its rest.
    reasoning, content = reasoning.removeprefix(before.get("reasoning", "")), content.removeprefix(before.get("content", ""))
    path = root / "vendor/llama.cpp" / case["template"]
    prompt = {"opened": case.get("continue_final_message") == "COMMON_CHAT_CONTINUATION_REASONING"} if before else {"prompt": prompt_end(path, case)}
    calls = [{"name": name, "arguments": json.loads(arguments or "{}")} for name, arguments in expect["calls"]]
    answer = {"reasoning": reasoning, "content": content, "calls": calls, "tools": case.get("tools")}
    # Without a format for thoughts llama.cpp leaves them in the content, but only if its template's parser knows none.
    kind = "both" if case.get("reasoning_format") else "calls"
    source = formats.ENDS.sub("", case["source"].removeprefix("<|CHATBOT_TOKEN|>"))
    test = f"{path.stem}: {case['source'][:40]!r}"
    return {"suite": "llama.cpp", "test": test, "template": str(path.relative_to(folder)), "kind": kind, "source": source} | prompt | answer


def prompt_end(path, case):
    """The text that the template writes before an answer."""
    from transformers.utils.chat_template_utils import render_jinja_template

    def rendered(add):
        tools = case.get("tools")
        options = {"chat_template": path.read_text(), "add_generation_prompt": add, "enable_thinking": case.get("enable_thinking", True)}
        texts, _ = render_jinja_template([[{"role": "user", "content": "Hey there!"}]], tools=tools, bos_token="<s>", eos_token="</s>", **options)
        return texts[0]

    try:
        return rendered(True).removeprefix(rendered(False))
    except Exception:  # what a template does wrong has no common class
        return ""
