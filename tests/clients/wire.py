"""The server's three surfaces as raw HTTP with nothing but Python's own library: requests, replies, and the order in which the events
of a stream may come, as strict as the strictest of the SDKs."""
import http.client
import json
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from cells import ABOUT, SCHEMA

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
JSON = {"content-type": "application/json"}
# Markers of Pebble's format, which never belong to a text.
MARKERS = ["<|channel>", "<channel|>", "<turn|>", "<|turn>", "<|think|>"]
CALL_MARKERS = ["<|tool_call>", "<tool_call|>"]


def arguments_of(text, cut):
    """The arguments of a call; of one that was cut there is only the beginning, which is no JSON."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        assert cut and text.startswith("{"), text
        return None


@dataclass
class Reply:
    """The reply."""

    status: int
    headers: dict
    body: bytes

    def json(self):
        return json.loads(self.body)

    def events(self):
        """The data of its events; a name that differs from the type, or a body cut in a block, is an error."""
        text = self.body.decode()
        assert text.endswith("\n\n"), f"the stream is cut: {text[-200:]!r}"
        events = []
        for block in text[:-2].split("\n\n"):
            lines = [line for line in block.split("\n") if not line.startswith(":")]
            if not lines:
                continue
            fields = [line.partition(": ") for line in lines]
            assert all(name in ("event", "data") for name, _, _ in fields), block
            named = [value for name, _, value in fields if name == "event"]
            data = "\n".join(value for name, _, value in fields if name == "data")
            events.append(data if data == "[DONE]" else json.loads(data))
            assert not named or named == [events[-1]["type"]], block
        return events


def send(url, method, path, body=None, headers=None, timeout=300):
    """One request over a connection of its own. A body that is no bytes is sent as JSON."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=timeout)
    try:
        headers = dict(headers if headers is not None else JSON)
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())
    finally:
        connection.close()


def post(url, path, body):
    return send(url, "POST", path, body)


def figure(url, name):
    """A figure of the server's own metrics."""
    lines = send(url, "GET", "/metrics", headers={}).body.decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.split("{")[0].split(" ")[0] == name)


@dataclass
class Told:
    """An answer as the clients of its surface read it."""

    thought: str = ""
    text: str = ""
    # Identifier, name and arguments of each call.
    calls: list = field(default_factory=list)
    end: str = ""
    prompt: int = 0
    cached: int = 0
    completion: int = 0
    reasoning: int | None = None


