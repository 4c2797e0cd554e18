"""`ponder serve` compared with mlx-lm's own server, and with vllm-mlx if it is there, in one run: 1, 4 and 8 clients at once over
/v1/chat/completions, streamed, with 32 bit floats on the CPU. Tokens are those of the replies' usage; the end of an answer is made
unlikely, so that all write as many.

    server_speed.py --ponder PONDER --model FOLDER [--vllm-mlx PROGRAM] [--tokens N] [--rounds N] [--clients 1,4,8]"""
import argparse
import http.client
import json
import os
import shutil
import socket
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


def widen(model, folder):
    """Copies the model with its weights as 32 bit floats, which vllm-mlx has no switch for."""
    import mlx.core as mx
    from mlx.utils import tree_flatten

    from oracle import load_in_f32

    shutil.copytree(model, folder, ignore=shutil.ignore_patterns("*.safetensors*", "config.json"))
    config = json.loads(Path(model, "config.json").read_text())
    # By their name it would take Pebble for a model that sees, which it decodes one by one.
    config.pop("architectures", None)
    for part in (config, config.get("text_config", {})):
        part.pop("quantization", None)
        part.pop("quantization_config", None)
    Path(folder, "config.json").write_text(json.dumps(config))
    mx.save_safetensors(f"{folder}/model.safetensors", dict(tree_flatten(load_in_f32(model).parameters())), {"format": "mlx"})


def peers_environment():
    """Of a process whose wheel has an MLX of its own."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    if preload := os.environ.get("PONDER_ORACLE_PRELOAD"):
        environment["LD_PRELOAD"] = preload
    return environment


def start_vllm_mlx(options, home, log):
    """vllm-mlx, which takes no port 0 and does not say its port: one that was free a moment ago."""
    wide = f"{home}/{Path(options.model).name}"
    subprocess.run([sys.executable, __file__, "--widen", wide, "--model", options.model], env=peers_environment(), check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = peers_environment() | {"HF_HOME": home, "HF_HUB_OFFLINE": "1"}
    command = [options.vllm_mlx, "serve", wide, "--host", "127.0.0.1", "--port", str(port), "--continuous-batching",
               "--max-num-seqs", str(max(options.clients))]
    process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    while True:
        assert process.poll() is None, "vllm-mlx ended before it listened"
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("GET", "/v1/models")
            named = json.loads(connection.getresponse().read())["data"][0]["id"]
            return process, port, named
        except OSError:
            time.sleep(0.2)


def start(name, options, home):
    """A server as a process of its own, its port, and how it calls the model."""
    log = Path(home, f"{name}.log").open("w")
    if name == "vllm-mlx":
        return start_vllm_mlx(options, home, log)
    if name == "ponder":
        command = [options.ponder, "serve", "--no-key", "--port", "0", "--json", "--model", options.model, "--max-sequences", str(max(options.clients))]
        environment = os.environ | {"PONDER_HOME": home, "HF_HOME": f"{home}/hub"}
    else:
        command = [sys.executable, __file__, "--peer", "--model", options.model]
        environment = peers_environment()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=log, text=True)
    line = process.stdout.readline()
    assert line, f"{name} did not start:\n{Path(log.name).read_text()}"
    if name == "ponder":
        return process, json.loads(line)["port"], Path(options.model).name
    return process, int(line), options.model


def answer(port, model, ends, number, tokens):
    """One streamed answer to a new question: its tokens and the seconds to its first piece, or to its end if no token of a
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
    """Measures this many clients at once: tokens per second in total, and the median of the seconds to a first
    token."""
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
            for name in ("ponder", "mlx_lm.server", *(["vllm-mlx"] if options.vllm_mlx else [])):
                servers[name] = start(name, options, home)
            number = 0
            for clients in [1, *options.clients]:
                for turn in range(options.rounds):
                    # In turns, so that what else the computer does meets both.
                    for name, (_, port, model) in servers.items():
                        ask = lambda at, port=port, model=model: answer(port, model, ends, at, options.tokens)  # noqa: E731
                        number += clients
                        figures.setdefault((name, clients), []).append(together(ask, clients, number))
        finally:
            for process, _, _ in servers.values():
                process.terminate()
                process.wait()
    peers = [name for name in servers if name != "ponder"]
    print(f"{'clients':>8} {'ponder':>14} " + " ".join(f"{name:>14} {'ratio':>6}" for name in peers) + f"   first token: {', '.join(servers)}")
    for clients in options.clients:
        best = {name: max(figures[name, clients]) for name in servers}
        ours = best["ponder"][0]
        row = " ".join(f"{best[name][0]:>8.0f} tok/s {ours / best[name][0]:>6.2f}" for name in peers)
        print(f"{clients:>8} {ours:>8.0f} tok/s {row}   {', '.join(f'{first:.2f} s' for _, first in best.values())}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--widen")
    parser.add_argument("--vllm-mlx")
    parser.add_argument("--ponder")
    parser.add_argument("--model", required=True)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=lambda text: [int(count) for count in text.split(",")], default=[1, 4, 8])
    options = parser.parse_args()
    if options.peer:
        peer(options.model)
    elif options.widen:
        widen(options.model, options.widen)
    else:
        compare(options)


if __name__ == "__main__":
    main()
