"""`llm`, the command line program, over chat completions.

    with_llm.py URL"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from cells import FIVE, SUM, TOLD, WEATHER, cells, url

URL = url()
# Models as its users declare them; one has a name that the server does not know.
MODELS = "".join(
    f"- model_id: {name}\n  model_name: {name}\n  api_base: {URL}/v1\n  supports_tools: true\n  reasoning: true\n" for name in ["pebble", "other"]
)
WEATHER_TOOL = '''
def get_weather(city: str) -> str:
    "Gives the weather in a city."
    return '{"condition": "sunny", "temperature": 12}'
'''


def run(*arguments):
    with tempfile.TemporaryDirectory() as home:
        Path(home, "extra-openai-models.yaml").write_text(MODELS)
        environment = os.environ | {"LLM_USER_PATH": home, "OPENAI_API_KEY": "local", "HOME": home}
        command = [Path(sys.executable).with_name("llm"), *arguments]
        return subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)


def told(*arguments):
    done = run(*arguments)
    assert done.returncode == 0, done
    return done.stdout


def question():
    for stream in [[], ["--no-stream"]]:
        assert FIVE in told("-m", "pebble", "-o", "temperature", "0", *stream, SUM)


def tools():
    for stream in [[], ["--no-stream"]]:
        assert TOLD in told("-m", "pebble", "-o", "temperature", "0", "--functions", WEATHER_TOOL, *stream, WEATHER)


def thinking():
    # Its standard output is the answer alone.
    text = told("-m", "pebble", "-o", "temperature", "0", "-o", "reasoning_effort", "high", SUM)
    assert FIVE in text and len(text) < 60, text


def error():
    unknown = run("-m", "other", SUM)
    assert unknown.returncode == 1 and "there is no model" in unknown.stderr, unknown
    long = run("-m", "pebble", "one two " * 6000)
    assert long.returncode == 1 and "context" in long.stderr, long


cells("llm", {"question": question, "tools": tools, "thinking": thinking, "error": error})