class Chat:
    """OpenAI's chat completions."""

    name, path = "chat", CHAT
    ends = {"answer": "stop", "call": "tool_calls", "length": "length", "stop text": "stop"}
    tools = [{"type": "function", "function": {"name": "get_weather", "description": ABOUT, "parameters": SCHEMA}}]

    @staticmethod
    def body(turns, stream, thinking, most=400, stop=None, tools=False):
        messages = []
        for kind, turn in turns:
            if kind == "answer":
                messages.append(turn["choices"][0]["message"])
            elif kind == "result":
                messages.append({"role": "tool", "tool_call_id": turn[0], "content": turn[1]})
            else:
                messages.append({"role": kind, "content": turn})
        body = {"model": "pebble", "messages": messages, "stream": stream, "max_completion_tokens": most, "temperature": 0}
        body["chat_template_kwargs"] = {"enable_thinking": thinking}
        if stream:
            body["stream_options"] = {"include_usage": True}
        return body | ({"stop": [stop]} if stop else {}) | ({"tools": Chat.tools} if tools else {})

    @staticmethod
    def whole(events, usage_chunk=True):
        """Puts a stream together, as the reply that is not streamed would be."""
        assert events.pop() == "[DONE]"
        same = {key: events[0][key] for key in ("id", "object", "created", "model")}
        assert same["object"] == "chat.completion.chunk" and same["id"].startswith("chatcmpl-"), same
        assert all({key: event[key] for key in same} == same for event in events)
        if usage_chunk:
            usage = events.pop()
            assert usage["choices"] == [] and all(event["usage"] is None for event in events)
        else:
            usage = events[-1]
            assert all("usage" not in event for event in events[:-1])
        choices = [event["choices"] for event in events]
        assert all(len(choice) == 1 and choice[0]["index"] == 0 for choice in choices)
        first, *middle, last = [choice[0] for choice in choices]
        assert first["delta"] == {"role": "assistant", "content": ""} and first["finish_reason"] is None
        message = {"role": "assistant", "content": "", "tool_calls": []}
        for choice in middle:
            assert choice["finish_reason"] is None
            [(name, piece)] = choice["delta"].items()
            if name == "tool_calls":
                [part] = piece
                if part["index"] == len(message["tool_calls"]):
                    assert part["id"] and part["type"] == "function" and part["function"]["name"], part
                    message["tool_calls"].append({key: part[key] for key in ("id", "type", "function")})
                else:
                    assert part["index"] == len(message["tool_calls"]) - 1 and set(part) == {"index", "function"}, part
                    message["tool_calls"][-1]["function"]["arguments"] += part["function"]["arguments"]
            else:
                assert name in ("content", "reasoning_content") and piece, choice
                message[name] = message.get(name, "") + piece
        assert last["delta"] == {} and last["finish_reason"]
        if not message["tool_calls"]:
            del message["tool_calls"]
        elif not message["content"]:
            message["content"] = None
        whole = {**same, "object": "chat.completion", "usage": usage["usage"]}
        return whole | {"choices": [{"index": 0, "message": message, "finish_reason": last["finish_reason"]}]}

    @staticmethod
    def told(whole):
        assert whole["object"] == "chat.completion" and isinstance(whole["created"], int) and whole["model"]
        [choice], usage = whole["choices"], whole["usage"]
        message = choice["message"]
        assert message["role"] == "assistant" and "content" in message
        assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
        cut = choice["finish_reason"] == "length"
        calls = [(call["id"], call["function"]["name"], arguments_of(call["function"]["arguments"], cut)) for call in message.get("tool_calls", [])]
        return Told(
            message.get("reasoning_content") or "", message["content"] or "", calls, choice["finish_reason"], usage["prompt_tokens"],
            usage["prompt_tokens_details"]["cached_tokens"], usage["completion_tokens"],
            usage["completion_tokens_details"]["reasoning_tokens"],
        )


