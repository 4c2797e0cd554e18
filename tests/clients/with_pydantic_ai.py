"""pydantic-ai with its three models of ours: chat completions, responses and messages.

    with_pydantic_ai.py URL"""
import pydantic
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.exceptions import ModelContextWindowExceededError, ModelNotFoundError
from pydantic_ai.messages import ThinkingPart
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from cells import COSTLY_MODES, FIVE, FULL, MODES, RESULT, SUM, TOLD, WEATHER, cells, raises, url

URL = url()


class Sum(pydantic.BaseModel):
    """The schema of an answer."""

    sum: int
    sure: bool


def openai(kind):
    return lambda name: kind(name, provider=OpenAIProvider(base_url=f"{URL}/v1", api_key="local"))


MODELS = {
    "chat": (openai(OpenAIChatModel), {"openai_reasoning_effort": "high"}),
    "responses": (openai(OpenAIResponsesModel), {"openai_reasoning_effort": "high", "openai_reasoning_summary": "auto"}),
    "messages": (
        lambda name: AnthropicModel(
            name, provider=AnthropicProvider(base_url=URL, api_key="local"),
            # It takes a model whose name it does not know for one that follows no schema.
            profile=ModelProfile(supports_json_schema_output=True),
        ),
        {"anthropic_thinking": {"type": "enabled", "budget_tokens": 1024}},
    ),
}
SETTINGS = {"temperature": 0, "max_tokens": 1500}


def answer(agent, stream, question, settings=SETTINGS):
    """The text and all messages of a run."""
    if not stream:
        result = agent.run_sync(question, model_settings=settings)
        return result.output, result.all_messages(), result.usage
    result = agent.run_stream_sync(question, model_settings=settings)
    return result.get_output(), result.all_messages(), result.usage


def runs(model, thinking):
    def question():
        for stream in MODES:
            text, _, usage = answer(Agent(model("pebble")), stream, SUM)
            assert FIVE in text and usage.input_tokens > 0 and usage.output_tokens > 0, (text, usage)

    def tools():
        for stream in COSTLY_MODES:
            agent, asked = Agent(model("pebble")), []

            @agent.tool_plain
            def get_weather(city: str) -> str:
                """Gives the weather in a city.

                Args:
                    city: The city
                """
                asked.append(city)
                return RESULT

            text, _, _ = answer(agent, stream, WEATHER)
            assert asked == ["Oslo"] and TOLD in text, (asked, text)

    def thinks():
        for stream in COSTLY_MODES:
            text, messages, _ = answer(Agent(model("pebble")), stream, SUM, SETTINGS | thinking)
            thoughts = [part.content for part in messages[-1].parts if isinstance(part, ThinkingPart)]
            assert any(thoughts) and FIVE in text, messages

    def structured():
        agent = Agent(model("pebble"), output_type=NativeOutput(Sum))
        assert isinstance(agent.run_sync(SUM, model_settings=SETTINGS).output, Sum)

    def error():
        for stream in MODES:
            unknown = raises(ModelNotFoundError, lambda: answer(Agent(model("other")), stream, SUM))
            assert unknown.status_code == 404, unknown
            long = raises(ModelContextWindowExceededError, lambda: answer(Agent(model("pebble")), stream, "one two " * 6000))
            assert long.status_code == 400, long

    return {"question": question, "tools": tools, "thinking": thinks, "error": error} | ({"structured": structured} if FULL else {})


for name, (model, thinking) in MODELS.items():
    cells(f"pydantic-ai, {name}", runs(model, thinking))
