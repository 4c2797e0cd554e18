"""Code shared by the scripts next to this one: a cell of the table of clients is run and printed as a line of JSON."""
import json
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

PRINTING = threading.Lock()
FULL = "PONDER_FULL" in os.environ
# The values of `stream`. Cells that take whole answers run both ways under `--full` and are streamed otherwise: sdks.py
# and matrix.py cover both.
MODES = [False, True]
COSTLY_MODES = MODES if FULL else [True]

# Questions for Pebble, and texts that its answers contain.
SUM, FIVE = "What is 2 + 3?", "5"
WEATHER = "What is the weather in Oslo?"
ARGUMENTS = {"city": "Oslo"}
RESULT = json.dumps({"condition": "sunny", "temperature": 12})
TOLD = "12"
ABOUT, CITY = "Gives the weather in a city.", "The city"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string", "description": CITY}}, "required": ["city"]}


def cell(client, name, run):
    """Runs one cell; an answer that is not right, or anything raised, is told and the others go on."""
    begun = time.monotonic()
    try:
        note = run()
        outcome = {"ok": True} | ({"note": note} if isinstance(note, str) else {})
    except Exception as error:  # noqa: BLE001: every failure of a client is a finding
        outcome = {"ok": False, "error": f"{type(error).__name__}: {error}"[:2000]}
    line = {"client": client, "cell": name, **outcome, "seconds": round(time.monotonic() - begun, 2)}
    with PRINTING:
        print(json.dumps(line), flush=True)


def cells(client, runs, at_once=1):
    """Runs a client's cells by name, several at once if it may be asked so."""
    with ThreadPoolExecutor(at_once) as pool:
        for done in [pool.submit(cell, client, name, run) for name, run in runs.items()]:
            done.result()


def raises(kind, ask):
    """Asks, and sees that this class of error comes of it, or one of its own below it that is called alike; the error."""
    try:
        ask()
    except kind as error:
        assert type(error).__name__.endswith(kind.__name__), type(error)
        return error
    raise AssertionError(f"{kind.__name__} was not raised")


def embedder():
    """The name of the server's embedding model, the second argument; `None` if it has none."""
    return sys.argv[2] if len(sys.argv) > 2 else None


def url():
    """The server's address, the first argument of every script."""
    return sys.argv[1].rstrip("/")