class Responses:
    """OpenAI's responses."""

    name, path = "responses", RESPONSES
    ends = {"answer": "completed", "call": "completed", "length": "incomplete", "stop text": "completed"}
    tools = [{"type": "function", "name": "get_weather", "description": ABOUT, "parameters": SCHEMA, "strict": False}]

    @staticmethod
    def body(turns, stream, thinking, most=400, stop=None, tools=False):
        items = []
        for kind, turn in turns:
            if kind == "answer":
                items += turn["output"]
            elif kind == "result":
                items.append({"type": "function_call_output", "call_id": turn[0], "output": turn[1]})
            else:
                items.append({"role": kind, "content": turn})
        body = {"model": "pebble", "input": items, "stream": stream, "max_output_tokens": most, "temperature": 0, "store": False}
        body["reasoning"] = {"effort": "high", "summary": "auto"} if thinking else {"effort": "none"}
        return body | ({"stop": stop} if stop else {}) | ({"tools": Responses.tools} if tools else {})

    @staticmethod
    def whole(events, usage_chunk=None):
        assert [event["sequence_number"] for event in events] == list(range(len(events)))
        # A sign of life that clients count may come anywhere after the beginning.
        signs = [event for event in events[2:] if event["type"] == "response.in_progress"]
        created, begun, *middle, last = [event for event in events if event not in signs]
        assert [created["type"], begun["type"]] == ["response.created", "response.in_progress"]
        whole = last["response"]
        assert {event["response"]["id"] for event in (created, begun, *signs)} == {whole["id"]} and created["response"]["output"] == []
        assert last["type"] == f"response.{whole['status']}" and whole["status"] in ("completed", "incomplete")
        done, item = [], None
        for event in middle:
            kind = event["type"].removeprefix("response.")
            if kind == "output_item.added":
                assert item is None and event["output_index"] == len(done)
                item = ResponseItem(event["item"])
            elif kind == "output_item.done":
                item.check(event["item"])
                done.append(event["item"])
                item = None
            else:
                assert event["output_index"] == len(done) and event["item_id"] == item.id, event
                item.take(kind, event)
        assert item is None and whole["output"] == done
        return whole

    @staticmethod
    def told(whole):
        assert whole["object"] == "response" and whole["id"].startswith("resp_") and whole["error"] is None
        assert (whole["incomplete_details"] is not None) == (whole["status"] == "incomplete")
        told, usage = Told(end=whole["status"]), whole["usage"]
        for item in whole["output"]:
            if item["type"] == "reasoning":
                told.thought += "".join(part["text"] for part in item["content"])
                assert [part["text"] for part in item["summary"]] in ([], [told.thought])
            elif item["type"] == "message":
                told.text += "".join(part["text"] for part in item["content"])
            else:
                assert item["type"] == "function_call" and item["id"] != item["call_id"]
                told.calls.append((item["call_id"], item["name"], arguments_of(item["arguments"], item["status"] == "incomplete")))
        assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
        assert usage["input_tokens_details"]["cache_write_tokens"] >= 0
        told.prompt, told.cached = usage["input_tokens"], usage["input_tokens_details"]["cached_tokens"]
        told.completion, told.reasoning = usage["output_tokens"], usage["output_tokens_details"]["reasoning_tokens"]
        return told


class ResponseItem:
    """One item of a streamed response, from `added` to `done`."""

    # The event that fills each kind of part.
    PARTS = {"output_text": "output_text", "reasoning_text": "reasoning_text", "summary_text": "reasoning_summary_text"}

    def __init__(self, item):
        self.id, self.type = item["id"], item["type"]
        self.open, self.said, self.ended = set(), {}, set()
        begins = {"message": ("content", []), "reasoning": ("summary", []), "function_call": ("arguments", "")}
        name, empty = begins[self.type]
        assert item[name] == empty, item

    def take(self, kind, event):
        name, _, step = kind.rpartition(".")
        if name in ("content_part", "reasoning_summary_part"):
            name = self.PARTS[event["part"]["type"]]
            if step == "added":
                assert event["part"]["text"] == ""
                self.open.add(name)
            else:
                assert name in self.ended and event["part"]["text"] == self.said.get(name, "")
            return
        # An item with parts takes nothing before its first part, and nothing after it was completed.
        assert name == "function_call_arguments" or name in self.open, event
        assert name not in self.ended, event
        if step == "delta":
            assert name != "output_text" or event["logprobs"] == []
            self.said[name] = self.said.get(name, "") + event["delta"]
        else:
            whole = event["arguments" if name == "function_call_arguments" else "text"]
            assert step == "done" and whole == self.said.get(name, ""), event
            self.ended.add(name)

    def check(self, item):
        assert (item["id"], item["type"]) == (self.id, self.type) and set(self.said) <= self.ended
        if self.type == "message":
            assert "".join(part["text"] for part in item["content"]) == self.said.get("output_text", "")
        elif self.type == "function_call":
            assert item["arguments"] == self.said["function_call_arguments"]
        else:
            assert "".join(part["text"] for part in item["content"]) == self.said["reasoning_text"]
            assert "".join(part["text"] for part in item["summary"]) == self.said.get("reasoning_summary_text", "")


