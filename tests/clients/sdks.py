"""The official SDKs of OpenAI and Anthropic for Python as clients of our server: every surface, whole and streamed, with and without
thinking. Their stream helpers put answers together and raise if an event is missing or out of order. Prints a JSON line for each cell.

    sdks.py URL ENGINE [EMBEDDER]    where ENGINE is `fake` (protocol's fake engine, scripted by server/tests) or `pebble`, and EMBEDDER
                                     an embedding model, if there is one"""
import base64
import json
import sys
from concurrent.futures import ThreadPoolExecutor

import anthropic
import openai
import pydantic

URL, ENGINE = sys.argv[1], sys.argv[2]
MODEL = "pebble"
SUM, WEATHER = "What is 2 + 3?", "What is the weather in Oslo?"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string", "description": "The city"}}, "required": ["city"]}
ABOUT = "Gives the weather in a city."
RESULT = json.dumps({"condition": "sunny", "temperature": 12})
# The scripted answer of the engine to each.
ANSWER, ARGUMENTS, REPORT = {
    "fake": ("Hello", {"a": 2, "b": 3}, "Hello"),
    "pebble": ("5", {"city": "Oslo"}, "12"),
}[ENGINE]

openai_client = openai.OpenAI(base_url=f"{URL}/v1", api_key="local", max_retries=0, timeout=120)
anthropic_client = anthropic.Anthropic(base_url=URL, api_key="local", max_retries=0, timeout=120)


class Sum(pydantic.BaseModel):
    """The schema of an answer."""

    sum: int
    sure: bool


