"""Hostile requests to a server with Pebble behind it: recorded requests with something changed, bodies that are no requests, headers and
bodies that come too slowly. It answers all of them with an error or an answer, stays alive, and goes on answering others.

    attack.py URL PID FIXTURES CHANGED SLOW    where CHANGED requests are changed, and SLOW connections are slow (0: none)"""
import json
import os
import random
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

from cells import FIVE, SUM, cell, cells, url
from wire import CHAT, MESSAGES, RESPONSES, Chat, ask, send

URL, PID = url(), sys.argv[2]
FIXTURES, CHANGED, SLOW = Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
SEED = int(os.environ.get("PONDER_SEED", 20261121))
POSTS = [CHAT, RESPONSES, MESSAGES, "/v1/messages/count_tokens", "/v1/completions", "/v1/embeddings"]
# Every status but those of a server that broke.
FINE = {200, 400, 404, 405, 413, 415, 429}


def resident():
    return int(subprocess.run(["ps", "-o", "rss=", "-p", PID], capture_output=True, text=True, check=True).stdout) / 1024


def assert_well():
    """It is the same process, and answers."""
    assert send(URL, "GET", "/health", headers={}).status == 200
    told = ask(URL, Chat, Chat.body([("user", SUM)], False, False))[1]
    assert FIVE in told.text, told


def places(value, at=()):
    yield at
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(inner, (*at, key))


ODD = [None, -1, 0, 1e300, 2**70, [], {}, "\u0000", True, [{}, 5, None], "\ud800", "x" * 10_000, {"type": "text"}, [[[[[]]]]], "system", "<|turn>model\n"]


def limit_of(path):
    return "max_output_tokens" if "responses" in path else "max_tokens"


def changed(body, choose, limit):
    """The request with a value replaced, taken out, repeated or renamed, or with bytes changed. `limit`, if its body has it, still ends the answer."""
    limited = limit in body
    body = json.loads(json.dumps(body))
    for _ in range(choose.randint(1, 3)):
        place = choose.choice(list(places(body))[1:] or [()])
        if not place:
            break
        inner = body
        for key in place[:-1]:
            inner = inner[key]
        match choose.randrange(4):
            case 0 | 1:
                inner[place[-1]] = choose.choice(ODD)
            case 2:
                del inner[place[-1]]
            case _ if isinstance(inner, list):
                inner.insert(place[-1], inner[place[-1]])
            case _:
                inner[str(place[-1]) + "_"] = inner.pop(place[-1])
    # An answer without an end would be waited for until the context is full.
    if limited and (body.get(limit) is None or isinstance(body[limit], (int, float)) and body[limit] > 2):
        body[limit] = 2
    text = bytearray(json.dumps(body).encode())
    if choose.random() < 0.3:
        for _ in range(choose.randint(1, 4)):
            text[choose.randrange(len(text))] = choose.randrange(256)
    return bytes(text)


def fuzz():
    choose = random.Random(SEED)
    recorded = [sent for file in sorted(FIXTURES.glob("*.json")) for sent in json.loads(file.read_text())["requests"] if sent["body"]]
    # Answers as such are not looked for here.
    for sent in recorded:
        if "embeddings" not in sent["path"] and "count" not in sent["path"]:
            sent["body"][limit_of(sent["path"])] = 2
            sent["body"].pop("thinking", None)
    statuses = Counter()
    for number in range(CHANGED):
        sent = choose.choice(recorded)
        headers = dict(sent["headers"])
        if choose.random() < 0.1 and headers:
            headers[choose.choice(list(headers))] = choose.choice(["", "x" * 3000, "\u00e9", "0", "text/plain"])
        body = changed(sent["body"], choose, limit_of(sent["path"]))
        reply = send(URL, "POST", sent["path"], body, headers, timeout=120)
        statuses[reply.status] += 1
        assert reply.status in FINE, f"seed {SEED}, {number}: {reply.status} {reply.body[:300]} to {body[:2000]}"
        if reply.status >= 400:
            error = reply.json()["error"]
            # Ollama's errors are texts.
            assert error if isinstance(error, str) else error["message"], reply
    assert statuses[200] > 0 and statuses[400] > 0, statuses
    assert_well()
    return f"{CHANGED} changed requests, seed {SEED}: " + ", ".join(f"{count} x {status}" for status, count in sorted(statuses.items()))


