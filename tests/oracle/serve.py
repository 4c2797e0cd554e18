"""mlx-lm's own server on a free port of this computer, with what a test wants of it. Prints the port as JSON when it listens.

`--key` asks for a key as a front before such a server does; `--die-after N` ends the process after so many pieces of a streamed
answer; `--refuse FIELD` answers requests that have this field as strict servers do."""
import argparse
import json
import os
import sys
from http.server import ThreadingHTTPServer

from mlx_lm import server

arguments = argparse.ArgumentParser()
arguments.add_argument("--model", required=True)
arguments.add_argument("--key")
arguments.add_argument("--die-after", type=int)
arguments.add_argument("--refuse", action="append", default=[])
options = arguments.parse_args()


class Pieces:
    """The body of an answer, which may end the process."""

    def __init__(self, file):
        self.file, self.written = file, 0

    def write(self, data):
        self.file.write(data)
        self.file.flush()
        self.written += data.startswith(b"data: ")
        if options.die_after is not None and self.written > options.die_after:
            os._exit(9)

    def __getattr__(self, name):
        return getattr(self.file, name)


class Handler(server.APIHandler):
    def setup(self):
        super().setup()
        self.wfile = Pieces(self.wfile)

    def reply(self, status, body):
        self.send_response(status)
        self.send_header("Content-type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def is_allowed(self):
        allowed = options.key is None or self.headers.get("Authorization") == f"Bearer {options.key}"
        if not allowed:
            self.reply(401, {"error": {"message": "Incorrect API key provided", "type": "invalid_request_error"}})
        return allowed

    def do_GET(self):
        if self.is_allowed():
            super().do_GET()

    def do_POST(self):
        if self.is_allowed():
            super().do_POST()

    def validate_model_parameters(self):
        for field in options.refuse:
            if field in self.body:
                raise ValueError(f"Unrecognized request argument supplied: {field}")
        super().validate_model_parameters()


class Server(ThreadingHTTPServer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        print(json.dumps({"port": self.server_address[1]}), flush=True)


run_http_server = server._run_http_server
server._run_http_server = lambda host, port, generator: run_http_server(host, port, generator, server_class=Server, handler_class=Handler)
# The server reads its settings from the command line alone.
sys.argv = ["server", "--model", options.model, "--host", "127.0.0.1", "--port", "0", "--log-level", "ERROR"]
server.main()