class Chat:
    """Chat completions."""

    name = "chat"
    ends = {"answer": "stop", "call": "tool_calls", "length": "length", "stop_text": "stop"}
    tools = [{"type": "function", "function": {"name": "get_weather", "description": ABOUT, "parameters": SCHEMA}}]

    def __init__(self, question):
        self.messages = [{"role": "user", "content": question}]

    def ask(self, stream, thinking, tools=False, most=400, stop=None):
        fields = {"model": MODEL, "messages": self.messages, "max_completion_tokens": most, "temperature": 0}
        fields["extra_body"] = {"chat_template_kwargs": {"enable_thinking": thinking}}
        if tools:
            fields["tools"] = self.tools
        if stop:
            fields["stop"] = [stop]
        if stream:
            with openai_client.chat.completions.stream(**fields, stream_options={"include_usage": True}) as events:
                for _ in events:
                    pass
                try:
                    whole = events.get_final_completion()
                except openai.LengthFinishReasonError as cut:
                    # The helper's way to tell that the answer was cut.
                    whole = cut.completion
        else:
            whole = openai_client.chat.completions.create(**fields)
        self.message, choice, usage = whole.choices[0].message, whole.choices[0], whole.usage
        return {
            "thought": (self.message.model_extra or {}).get("reasoning_content") or "",
            "text": self.message.content or "",
            "calls": [(call.id, call.function.name, json.loads(call.function.arguments)) for call in self.message.tool_calls or []],
            "end": choice.finish_reason,
            "prompt": usage.prompt_tokens,
            "completion": usage.completion_tokens,
            "reasoning": usage.completion_tokens_details.reasoning_tokens,
        }

    def send_result(self, call):
        self.messages += [self.message.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": call[0], "content": RESULT}]


class Responses:
    """Responses."""

    name = "responses"
    ends = {"answer": "completed", "call": "completed", "length": "incomplete", "stop_text": "completed"}
    tools = [{"type": "function", "name": "get_weather", "description": ABOUT, "parameters": SCHEMA, "strict": False}]

    def __init__(self, question):
        self.input, self.previous = question, openai.omit

    def ask(self, stream, thinking, tools=False, most=400, stop=None):
        fields = {"model": MODEL, "input": self.input, "max_output_tokens": most, "temperature": 0}
        fields["previous_response_id"] = self.previous
        fields["reasoning"] = {"effort": "high", "summary": "auto"} if thinking else {"effort": "none"}
        if tools:
            fields["tools"] = self.tools
        if stop:
            fields["extra_body"] = {"stop": stop}
        if stream:
            with openai_client.responses.stream(**fields) as events:
                for event in events:
                    last = event
                # The helper knows no end but `completed`.
                whole = last.response if last.type == "response.incomplete" else events.get_final_response()
        else:
            whole = openai_client.responses.create(**fields)
        self.whole = whole
        thoughts = [item for item in whole.output if item.type == "reasoning"]
        for item in thoughts:
            assert [part.text for part in item.summary] == [part.text for part in item.content], item
        return {
            "thought": "".join(part.text for item in thoughts for part in item.content),
            "text": whole.output_text,
            "calls": [(item.call_id, item.name, json.loads(item.arguments)) for item in whole.output if item.type == "function_call"],
            "end": whole.status,
            "prompt": whole.usage.input_tokens,
            "completion": whole.usage.output_tokens,
            "reasoning": whole.usage.output_tokens_details.reasoning_tokens,
        }

    def send_result(self, call):
        self.previous = self.whole.id
        self.input = [{"type": "function_call_output", "call_id": call[0], "output": RESULT}]


class Messages:
    """Anthropic's messages."""

    name = "messages"
    ends = {"answer": "end_turn", "call": "tool_use", "length": "max_tokens", "stop_text": "stop_sequence"}
    tools = [{"name": "get_weather", "description": ABOUT, "input_schema": SCHEMA}]

    def __init__(self, question):
        self.messages = [{"role": "user", "content": question}]

    def ask(self, stream, thinking, tools=False, most=400, stop=None):
        fields = {"model": MODEL, "messages": self.messages, "max_tokens": most, "extra_body": {"temperature": 0}}
        fields["thinking"] = {"type": "adaptive"} if thinking else {"type": "disabled"}
        if tools:
            fields["tools"] = self.tools
        if stop:
            fields["stop_sequences"] = [stop]
        if stream:
            with anthropic_client.messages.stream(**fields) as events:
                for _ in events:
                    pass
                whole = events.get_final_message()
        else:
            whole = anthropic_client.messages.create(**fields)
        self.content = whole.content
        usage = whole.usage
        for block in whole.content:
            assert block.type != "thinking" or block.signature
        return {
            "thought": "".join(block.thinking for block in whole.content if block.type == "thinking"),
            "text": "".join(block.text for block in whole.content if block.type == "text"),
            "calls": [(block.id, block.name, block.input) for block in whole.content if block.type == "tool_use"],
            "end": whole.stop_reason,
            "prompt": usage.input_tokens + usage.cache_read_input_tokens,
            "completion": usage.output_tokens,
            "reasoning": None,
        }

    def send_result(self, call):
        content = [block.model_dump(exclude_none=True) for block in self.content]
        result = {"type": "tool_result", "tool_use_id": call[0], "content": RESULT}
        self.messages += [{"role": "assistant", "content": content}, {"role": "user", "content": [result]}]


def check_thought(told, thinking):
    assert bool(told["thought"]) == thinking, "the thought is where it should not be, or not where it should be"
    assert told["prompt"] > 0 and told["completion"] > 0
    if told["reasoning"] is not None and thinking:
        assert 0 < told["reasoning"] <= told["completion"]


def answer(surface, stream, thinking):
    told = surface(SUM).ask(stream, thinking)
    assert ANSWER in told["text"] and told["end"] == surface.ends["answer"] and not told["calls"], told
    check_thought(told, thinking)


def tool_call(surface, stream, thinking):
    told = surface(WEATHER).ask(stream, thinking, tools=True)
    [(_, name, arguments)] = told["calls"]
    assert (name, arguments) == ("get_weather", ARGUMENTS) and told["end"] == surface.ends["call"], told
    check_thought(told, thinking)


def tool_result(surface, stream, thinking):
    conversation = surface(WEATHER)
    first = conversation.ask(stream, thinking, tools=True)
    conversation.send_result(first["calls"][0])
    told = conversation.ask(stream, thinking, tools=True)
    assert REPORT in told["text"] and told["end"] == surface.ends["answer"], told


def length(surface, stream, thinking):
    told = surface(SUM).ask(stream, thinking, most=2)
    assert told["end"] == surface.ends["length"] and told["completion"] == 2, told
    assert not (thinking and told["text"]), told


def stop_text(surface, stream, thinking):
    told = surface(SUM).ask(stream, thinking, stop="5")
    assert "5" not in told["text"] and told["end"] == surface.ends["stop_text"], told


def structured(surface, stream, thinking):
    """An answer that follows a schema, by the helper of each SDK that makes an object of it."""
    if surface is Chat:
        fields = {"model": MODEL, "messages": [{"role": "user", "content": SUM}], "response_format": Sum, "temperature": 0}
        fields["extra_body"] = {"chat_template_kwargs": {"enable_thinking": thinking}}
        if stream:
            with openai_client.chat.completions.stream(**fields) as events:
                whole = events.until_done().get_final_completion()
        else:
            whole = openai_client.chat.completions.parse(**fields)
        parsed = whole.choices[0].message.parsed
    elif surface is Responses:
        fields = {"model": MODEL, "input": SUM, "text_format": Sum, "temperature": 0, "reasoning": {"effort": "high" if thinking else "none"}}
        if stream:
            with openai_client.responses.stream(**fields) as events:
                parsed = events.until_done().get_final_response().output_parsed
        else:
            parsed = openai_client.responses.parse(**fields).output_parsed
    else:
        fields = {"model": MODEL, "messages": [{"role": "user", "content": SUM}], "max_tokens": 1000, "output_format": Sum, "extra_body": {"temperature": 0}}
        fields["thinking"] = {"type": "adaptive"} if thinking else {"type": "disabled"}
        if stream:
            with anthropic_client.messages.stream(**fields) as events:
                events.until_done()
                parsed = events.get_final_message().parsed_output
        else:
            parsed = anthropic_client.messages.parse(**fields).parsed_output
    assert isinstance(parsed, Sum), parsed


def raises(kind, ask):
    try:
        ask()
    except kind as error:
        assert type(error) is kind, type(error)
        return
    raise AssertionError(f"{kind} was not raised")


def errors(surface, stream, thinking):
    names = {"chat": "messages", "responses": "input", "messages": "messages"}
    sdk, client = (anthropic, anthropic_client) if surface is Messages else (openai, openai_client)
    create = {"chat": openai_client.chat.completions, "responses": openai_client.responses, "messages": anthropic_client.messages}
    create = create[surface.name].create
    fields = {"model": MODEL, names[surface.name]: [{"role": "user", "content": "hi"}], "stream": stream}
    if surface is Messages:
        fields["max_tokens"] = 9
    raises(sdk.NotFoundError, lambda: create(**{**fields, "model": "other"}))
    raises(sdk.BadRequestError, lambda: create(**fields, extra_body={"temperature": -1}))
    raises(sdk.BadRequestError, lambda: create(**{**fields, names[surface.name]: [{"role": "user", "content": [{"type": "sound"}]}]}))
    wrong = {"type": "json_schema", "schema": {"type": "array", "uniqueItems": True}, "name": "wrong"}
    asked = {"chat": {"response_format": {"type": "json_schema", "json_schema": wrong}}, "responses": {"text": {"format": wrong}},
             "messages": {"output_config": {"format": wrong}}}
    raises(sdk.BadRequestError, lambda: create(**fields, extra_body=asked[surface.name]))
    if ENGINE == "pebble":
        long = [{"role": "user", "content": "one two three " * 4000}]
        raises(sdk.BadRequestError, lambda: create(**{**fields, names[surface.name]: long}))


def pdf(text):
    """A file of one page with this text, in base64; the reader finds its objects without a table."""
    page = f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET"
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 200] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
        f"<< /Length {len(page)} >>\nstream\n{page}\nendstream",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    body = "".join(f"{number} 0 obj\n{text}\nendobj\n" for number, text in enumerate(objects, 1))
    return base64.b64encode(f"%PDF-1.4\n{body}trailer << /Root 1 0 R >>\n%%EOF".encode()).decode()


