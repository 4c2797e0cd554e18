"""`ponder serve` beside mlx-lm's own server in one run: both answer 1, 4 and 8 clients at once over /v1/chat/completions, streamed, with 32 bit
floats on the CPU. Tokens are those of the replies' usage; the end of an answer is made unlikely, so that both write as many.

    server_speed.py --ponder PONDER --model FOLDER [--tokens N] [--rounds N] [--clients 1,4,8]"""
import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from http.server import ThreadingHTTPServer
from pathlib import Path

WORDS = "the river sun stone house tree bird road hill rain wind night bread salt gold ship wolf moon field lamp".split()


def peer(model):
    """mlx-lm's server on a free port, which it prints, with its defaults but for the floats."""
    from mlx_lm import server
    from mlx_lm.utils import load_config, load_tokenizer

    from oracle import load_in_f32

    def load(path, **kwargs):
        config = load_config(Path(path))
        tokenizer = load_tokenizer(Path(path), kwargs.get("tokenizer_config") or {}, eos_token_ids=config.get("eos_token_id"))
        return load_in_f32(path), tokenizer, config

    server.load = load
    sys.argv = ["server", "--model", model, "--host", "127.0.0.1", "--port", "0", "--log-level", "ERROR"]

    class Listening(ThreadingHTTPServer):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            print(self.server_address[1], flush=True)

    run_http_server = server._run_http_server
    server._run_http_server = lambda host, port, generator: run_http_server(host, port, generator, server_class=Listening)
    server.main()


def start(name, options, home):
    """A server as a process of its own, and its port."""
    if name == "ponder":
        command = [options.ponder, "serve", "--port", "0", "--json", "--model", options.model, "--max-sequences", str(max(options.clients))]
        environment = os.environ | {"PONDER_HOME": home, "HF_HOME": f"{home}/hub"}
    else:
        command = [sys.executable, __file__, "--peer", "--model", options.model]
        # Its wheel has an MLX of its own.
        environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
        if preload := os.environ.get("PONDER_ORACLE_PRELOAD"):
            environment["LD_PRELOAD"] = preload
    log = Path(home, f"{name}.log")
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=log.open("w"), text=True)
    line = process.stdout.readline()
    assert line, f"{name} did not start:\n{log.read_text()}"
    port = json.loads(line)["port"] if name == "ponder" else int(line)
    return process, port


def answer(port, model, ends, number, tokens):
    """One streamed answer to a question that nobody asked before: its tokens and the seconds to its first piece, or to its end if no token of a
    random model is text."""
    words = " ".join(WORDS[(number * 7 + at * (number % 5 + 1)) % len(WORDS)] for at in range(40))
    body = {"model": model, "stream": True, "stream_options": {"include_usage": True}, "max_tokens": tokens, "temperature": 0.8,
            "logit_bias": {str(end): -100 for end in ends}, "chat_template_kwargs": {"enable_thinking": False},
            "messages": [{"role": "user", "content": f"Tell story {number} about: {words}."}]}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    begun, first, usage = time.monotonic(), None, None
    connection.request("POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"})
    response = connection.getresponse()
    assert response.status == 200, response.read()
    for line in response:
        if not line.startswith(b"data: {"):
            continue
        chunk = json.loads(line[6:])
        delta = chunk["choices"][0]["delta"] if chunk["choices"] else {}
        if first is None and (delta.get("content") or delta.get("reasoning_content") or delta.get("reasoning")):
            first = time.monotonic() - begun
        usage = chunk.get("usage") or usage
    connection.close()
    return usage["completion_tokens"], first or time.monotonic() - begun


def together(ask, clients, number):
    """So many clients at once: tokens of a second in all, and the median of the seconds to a first token."""
    answers = []
    threads = [threading.Thread(target=lambda at=at: answers.append(ask(number + at))) for at in range(clients)]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - begun
    assert len(answers) == clients, "an answer is lost"
    return sum(tokens for tokens, _ in answers) / took, statistics.median(first for _, first in answers)


def compare(options):
    ends = json.loads(Path(options.model, "config.json").read_text())["eos_token_id"]
    ends = ends if isinstance(ends, list) else [ends]
    figures = {}
    servers = {}
    with tempfile.TemporaryDirectory() as home:
        try:
            for name in ("ponder", "mlx_lm.server"):
                servers[name] = start(name, options, home)
            number = 0
            for clients in [1, *options.clients]:
                for turn in range(options.rounds):
                    # In turns, so that what else the computer does meets both.
                    for name, (_, port) in servers.items():
                        model = Path(options.model).name if name == "ponder" else options.model
                        ask = lambda at, port=port, model=model: answer(port, model, ends, at, options.tokens)  # noqa: E731
                        number += clients
                        figures.setdefault((name, clients), []).append(together(ask, clients, number))
        finally:
            for process, _ in servers.values():
                process.terminate()
    print(f"{'clients':>8} {'ponder':>14} {'mlx_lm.server':>14} {'ratio':>6}   first token: ponder, mlx_lm.server")
    for clients in options.clients:
        best = {name: max(figures[name, clients]) for name in servers}
        (ours, first), (theirs, peers) = best["ponder"], best["mlx_lm.server"]
        print(f"{clients:>8} {ours:>8.0f} tok/s {theirs:>8.0f} tok/s {ours / theirs:>6.2f}   {first:.2f} s, {peers:.2f} s")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--ponder")
    parser.add_argument("--model", required=True)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=lambda text: [int(count) for count in text.split(",")], default=[1, 4, 8])
    options = parser.parse_args()
    if options.peer:
        peer(options.model)
    else:
        compare(options)


if __name__ == "__main__":
    main()
