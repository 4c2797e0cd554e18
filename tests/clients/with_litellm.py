"""litellm over chat completions and over messages.

    with_litellm.py URL [EMBEDDER]"""
import os

# It would fetch a list of prices otherwise.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import json

import litellm
import pydantic

from cells import ABOUT, ARGUMENTS, COSTLY_MODES, FIVE, FULL, MODES, RESULT, SCHEMA, SUM, TOLD, WEATHER, cells, embedder, raises, url

litellm.suppress_debug_info = True
URL = url()
PROVIDERS = {
    "chat": ({"model": "openai/pebble", "api_base": f"{URL}/v1"}, {"reasoning_effort": "high", "allowed_openai_params": ["reasoning_effort"]}),
    "messages": ({"model": "anthropic/pebble", "api_base": URL}, {"thinking": {"type": "enabled", "budget_tokens": 1024}, "allowed_openai_params": ["thinking"]}),
}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": ABOUT, "parameters": SCHEMA}}]


class Sum(pydantic.BaseModel):
    """The schema of an answer."""

    sum: int
    sure: bool


def answer(stream, messages, **fields):
    given = {"api_key": "local", "max_tokens": 1500, "temperature": 0, "num_retries": 0} | fields
    if not stream:
        return litellm.completion(messages=messages, **given)
    chunks = list(litellm.completion(messages=messages, stream=True, stream_options={"include_usage": True}, **given))
    whole = litellm.stream_chunk_builder(chunks, messages=messages)
    # The builder looks for the reason in the last chunk alone, which tells the usage.
    [whole.choices[0].finish_reason] = [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices[0].finish_reason]
    return whole


def runs(base, thinking):
    def question():
        for stream in MODES:
            told = answer(stream, [{"role": "user", "content": SUM}], **base)
            assert FIVE in told.choices[0].message.content and told.choices[0].finish_reason == "stop", told
            assert told.usage.prompt_tokens > 5 and told.usage.completion_tokens > 0, told.usage

    def tools():
        for stream in COSTLY_MODES:
            messages = [{"role": "user", "content": WEATHER}]
            called = answer(stream, messages, tools=TOOLS, **base).choices[0]
            [call] = called.message.tool_calls
            assert (call.function.name, json.loads(call.function.arguments)) == ("get_weather", ARGUMENTS), called
            assert called.finish_reason == "tool_calls", called
            messages += [called.message.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": call.id, "content": RESULT}]
            told = answer(stream, messages, tools=TOOLS, **base)
            assert TOLD in told.choices[0].message.content, (messages, told)

    def thinks():
        for stream in COSTLY_MODES:
            fields = base | thinking
            message = answer(stream, [{"role": "user", "content": SUM}], **fields).choices[0].message
            assert message.reasoning_content and FIVE in message.content and len(message.content) < 60, message

    def structured():
        told = answer(False, [{"role": "user", "content": SUM}], response_format=Sum, **base)
        Sum.model_validate_json(told.choices[0].message.content)

    def error():
        for stream in MODES:
            other = base | {"model": base["model"].replace("pebble", "other")}
            raises(litellm.NotFoundError, lambda: answer(stream, [{"role": "user", "content": SUM}], **other))
            long = [{"role": "user", "content": "one two " * 6000}]
            # It has a class of its own for a full context, which it knows by code or wording.
            raises(litellm.ContextWindowExceededError, lambda: answer(stream, long, **base))

    return {"question": question, "tools": tools, "thinking": thinks, "error": error} | ({"structured": structured} if FULL else {})


for name, (base, thinking) in PROVIDERS.items():
    cells(f"litellm, {name}", runs(base, thinking))


def embeddings():
    made = litellm.embedding(model=f"openai/{embedder()}", input=["w7 w8", "w9"], api_base=f"{URL}/v1", api_key="local")
    first, second = [entry["embedding"] for entry in made.data]
    assert len(first) == len(second) > 1 and made.usage.prompt_tokens > 2, made.usage
    raises(litellm.NotFoundError, lambda: litellm.embedding(model="openai/other", input=["w9"], api_base=f"{URL}/v1", api_key="local"))


if embedder():
    cells("litellm, embeddings", {"embeddings": embeddings})