def document_tokens(source):
    """The tokens of a question about a document."""
    content = [{"type": "document", "title": "count.pdf", "source": source}, {"type": "text", "text": "hi"}]
    return anthropic_client.messages.count_tokens(model=MODEL, messages=[{"role": "user", "content": content}]).input_tokens


def others():
    assert MODEL in [model.id for model in openai_client.models.list()]
    assert openai_client.models.retrieve(MODEL).id == MODEL
    assert MODEL in [model.id for model in anthropic_client.models.list()]
    plain = anthropic_client.messages.count_tokens(model=MODEL, messages=[{"role": "user", "content": "hi"}]).input_tokens
    assert plain > 0
    assert document_tokens({"type": "text", "media_type": "text/plain", "data": "one two three " * 20}) > plain + 40
    assert document_tokens({"type": "base64", "media_type": "application/pdf", "data": pdf("one two three " * 20)}) > plain + 40
    if ENGINE == "pebble":
        whole = openai_client.completions.create(model=MODEL, prompt="One, two,", max_tokens=5, temperature=0, logprobs=2)
        streamed = openai_client.completions.create(model=MODEL, prompt="One, two,", max_tokens=5, temperature=0, stream=True)
        assert whole.choices[0].text == "".join(chunk.choices[0].text for chunk in streamed)
        assert whole.usage.completion_tokens == len(whole.choices[0].logprobs.tokens) == 5
        chat = openai_client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": SUM}], temperature=0, logprobs=True, top_logprobs=3,
            extra_body={"chat_template_kwargs": {"enable_thinking": False}})
        entries = chat.choices[0].logprobs.content
        assert "".join(entry.token for entry in entries) == chat.choices[0].message.content
        assert all(len(entry.top_logprobs) == 3 and entry.logprob <= 0 for entry in entries)


