"""The requests of fifteen clients (server/tests/fixtures), sent again to a server with Pebble: each reply is well formed and its events
come in order. A model that cannot embed refuses requests for embeddings in the client's own form.

    replay.py URL FOLDER"""
import json
import sys
from pathlib import Path

from cells import cells, url
from wire import SURFACES, send

URL = url()
BY_PATH = {surface.path: (surface, limit) for surface, limit in zip(SURFACES, ["max_completion_tokens", "max_output_tokens", "max_tokens"])}
# The requests are long and not meant for Pebble; the form of its answers is checked, not their end.
MOST = 24


def again(sent):
    path, body = sent["path"].split("?")[0], sent["body"]
    surface, limit = BY_PATH.get(path, (None, None))
    if surface:
        body = body | {limit: MOST}
    if path in ("/api/chat", "/api/generate") and body.get("prompt") != "":
        body = body | {"options": (body.get("options") or {}) | {"num_predict": MOST}}
    reply = send(URL, sent["method"], sent["path"], body, sent["headers"])
    if path.startswith("/api/"):
        return ollama_s(path, body, reply)
    if path == "/v1/embeddings":
        assert reply.status == 400 and reply.json()["error"]["type"] == "invalid_request_error", reply
        return "refused"
    assert reply.status == 200, f"{reply.status} {reply.body[:500]}"
    if path == "/v1/messages/count_tokens":
        assert reply.json()["input_tokens"] > 0
        return "counted"
    if not surface:
        assert sent["method"] == "HEAD" or reply.json()["data"], reply
        return "listed"
    # Markers of a thought or a call never appear.
    assert not any(marker in reply.body for marker in (b"channel", b"tool_call>")), reply.body[:500]
    if body.get("stream"):
        whole = surface.whole(reply.events(), bool((body.get("stream_options") or {}).get("include_usage")))
    else:
        whole = reply.json()
    told = surface.told(whole)
    assert told.prompt > 0 and told.completion > 0, told
    if not told.text and not told.calls:
        # A call that is cut within its name cannot be reported, and a thought is left out if thinking is off.
        cut_call = told.end == surface.ends["length"] and body.get("tools")
        assert told.thought or told.reasoning or cut_call, told
    return "answered"


def ollama_s(path, body, reply):
    """A reply to a client of Ollama."""
    # Pebble makes no vectors and fills no gaps.
    if path.startswith("/api/embed") or body and body.get("suffix"):
        assert reply.status in (400, 404) and isinstance(reply.json()["error"], str), reply
        return "refused"
    # Another request of this script may be answered meanwhile.
    if body and body.get("prompt") == "" and reply.status == 503:
        return "not unloaded"
    assert reply.status == 200, f"{reply.status} {reply.body[:500]}"
    lines = [json.loads(line) for line in reply.body.splitlines()]
    if path not in ("/api/chat", "/api/generate"):
        assert len(lines) == 1, lines
        return "listed"
    assert not any(marker in reply.body for marker in (b"channel", b"tool_call>")), reply.body[:500]
    assert [line["done"] for line in lines] == [line is lines[-1] for line in lines], lines
    if lines[-1]["done_reason"] == "unload":
        return "unloaded"
    assert lines[-1]["prompt_eval_count"] > 0 and lines[-1]["eval_count"] > 0, lines[-1]
    return "answered"


def runs():
    for file in sorted(Path(sys.argv[2]).glob("*.json")):
        recorded = json.loads(file.read_text())
        for number, sent in enumerate(recorded["requests"], 1):
            yield f"{recorded['client'].partition(';')[0]}, {number}: {sent['method']} {sent['path']}", lambda sent=sent: again(sent)


cells("replay", dict(runs()), at_once=4)
