"""Ollama's SDK for Python, and LangChain's ChatOllama on top of it.

    with_ollama.py URL [EMBEDDER]"""
import ollama
import pydantic
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_ollama import ChatOllama, OllamaEmbeddings

from cells import ABOUT, ARGUMENTS, COSTLY_MODES, FIVE, FULL, MODES, RESULT, SCHEMA, SUM, TOLD, WEATHER, cells, embedder, raises, url

URL = url()
client = ollama.Client(host=URL)
TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": ABOUT, "parameters": SCHEMA}}]
OPTIONS = {"temperature": 0, "num_predict": 1500}


class Sum(pydantic.BaseModel):
    """The schema of an answer."""

    sum: int
    sure: bool


def answer(stream, messages, model="pebble", **fields):
    """The message of an answer, and its last part."""
    asked = client.chat(model, messages, stream=stream, options=OPTIONS, **fields)
    if not stream:
        return asked.message, asked
    parts = list(asked)
    [*_, last] = parts
    assert [part.done for part in parts] == [part is last for part in parts], parts
    message = ollama.Message(role="assistant", content="".join(part.message.content or "" for part in parts))
    message.thinking = "".join(part.message.thinking or "" for part in parts)
    message.tool_calls = [call for part in parts for call in part.message.tool_calls or []] or None
    return message, last


def said(text):
    return [{"role": "user", "content": text}]


def question():
    for stream in MODES:
        message, last = answer(stream, said(SUM))
        assert FIVE in message.content and not message.thinking and last.done_reason == "stop", message
        assert last.prompt_eval_count > 5 and last.eval_count > 0 and last.total_duration > last.prompt_eval_duration > 0, last
    generated = client.generate("pebble", SUM, options=OPTIONS)
    assert FIVE in generated.response and generated.done_reason == "stop", generated


def tools():
    for stream in COSTLY_MODES:
        messages = said(WEATHER)
        called, _ = answer(stream, messages, tools=TOOLS)
        [call] = called.tool_calls
        assert (call.function.name, call.function.arguments) == ("get_weather", ARGUMENTS), called
        messages += [called, {"role": "tool", "tool_name": "get_weather", "content": RESULT}]
        message, _ = answer(stream, messages, tools=TOOLS)
        assert TOLD in message.content, message


def thinking():
    for stream in COSTLY_MODES:
        message, _ = answer(stream, said(SUM), think="high")
        assert message.thinking and FIVE in message.content and len(message.content) < 60, message


def structured():
    message, _ = answer(False, said(SUM), format=Sum.model_json_schema())
    Sum.model_validate_json(message.content)


def error():
    for stream in MODES:
        unknown = raises(ollama.ResponseError, lambda: answer(stream, said(SUM), model="other"))
        assert unknown.status_code == 404 and "there is no model" in unknown.error, unknown
        long = raises(ollama.ResponseError, lambda: answer(stream, said("one two " * 6000)))
        assert long.status_code == 400 and "context" in long.error, long
    refused = raises(ollama.ResponseError, lambda: client.pull("other"))
    assert refused.status_code == 501 and "Models window" in refused.error, refused
    assert any(model.model == "pebble" for model in client.list().models) and client.show("pebble").capabilities


STRUCTURED = {"structured": structured} if FULL else {}
cells("ollama, Python", {"question": question, "tools": tools, "thinking": thinking, "error": error} | STRUCTURED)


@tool(parse_docstring=True)
def get_weather(city: str) -> str:
    """Gives the weather in a city.

    Args:
        city: The city
    """
    return RESULT


def chat(**more):
    return ChatOllama(**{"model": "pebble", "base_url": URL, "temperature": 0, "num_predict": 1500} | more)


def told(model, stream, messages):
    if not stream:
        return model.invoke(messages)
    whole = None
    for chunk in model.stream(messages):
        whole = chunk if whole is None else whole + chunk
    return whole


def chain_question():
    for stream in MODES:
        message = told(chat(validate_model_on_init=True), stream, SUM)
        usage = message.usage_metadata
        assert FIVE in message.text and usage["input_tokens"] > 0 and usage["output_tokens"] > 0, message


def chain_tools():
    for stream in COSTLY_MODES:
        model, messages = chat().bind_tools([get_weather]), [HumanMessage(WEATHER)]
        called = told(model, stream, messages)
        [call] = called.tool_calls
        assert (call["name"], call["args"]) == ("get_weather", ARGUMENTS), called
        messages += [called, ToolMessage(get_weather.invoke(call["args"]), tool_call_id=call["id"])]
        assert TOLD in told(model, stream, messages).text


def chain_thinking():
    for stream in COSTLY_MODES:
        message = told(chat(reasoning=True), stream, SUM)
        assert message.additional_kwargs["reasoning_content"] and FIVE in message.text and len(message.text) < 60, message


def chain_structured():
    assert isinstance(chat().with_structured_output(Sum).invoke(SUM), Sum)


def chain_error():
    for stream in MODES:
        raises(ollama.ResponseError, lambda: told(chat(model="other"), stream, SUM))
        raises(ollama.ResponseError, lambda: told(chat(), stream, "one two " * 6000))


CHAIN_STRUCTURED = {"structured": chain_structured} if FULL else {}
cells("LangChain, ollama", {"question": chain_question, "tools": chain_tools, "thinking": chain_thinking, "error": chain_error} | CHAIN_STRUCTURED)


def embeddings():
    first, second = client.embed(embedder(), ["w7 w8", "w9"]).embeddings
    assert len(first) == len(second) > 1 and list(client.embeddings(embedder(), "w9").embedding) == list(second)
    raises(ollama.ResponseError, lambda: client.embed("other", "w9"))


def chain_embeddings():
    made = OllamaEmbeddings(model=embedder(), base_url=URL)
    first, second = made.embed_documents(["w7 w8", "w9"])
    assert len(first) == len(second) > 1 and made.embed_query("w9") == second


if embedder():
    cells("ollama, Python, embeddings", {"embeddings": embeddings})
    cells("LangChain, ollama, embeddings", {"embeddings": chain_embeddings})
