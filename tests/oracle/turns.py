"""A chat, turn by turn, through mlx-lm's own server with its prompt cache, in 32 bit floats on the CPU. Prints JSON.

Tokens are counted where the server calls the model, up to the first sampled token of each turn; times are those of the first
piece of the streamed reply."""
import argparse
import http.client
import json
import os
import sys
import threading
import time
from http.server import ThreadingHTTPServer
from pathlib import Path

import mlx.core as mx
import mlx_lm
from mlx_lm import server
from mlx_lm.utils import load_config, load_tokenizer

from oracle import load_in_f32


class Count:
    """Tokens that went through the model since the turn began, until one was sampled."""

    def __init__(self):
        self.begin()

    def begin(self):
        self.tokens, self.sampled = 0, False

    def watch_model(self, model):
        kind = type(model)
        call = kind.__call__

        def counted(this, inputs, *args, **kwargs):
            if not self.sampled:
                self.tokens += inputs.size
            return call(this, inputs, *args, **kwargs)

        kind.__call__ = counted

    def watch_sampler(self, make):
        def make_watched(*args, **kwargs):
            sampler = make(*args, **kwargs)

            def sample(*logprobs):
                self.sampled = True
                return sampler(*logprobs)

            return sample

        return make_watched


def start_server(path, count):
    """The server on a free port, with its defaults."""
    def load(model_path, **kwargs):
        model = load_in_f32(model_path)
        count.watch_model(model)
        config = load_config(Path(model_path))
        tokenizer = load_tokenizer(Path(model_path), kwargs.get("tokenizer_config") or {}, eos_token_ids=config.get("eos_token_id"))
        return model, tokenizer, config

    server.load = load
    server._make_sampler = count.watch_sampler(server._make_sampler)
    # The server reads its settings from the command line alone.
    sys.argv = ["server", "--model", path, "--host", "127.0.0.1", "--port", "0", "--max-tokens", "1200", "--log-level", "ERROR"]
    ready, listening = threading.Event(), []

    class Listening(ThreadingHTTPServer):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            listening.append(self.server_address[1])
            ready.set()

    run_http_server = server._run_http_server
    server._run_http_server = lambda host, port, generator: run_http_server(host, port, generator, server_class=Listening)
    threading.Thread(target=server.main, daemon=True).start()
    if not ready.wait(60):
        raise RuntimeError("mlx-lm's server did not start")
    return listening[0]


def turn(port, messages, count, thinking=True):
    body = {"messages": messages, "stream": True, "temperature": 0.0, "chat_template_kwargs": {"enable_thinking": thinking}}
    count.begin()
    start, first, text, usage = time.perf_counter(), None, "", {}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    body["stream_options"] = {"include_usage": True}
    connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
    reply = connection.getresponse()
    if reply.status != 200:
        raise RuntimeError(f"{reply.status} {reply.read().decode()}")
    for line in reply:
        if not line.startswith(b"data: ") or line.startswith(b"data: [DONE]"):
            continue
        chunk = json.loads(line[6:])
        usage = chunk.get("usage") or usage
        for choice in chunk.get("choices") or []:
            first = first or time.perf_counter()
            text += (choice.get("delta") or {}).get("content") or ""
    return {
        "prompt_tokens": usage.get("prompt_tokens", 0),
        "prefilled_tokens": count.tokens,
        "first_token_ms": ((first or time.perf_counter()) - start) * 1000,
        "text": text,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="the model's folder")
    parser.add_argument("--chat", required=True, help="a file with the chat, questions and answers, in the OpenAI form")
    args = parser.parse_args()
    mx.set_default_device(mx.cpu)
    chat = json.loads(Path(args.chat).read_text())
    count = Count()
    port = start_server(args.model, count)
    # A question that begins otherwise loads the model.
    turn(port, [{"role": "user", "content": "Hello!"}], count, thinking=False)
    turns = [turn(port, chat[: index + 1], count) for index, message in enumerate(chat) if message["role"] == "user"]
    print(json.dumps({"versions": f"mlx-lm {mlx_lm.__version__}, mlx {mx.__version__}", "turns": turns}), flush=True)
    # The server's threads wait for requests for ever.
    os._exit(0)


if __name__ == "__main__":
    main()