class Messages:
    """Anthropic's messages."""

    name, path = "messages", MESSAGES
    ends = {"answer": "end_turn", "call": "tool_use", "length": "max_tokens", "stop text": "stop_sequence"}
    tools = [{"name": "get_weather", "description": ABOUT, "input_schema": SCHEMA}]

    @staticmethod
    def body(turns, stream, thinking, most=400, stop=None, tools=False):
        messages = []
        for kind, turn in turns:
            if kind == "answer":
                messages.append({"role": "assistant", "content": turn["content"]})
            elif kind == "result":
                messages.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": turn[0], "content": turn[1]}]})
            else:
                messages.append({"role": kind, "content": turn})
        body = {"model": "pebble", "messages": messages, "stream": stream, "max_tokens": most, "temperature": 0}
        body["thinking"] = {"type": "adaptive"} if thinking else {"type": "disabled"}
        return body | ({"stop_sequences": [stop]} if stop else {}) | ({"tools": Messages.tools} if tools else {})

    @staticmethod
    def whole(events, usage_chunk=None):
        start, *middle, end, stop = events
        assert [start["type"], end["type"], stop["type"]] == ["message_start", "message_delta", "message_stop"]
        whole, blocks, current = start["message"], [], None
        assert whole["content"] == [] and whole["stop_reason"] is None and whole["usage"]["input_tokens"] >= 0
        for event in middle:
            kind = event["type"]
            if kind == "ping":
                continue
            assert event["index"] == len(blocks), event
            if kind == "content_block_start":
                assert current is None
                current, written, signed = dict(event["content_block"]), "", False
            elif kind == "content_block_stop":
                if current["type"] == "tool_use":
                    assert current["input"] == {}
                    current["input"] = arguments_of(written, end["delta"]["stop_reason"] == "max_tokens") or {}
                else:
                    assert current[current["type"]] == ""
                    current[current["type"]] = written
                blocks.append(current)
                current = None
            else:
                assert kind == "content_block_delta" and not signed, event
                delta = event["delta"]
                if delta["type"] == "signature_delta":
                    current["signature"], signed = delta["signature"], True
                else:
                    name = {"text": "text", "thinking": "thinking", "tool_use": "partial_json"}[current["type"]]
                    expected = "input_json_delta" if name == "partial_json" else f"{name}_delta"
                    assert delta["type"] == expected, event
                    written += delta[name]
        assert current is None
        usage = whole["usage"] | end["usage"]
        return whole | end["delta"] | {"content": [block for block in blocks if block.get("text") != ""], "usage": usage}

    @staticmethod
    def told(whole):
        assert whole["type"] == "message" and whole["role"] == "assistant" and whole["id"].startswith("msg_")
        told, usage = Told(end=whole["stop_reason"]), whole["usage"]
        for block in whole["content"]:
            if block["type"] == "thinking":
                told.thought += block["thinking"]
                assert block["signature"]
            elif block["type"] == "text":
                told.text += block["text"]
            else:
                assert block["id"].startswith("toolu_")
                told.calls.append((block["id"], block["name"], block["input"]))
        told.cached = usage["cache_read_input_tokens"]
        told.prompt, told.completion = usage["input_tokens"] + told.cached + usage["cache_creation_input_tokens"], usage["output_tokens"]
        return told


SURFACES = [Chat, Responses, Messages]


def ask(url, surface, body):
    """Asks a surface, checks form and order of the reply: the whole of it, and what its clients read."""
    reply = post(url, surface.path, body)
    assert reply.status == 200, f"{reply.status} {reply.body[:500]}"
    streamed = reply.headers["content-type"].startswith("text/event-stream")
    assert streamed == bool(body.get("stream"))
    usage_chunk = bool((body.get("stream_options") or {}).get("include_usage"))
    whole = surface.whole(reply.events(), usage_chunk) if streamed else reply.json()
    told = surface.told(whole)
    assert not any(marker in reply.body.decode() for marker in MARKERS + CALL_MARKERS), reply.body[:500]
    assert told.prompt > 0 and told.completion >= (told.reasoning or 0) and told.cached <= told.prompt, told
    return whole, told
