"""Sixty-four connections ask for a while, over all surfaces, whole and streamed, with and without thinking; one in ten goes away in the
middle of its answer. Every answer that is waited for is the one that was given alone before; 429 with Retry-After is right, anything else
is lost.

    load.py URL PID SECONDS [CONNECTIONS]"""
import http.client
import json
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from urllib.parse import urlsplit

from cells import WEATHER, cell, url
from wire import JSON, SURFACES, Reply, ask, figure

URL, PID, SECONDS = url(), sys.argv[2], float(sys.argv[3])
CONNECTIONS = int(sys.argv[4]) if len(sys.argv) > 4 else 64
ADDRESS = urlsplit(URL)
QUESTIONS = ["What is 2 + 3?", "What is 17 + 25?", "Name the colour of the sky.", "What is 6 * 7?", WEATHER]


def resident():
    """The server's memory in MiB."""
    return int(subprocess.run(["ps", "-o", "rss=", "-p", PID], capture_output=True, text=True, check=True).stdout) / 1024


def bodies():
    """Every request that is made, with what was answered to it alone."""
    modes = [(surface, stream, thinking) for surface in SURFACES for stream in (False, True) for thinking in (False, True)]
    for number, (surface, stream, thinking) in enumerate(modes):
        # A short run has one question for each mode.
        for question in QUESTIONS if SECONDS >= 60 else [QUESTIONS[number % len(QUESTIONS)]]:
            body = surface.body([("user", question)], stream, thinking, most=120, tools=question == WEATHER)
            told = ask(URL, surface, body)[1]
            yield surface, body, (told.thought, told.text, [call[1:] for call in told.calls], told.end, told.completion)


class Client(threading.Thread):
    """One connection after another, one request on each."""

    def __init__(self, number, known, until):
        super().__init__(daemon=True)
        self.random, self.known, self.until = random.Random(number), known, until
        self.counts, self.faults, self.waits = Counter(), [], []

    def run(self):
        while time.monotonic() < self.until:
            surface, body, expected = self.random.choice(self.known)
            try:
                outcome = self.once(surface, body, expected)
            except Exception as error:  # noqa: BLE001: anything that breaks is counted as lost
                outcome = "lost"
                self.faults.append(f"{surface.name}: {type(error).__name__}: {error}"[:500])
            self.counts[outcome] += 1

    def once(self, surface, body, expected):
        begun = time.monotonic()
        connection = http.client.HTTPConnection(ADDRESS.hostname, ADDRESS.port, timeout=120)
        try:
            connection.request("POST", surface.path, json.dumps(body), JSON)
            if self.random.random() < 0.1:
                if body["stream"]:
                    connection.getresponse().read1(1)
                else:
                    time.sleep(self.random.random() / 4)
                return "vanished"
            response = connection.getresponse()
            reply = Reply(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()
        if reply.status == 429:
            wait = int({name.lower(): value for name, value in reply.headers.items()}["retry-after"])
            assert wait >= 1, reply
            # A client would wait as long as the header says; this one comes back sooner, which is harder.
            time.sleep(min(wait, 1))
            return "turned away"
        assert reply.status == 200, f"{reply.status} {reply.body[:300]}"
        told = surface.told(surface.whole(reply.events()) if body["stream"] else reply.json())
        self.waits.append(time.monotonic() - begun)
        if (told.thought, told.text, [call[1:] for call in told.calls], told.end, told.completion) == expected:
            return "right"
        self.faults.append(f"{surface.name}: {told} is not {expected}")
        return "wrong"


def load():
    known = list(bodies())
    before, tokens, begun = resident(), figure(URL, "ponder_tokens_total"), time.monotonic()
    clients = [Client(number, known, begun + SECONDS) for number in range(CONNECTIONS)]
    for client in clients:
        client.start()
    # Memory of the first half's work stays; the second half must not need more.
    time.sleep(SECONDS / 2)
    middle = resident()
    for client in clients:
        client.join(SECONDS / 2 + 120)
        assert not client.is_alive(), "a client hangs"
    took = time.monotonic() - begun
    after, counts = resident(), sum((client.counts for client in clients), Counter())
    faults = [fault for client in clients for fault in client.faults]
    waits = sorted(wait for client in clients for wait in client.waits)
    assert not faults and not counts["wrong"] and not counts["lost"], (dict(counts), faults[:5])
    assert counts["right"] > 0 and counts["vanished"] > 0 and (CONNECTIONS < 40 or counts["turned away"] > 0), counts
    for _ in range(100):
        if figure(URL, "ponder_requests_in_flight") == 0:
            break
        time.sleep(0.1)
    assert figure(URL, "ponder_requests_in_flight") == 0, "answers are made for nobody"
    assert after < middle + 64, (before, middle, after)
    rate = (figure(URL, "ponder_tokens_total") - tokens) / took
    return (f"{CONNECTIONS} connections for {took:.0f} s: {counts['right']} right, 0 wrong, 0 lost, {counts['vanished']} vanished, "
            f"{counts['turned away']} told when to come back; an answer took {waits[len(waits) // 2]:.1f} s (p95 {waits[len(waits) * 95 // 100]:.1f} s); "
            f"{rate:.0f} tokens/s read and written; memory {before:.0f} MiB before, {middle:.0f} in the middle, {after:.0f} after")


cell("load", f"{CONNECTIONS} connections", load)
