"""`llm`, the command line program, over chat completions: one question by its process, the others by its commands in this process, since it
takes seconds to start.

    with_llm.py URL"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from click.testing import CliRunner
from llm.cli import cli

from cells import COSTLY_MODES, FIVE, SUM, TOLD, WEATHER, cells, url

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


def process(environment, arguments):
    command = [Path(sys.executable).with_name("llm"), *arguments]
    done = subprocess.run(command, env=os.environ | environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


def command(environment, arguments):
    done = CliRunner(env=environment).invoke(cli, arguments)
    return done.exit_code, done.stdout, done.stderr


def run(*arguments, how=command):
    """The exit status, standard output and standard error."""
    with tempfile.TemporaryDirectory() as home:
        Path(home, "extra-openai-models.yaml").write_text(MODELS)
        return how({"LLM_USER_PATH": home, "OPENAI_API_KEY": "local", "HOME": home}, arguments)


def told(*arguments, how=command):
    done = run(*arguments, how=how)
    assert done[0] == 0, done
    return done[1]


def question():
    assert FIVE in told("-m", "pebble", "-o", "temperature", "0", SUM, how=process)
    assert FIVE in told("-m", "pebble", "-o", "temperature", "0", "--no-stream", SUM)


def tools():
    for stream in COSTLY_MODES:
        how = [] if stream else ["--no-stream"]
        assert TOLD in told("-m", "pebble", "-o", "temperature", "0", "--functions", WEATHER_TOOL, *how, WEATHER)


def thinking():
    # Its standard output is the answer alone.
    text = told("-m", "pebble", "-o", "temperature", "0", "-o", "reasoning_effort", "high", SUM)
    assert FIVE in text and len(text) < 60, text


def error():
    unknown = run("-m", "other", SUM)
    assert unknown[0] == 1 and "there is no model" in unknown[2], unknown
    long = run("-m", "pebble", "one two " * 6000)
    assert long[0] == 1 and "context" in long[2], long


cells("llm", {"question": question, "tools": tools, "thinking": thinking, "error": error})
