"""LangChain: ChatOpenAI over chat completions and over responses, ChatAnthropic over messages.

    with_langchain.py URL [EMBEDDER]"""
import openai
import pydantic
from langchain_anthropic import ChatAnthropic
from langchain_anthropic.chat_models import AnthropicContextOverflowError, AnthropicModelNotFoundError
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from langchain_openai.chat_models.base import OpenAIContextOverflowError, OpenAIModelNotFoundError

from cells import ARGUMENTS, COSTLY_MODES, FIVE, FULL, MODES, RESULT, SUM, TOLD, WEATHER, cells, embedder, raises, url

URL = url()


def chat(**more):
    return ChatOpenAI(**{"model": "pebble", "base_url": f"{URL}/v1", "api_key": "local", "temperature": 0, "max_retries": 0} | more)


def messages(**more):
    fields = {"model": "pebble", "base_url": URL, "api_key": "local", "max_tokens": 1500, "max_retries": 0}
    return ChatAnthropic(**fields | more)


# Its own classes for a model that is not there and for a full context.
OPENAI, ANTHROPIC = (OpenAIModelNotFoundError, OpenAIContextOverflowError), (AnthropicModelNotFoundError, AnthropicContextOverflowError)
CHATS = {
    "chat": (chat, {"reasoning_effort": "high"}, OPENAI),
    "responses": (lambda **more: chat(use_responses_api=True, **more), {"reasoning": {"effort": "high", "summary": "auto"}}, OPENAI),
    "messages": (messages, {"thinking": {"type": "enabled", "budget_tokens": 1024}}, ANTHROPIC),
}


@tool(parse_docstring=True)
def get_weather(city: str) -> str:
    """Gives the weather in a city.

    Args:
        city: The city
    """
    return RESULT


class Sum(pydantic.BaseModel):
    """The schema of an answer."""

    sum: int
    sure: bool


def answer(model, stream, said):
    if not stream:
        return model.invoke(said)
    whole = None
    for chunk in model.stream(said):
        whole = chunk if whole is None else whole + chunk
    return whole


def runs(name, make, thinking, errors):
    def question():
        for stream in MODES:
            told = answer(make(), stream, SUM)
            usage = told.usage_metadata
            assert FIVE in told.text and usage["input_tokens"] > 0 and usage["output_tokens"] > 0, told

    def tools():
        for stream in COSTLY_MODES:
            model, said = make().bind_tools([get_weather]), [HumanMessage(WEATHER)]
            called = answer(model, stream, said)
            [call] = called.tool_calls
            assert (call["name"], call["args"]) == ("get_weather", ARGUMENTS), called
            said += [called, ToolMessage(get_weather.invoke(call["args"]), tool_call_id=call["id"])]
            assert TOLD in answer(model, stream, said).text

    def thinks():
        for stream in COSTLY_MODES:
            told = answer(make(**thinking), stream, SUM)
            thoughts = [block for block in told.content_blocks if block["type"] == "reasoning"]
            # ChatOpenAI reads no thoughts from chat completions; its text must be free of them all the same.
            assert bool(thoughts) == (name != "chat") and FIVE in told.text and len(told.text) < 60, told
            assert name != "chat" or told.usage_metadata["output_token_details"]["reasoning"] > 0, told

    def structured():
        assert isinstance(make().with_structured_output(Sum, method="json_schema").invoke(SUM), Sum)

    def error():
        for stream in MODES:
            raises(errors[0], lambda: answer(make(model="other"), stream, SUM))
            raises(errors[1], lambda: answer(make(), stream, "one two " * 6000))

    return {"question": question, "tools": tools, "thinking": thinks, "error": error} | ({"structured": structured} if FULL else {})


for name, (make, thinking, errors) in CHATS.items():
    cells(f"LangChain, {name}", runs(name, make, thinking, errors))


def embeddings():
    # Without the check it sends texts; with it, ids of OpenAI's tokenizer.
    made = OpenAIEmbeddings(model=embedder(), base_url=f"{URL}/v1", api_key="local", check_embedding_ctx_length=False, max_retries=0)
    first, second = made.embed_documents(["w7 w8", "w9"])
    assert len(first) == len(second) > 1 and made.embed_query("w9") == second
    other = OpenAIEmbeddings(model="other", base_url=f"{URL}/v1", api_key="local", check_embedding_ctx_length=False, max_retries=0)
    raises(openai.NotFoundError, lambda: other.embed_query("w9"))


if embedder():
    cells("LangChain, embeddings", {"embeddings": embeddings})