def embeddings(model):
    create, texts = openai_client.embeddings.create, ["w7 w8", "w9"]
    # The SDK asks for base64 unless it is told otherwise.
    made, numbers = create(model=model, input=texts), create(model=model, input=texts, encoding_format="float")
    assert [entry.embedding for entry in made.data] == [entry.embedding for entry in numbers.data], (made, numbers)
    assert [entry.index for entry in made.data] == [0, 1] and made.usage.prompt_tokens > 2 and made.model == model
    assert len(create(model=model, input=[[7, 8], [9]]).data) == 2 and len(create(model=model, input="w7").data) == 1
    raises(openai.BadRequestError, lambda: create(model=MODEL, input="a"))
    raises(openai.BadRequestError, lambda: create(model=model, input=""))
    raises(openai.NotFoundError, lambda: create(model="other", input="a"))


def cell(name, run):
    try:
        run()
        outcome = {"ok": True}
    except Exception as error:  # noqa: BLE001: every failure of a client is a finding
        outcome = {"ok": False, "error": f"{type(error).__name__}: {error}"[:2000]}
    # In one piece, because others write too.
    print(json.dumps({"cell": name, **outcome}) + "\n", end="", flush=True)


cases = [answer, tool_call, tool_result, errors]
if ENGINE == "pebble":
    cases += [length, stop_text, structured]
# Pebble's answers are made in one batch; the fake engine's script is one after another.
with ThreadPoolExecutor(4 if ENGINE == "pebble" else 1) as pool:
    for surface in [Chat, Responses, Messages]:
        for stream in [False, True]:
            for thinking in [False, True]:
                for case in cases:
                    name = f"{surface.name} {'streamed' if stream else 'whole'} {'thinking' if thinking else 'plain'} {case.__name__}"
                    pool.submit(cell, name, lambda case=case, surface=surface, stream=stream, thinking=thinking: case(surface, stream, thinking))
    pool.submit(cell, "others", others)
    if len(sys.argv) > 3:
        pool.submit(cell, "embeddings", lambda: embeddings(sys.argv[3]))
