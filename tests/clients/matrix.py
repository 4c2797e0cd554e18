"""Every surface, streamed or not, with thinking on or off, in seven situations, over raw HTTP with Pebble: 84 cells. Eight are asked at
once, so that answers of different surfaces decode in one batch.

    matrix.py URL"""
import http.client
import json
import time
from urllib.parse import urlsplit

from cells import ARGUMENTS, FIVE, RESULT, SUM, TOLD, WEATHER, cells, url
from wire import JSON, SURFACES, ask, figure

URL = url()
# Pebble thinks about this one, also if it should not.
HARD = "What is 47 * 86?"


def question(surface, stream, thinking, text=SUM, **more):
    return surface.body([("user", text)], stream, thinking, **more)


def check_thought(told, thinking):
    assert bool(told.thought) == thinking, f"the thought is where it should not be, or not where it should be: {told}"
    if thinking and told.reasoning is not None:
        assert 0 < told.reasoning <= told.completion, told


def answer(surface, stream, thinking):
    _, told = ask(URL, surface, question(surface, stream, thinking))
    assert FIVE in told.text and told.end == surface.ends["answer"] and not told.calls, told
    check_thought(told, thinking)


def tool_call(surface, stream, thinking):
    _, told = ask(URL, surface, question(surface, stream, thinking, WEATHER, tools=True))
    [(_, name, arguments)] = told.calls
    assert (name, arguments, told.end, told.text) == ("get_weather", ARGUMENTS, surface.ends["call"], ""), told
    check_thought(told, thinking)


def tool_result(surface, stream, thinking):
    turns = [("user", WEATHER)]
    whole, told = ask(URL, surface, surface.body(turns, stream, thinking, tools=True))
    turns += [("answer", whole), ("result", (told.calls[0][0], RESULT))]
    _, told = ask(URL, surface, surface.body(turns, stream, thinking, tools=True))
    assert TOLD in told.text and told.end == surface.ends["answer"] and not told.calls, told
    # The prompt of the call is in the prefix cache.
    assert told.cached > 0, told


def hard_product(surface, stream, thinking):
    _, told = ask(URL, surface, question(surface, stream, thinking, HARD))
    assert told.text and told.end == surface.ends["answer"], told
    check_thought(told, thinking)
    # A hidden thought is left out, and counted.
    assert told.reasoning is None or told.reasoning > 10, told
    assert told.completion > 20, told


def max_tokens_in_the_thought(surface, stream, thinking):
    _, told = ask(URL, surface, question(surface, stream, thinking, HARD, most=6))
    assert told.end == surface.ends["length"] and told.completion == 6 and not told.text, told
    check_thought(told, thinking)


def stop_text(surface, stream, thinking):
    _, told = ask(URL, surface, question(surface, stream, thinking, stop=FIVE))
    assert FIVE not in told.text and told.end == surface.ends["stop text"], told
    check_thought(told, thinking)


def cut_by_the_client(surface, stream, thinking):
    # A conversation of its own, so that what is known of it later was read for this client.
    name = f"{surface.name} {'streamed' if stream else 'whole'} {thinking}"
    text = f"My name is {name}. What is 347 * 589, and what is 478 * 956?"
    body = question(surface, stream, thinking, text)
    cancelled = figure(URL, "ponder_cancelled_total")
    address = urlsplit(URL)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
    connection.request("POST", surface.path, json.dumps(body), JSON)
    if stream:
        response = connection.getresponse()
        assert response.status == 200 and response.read1(1)
        response.close()
    else:
        # A busy computer takes its time until the request has begun.
        for _ in range(100):
            if figure(URL, "ponder_requests_in_flight") == 1:
                break
            time.sleep(0.01)
        time.sleep(0.1)
    connection.close()
    for _ in range(100):
        if figure(URL, "ponder_cancelled_total") == cancelled + 1 and figure(URL, "ponder_requests_in_flight") == 0:
            break
        time.sleep(0.05)
    else:
        raise AssertionError("the answer is made for nobody")
    again = question(surface, False, thinking, text, most=8)
    _, told = ask(URL, surface, again)
    assert told.cached > 0 and told.completion > 0, told


def runs(*situations):
    return {
        f"{surface.name}, {'streamed' if stream else 'whole'}, {'thinking' if thinking else 'plain'}, {run.__name__.replace('_', ' ')}":
            (lambda run=run, surface=surface, stream=stream, thinking=thinking: run(surface, stream, thinking))
        for run in situations for surface in SURFACES for stream in [False, True] for thinking in [False, True]
    }


cells("matrix", runs(answer, tool_call, tool_result, hard_product, max_tokens_in_the_thought, stop_text), at_once=8)
# One after another, since the server's count tells of all that were cut.
cells("matrix", runs(cut_by_the_client))
