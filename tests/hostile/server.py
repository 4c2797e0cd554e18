"""A local server that lives as long as the run, and is asked over HTTP."""
import http.client
import json
import signal
import subprocess

from watched import WAITS, end, field, peak, processor, resident

# The honest question that it must answer after each file.
QUESTION, ANSWER = "What is 2 + 3?", "5"
# Statuses that say what became of a request. 500 is a server that broke, unless it says that the model is and that
# nobody need ask again.
FINE = {200, 400, 404, 405, 413, 415, 422, 429, 503, 507}

class Fault(Exception):
    """A fault of the server after a file."""


class Server:
    def __init__(self, ponder, environment, seconds):
        self.ponder, self.environment, self.seconds = ponder, environment, seconds
        self.ends, self.peak, self.last, self.process = [], 0, 0, None
        self.start()

    def start(self):
        command = [self.ponder, "serve", "--no-key", "--port", "0", "--json"]
        self.log = open(f"{self.environment['PONDER_HOME']}/server.log", "ab")
        self.process = subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log)
        self.port = json.loads(self.process.stdout.readline())["port"]
        # The first questions load a model, which is no growth.
        for _ in range(3):
            self.honest()
        self.first = self.last = resident(self.process.pid)

    def send(self, method, path, body=None, headers=()):
        """The status and the body of a whole answer; 422 for a model that is broken."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.seconds * WAITS)
        try:
            connection.request(method, path, body, dict(headers))
            answer = connection.getresponse()
            broken = answer.status == 500 and answer.headers["x-should-retry"] == "false"
            return 422 if broken else answer.status, answer.read()
        finally:
            connection.close()

    def post(self, path, body):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.checked("POST", path, body, [("content-type", "application/json"), ("anthropic-version", "2023-06-01")])

    def checked(self, method, path, body=None, headers=()):
        before = self.used()
        try:
            status, said = self.send(method, path, body, headers)
        except TimeoutError:
            raise Fault(f"{path} did not answer within {self.seconds * WAITS} s by the clock") from None
        except (OSError, http.client.HTTPException) as error:
            # A body that is too long is refused before all of it is sent, which a client may see as a broken connection.
            if self.process.poll() is None and body and len(body) > 30 << 20:
                return 413, b""
            raise Fault(f"{path}: {self.how_it_ended() or repr(error)}") from None
        used = self.used() - before
        if used > self.seconds:
            raise Fault(f"{path} was not answered within {self.seconds} s of the processor, but {used:.0f}")
        if status not in FINE:
            raise Fault(f"{path} answered {status} after {used:.0f} s: {said[:200].decode(errors='replace')}")
        return status, said

    def used(self):
        return processor(self.process.pid)

    def how_it_ended(self):
        try:
            code = self.process.wait(2)
        except subprocess.TimeoutExpired:
            return None
        return f"the server was ended by {signal.Signals(-code).name}" if code < 0 else f"the server ended with {code}"

    def honest(self):
        """An honest question, and its answer."""
        body = {"model": "pebble", "messages": [{"role": "user", "content": QUESTION}], "temperature": 0, "max_tokens": 100}
        status, said = self.post("/v1/chat/completions", body | {"chat_template_kwargs": {"enable_thinking": False}})
        try:
            text = json.loads(said)["choices"][0]["message"]["content"]
        except (ValueError, KeyError, IndexError):
            text = ""
        if status != 200 or ANSWER not in text:
            raise Fault(f"the honest question was answered with {status}: {said[:200].decode(errors='replace')}")

    def look(self):
        self.last, self.own = resident(self.process.pid), field(self.process.pid, "VmRSS:")
        self.peak = max(self.peak, self.last, peak(self.process.pid))

    def stop(self):
        self.look()
        self.ends.append((self.first, self.last))
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                pass
        end(self.process)
        self.process.stdout.close()
        self.log.close()