def bodies():
    deep = b'{"model": "pebble", "messages": ' + b"[" * 10_000
    closed = deep + b"]" * 10_000 + b"}"
    objects = b'{"messages": ' + b'{"a":' * 10_000 + b"1" + b"}" * 10_001
    for body, status in [(deep, 400), (closed, 400), (objects, 400), (b'{"model": "pebble", "messages": "\xff\xfe"}', 400), (b"\xff" * 1000, 400),
                         (b"", 400), (b"null", 400), (b"[" * 100_000, 400), (b'"' + b"a" * (1 << 20), 400), (b" " * (33 << 20), 413)]:
        for path in POSTS:
            try:
                reply = send(URL, "POST", path, body)
            except (BrokenPipeError, ConnectionResetError):
                # It has said no before all was sent.
                assert len(body) > 60_000, f"{path} {body[:60]}"
                continue
            assert reply.status == status, f"{path} {body[:60]}: {reply.status} {reply.body[:200]}"
    assert_well()


def a_million_messages():
    one = b'{"role":"user","content":"a"}'
    before, begun = resident(), time.monotonic()
    for path, field in [(CHAT, b"messages"), (MESSAGES, b"messages"), (RESPONSES, b"input")]:
        body = b'{"model":"pebble","max_tokens":1,"%s":[%s]}' % (field, b",".join([one] * 1_000_000))
        assert len(body) < 32 << 20
        assert send(URL, "POST", path, body).status == 413
    took, after = time.monotonic() - begun, resident()
    # As many as may be: they are read, and are too many for the context.
    body = b'{"model":"pebble","max_tokens":1,"messages":[%s]}' % b",".join([one] * 80_000)
    reply = send(URL, "POST", CHAT, body)
    assert reply.status == 400 and "at most 10000" in reply.json()["error"]["message"], reply
    assert_well()
    assert after < before + 512, (before, after)
    return f"three bodies of a million messages were refused in {took:.1f} s"


def strangers():
    """Another name for this address, and pages of other origins, on every path and method."""
    port = urlsplit(URL).port
    asked = 0
    for path in [*POSTS, "/v1/models", "/health", "/", "/metrics", "/nothing"]:
        for method in ["GET", "POST", "OPTIONS", "DELETE", "PUT", "HEAD"]:
            for headers in [{"host": f"evil.test:{port}"}, {"host": "127.0.0.1:1"}, {"origin": "http://evil.test"}, {"origin": "null"}, {"origin": f"http://localhost:{port + 1}"}]:
                reply = send(URL, method, path, b"{}" if method == "POST" else None, {"content-type": "application/json"} | headers)
                assert reply.status == 403 and "access-control-allow-origin" not in reply.headers, (method, path, headers, reply)
                asked += 1
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=a"]:
        assert send(URL, "POST", CHAT, Chat.body([("user", SUM)], False, False), {"content-type": kind}).status == 415
    return f"{asked} requests of strangers were refused"


def slow():
    """Headers and bodies that come byte by byte: each is cut, and others are answered meanwhile."""
    address = urlsplit(URL)
    head = f"POST {CHAT} HTTP/1.1\r\nhost: {address.netloc}\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n"
    open_, begun = [], time.monotonic()
    for number in range(SLOW):
        connection = socket.create_connection((address.hostname, address.port))
        connection.sendall((head if number % 2 else head + "\r\n{").encode())
        connection.settimeout(0)
        open_.append(connection)
    cut, waits = [], []
    while open_ and time.monotonic() < begun + 60:
        for connection in list(open_):
            try:
                connection.sendall(b"x")
                if connection.recv(4096):
                    continue
                ended = True
            except BlockingIOError:
                ended = False
            except OSError:
                ended = True
            if ended:
                cut.append(time.monotonic() - begun)
                connection.close()
                open_.remove(connection)
        asked = time.monotonic()
        ask(URL, Chat, Chat.body([("user", SUM)], True, False))
        waits.append(time.monotonic() - asked)
        time.sleep(0.5)
    assert not open_, f"{len(open_)} slow connections still live"
    assert max(waits) < 10, waits
    return f"{SLOW} slow connections were cut after {min(cut):.0f} to {max(cut):.0f} s; others were answered in at most {max(waits):.1f} s meanwhile"


# The model is loaded before anything is measured.
assert_well()
before = resident()
runs = {"changed requests": fuzz, "bodies that are no requests": bodies, "a million messages": a_million_messages, "strangers": strangers}
if SLOW:
    runs["slow connections"] = slow
cells("attack", runs)


def memory():
    """The allocator keeps what the largest bodies took for the next ones, in an arena for each thread; more than that is never kept."""
    took = [resident()]
    while len(took) < 2 or took[-1] >= took[-2] + 64:
        a_million_messages()
        took.append(resident())
        assert len(took) < 6 and took[-1] < before + 1024, (before, took)
    return f"memory {before:.0f} MiB before, then {', '.join(f'{after:.0f}' for after in took)} after the largest bodies, again and again"


cell("attack", "memory", memory)
