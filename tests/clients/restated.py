"""How cases of other servers' own tests are re-stated in our words and asked of ours over HTTP with Pebble. What a model reads is compared
by its tokens: two requests are one prompt if the second finds all of the first in the cache. A case where ours does otherwise on purpose is
checked for what ours does, and says why."""
from cells import cells, url
from wire import Chat, Messages, RESPONSES, Responses, ask, post

URL = url()
SUITES = {}
USER = {"role": "user", "content": "hello"}
# The line that Claude Code puts before its instructions.
HASH = "x-anthropic-billing-header: cc_version=2.1; cch=abc;"


def case(suite, otherwise=None):
    """Notes a case of a suite; `otherwise` says why ours does it in another way."""
    def note(run):
        def noted():
            run()
            return otherwise

        SUITES.setdefault(suite, {})[run.__name__.replace("_", " ")] = noted
        return run

    return note


def say(surface, name, turns, **more):
    """One token of an answer to these messages."""
    most = {"chat": "max_completion_tokens", "responses": "max_output_tokens", "messages": "max_tokens"}[surface.name]
    return ask(URL, surface, {"model": "pebble", name: turns, most: 1, "temperature": 0, **more})


def chat(*messages, **more):
    return say(Chat, "messages", list(messages), **more)[1]


def responses(items, **more):
    return say(Responses, "input", items, **more)[1]


def messages(*turns, **more):
    return say(Messages, "messages", list(turns), **more)[1]


def one_prompt(first, second):
    """Both requests give the model the same tokens."""
    first, second = first(), second()
    assert first.prompt == second.prompt and second.cached + 8 >= second.prompt, (first, second)


def longer(first, second):
    first, second = first(), second()
    assert first.prompt > second.prompt, (first, second)


def refused(path, body, param, status=400):
    reply = post(URL, path, {"model": "pebble", "max_tokens": 9} | body if path != RESPONSES else {"model": "pebble"} | body)
    error = reply.json()["error"]
    assert reply.status == status, reply
    assert error.get("param", error["message"].split(":")[0]) == param, error


def run():
    """Runs all cases that were noted."""
    for suite, runs in SUITES.items():
        cells(suite, runs)
