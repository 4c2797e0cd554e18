"""Attacks on the local server, and what a person notices of each: `python server_attacks.py PROGRAM… [--only WORD]`.

Each PROGRAM is a built `ponder`; with two, such as one from before a change, the table compares them. Every attack goes to a server
of its own, with Pebble. Columns: the status of the attack's last request and its seconds; the longest time that /health needed
meanwhile (`-` if it did not answer in 30 s); the rate of a chat beside it, in percent of its rate alone; and the memory of the
process before, at most, and 5 s after the end."""
import argparse
import http.client
import json
import os
import random
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path

PATIENCE = 30
CHAT, JSON = "/v1/chat/completions", "content-type: application/json\r\n"
MB = 1 << 20
FUZZED = 5000
# For how long the slow connections are held, in seconds.
HELD = 15


def question(text, **more):
    return {"model": "pebble", "temperature": 0, "messages": [{"role": "user", "content": text}]} | more


class Server:
    """A `ponder serve` with a home of its own."""

    def __init__(self, program, home):
        environment = os.environ | {"PONDER_HOME": home, "HF_HOME": f"{home}/hub", "HF_HUB_OFFLINE": "1"}
        told = subprocess.run([program, "serve", "--help"], stdout=subprocess.PIPE, check=True).stdout
        # A program from before there were keys by default does not know the switch.
        keys = ["--no-key"] if b"--no-key" in told else []
        self.process = subprocess.Popen(
            [program, "serve", *keys, "--port", "0", "--json"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.port = json.loads(self.process.stdout.readline())["port"]

    def send(self, method, path, body=None, timeout=300):
        """The status of an answer, or the name of what went wrong, and the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            connection.request(method, path, data, {"content-type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            return type(error).__name__, b""
        finally:
            connection.close()

    def together(self, count, path, body):
        """The last answer to a request that is sent so many times at once."""
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(self.send("POST", path, body))) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return answers[-1]

    def held_open(self, beginning, drip):
        """200 connections that begin a request and do not end it."""
        sockets = []
        for _ in range(200):
            try:
                opened = socket.create_connection(("127.0.0.1", self.port), timeout=5)
                sockets.append(opened)
                opened.sendall(beginning)
            except OSError:
                pass
        end = time.monotonic() + HELD
        while time.monotonic() < end:
            for opened in sockets:
                try:
                    opened.sendall(drip)
                except OSError:
                    pass  # The server has closed it.
            time.sleep(0.5)
        for opened in sockets:
            opened.close()
        return f"{len(sockets)} opened", b""

    def rate(self):
        """Tokens in a second of one chat; 0 if it was not answered."""
        start = time.monotonic()
        status, said = self.send("POST", CHAT, question("Count from 1 to 60", max_tokens=250), timeout=120)
        return json.loads(said)["usage"]["completion_tokens"] / (time.monotonic() - start) if status == 200 else 0.0

    def memory(self, field="VmRSS:"):
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) >> 10 for line in lines if line.startswith(field))

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def slow_headers(server):
    return server.held_open(f"POST {CHAT} HTTP/1.1\r\nhost: 127.0.0.1\r\n".encode(), b"x: y\r\n")


def slow_bodies(server):
    head = f"POST {CHAT} HTTP/1.1\r\nhost: 127.0.0.1\r\n{JSON}content-length: 30000000\r\n\r\n"
    return server.held_open(head.encode() + b'{"model": "', b"a" * 1000)


def words(size):
    return "one two three " * (size // 14)


def long_message(server):
    return server.send("POST", CHAT, question(words(30 * MB), stream=True))


def many_messages(server):
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}] * 40_000
    return server.send("POST", CHAT, {"model": "pebble", "messages": messages})


def many_references(server):
    status, said = server.send("POST", "/v1/responses", {"model": "pebble", "input": "Count from 1 to 60", "max_output_tokens": 200})
    if status != 200:
        return status, said
    item = json.loads(said)["output"][0]["id"]
    return server.send("POST", "/v1/responses", {"model": "pebble", "input": [{"type": "item_reference", "id": item}] * 200_000})


def large_bodies(server):
    return server.together(8, CHAT, json.dumps(question(words(30 * MB))).encode())


def large_counts(server):
    return server.together(16, "/v1/messages/count_tokens", json.dumps(question(words(4 * MB))).encode())


def fuzzed(server):
    """Requests whose JSON was changed at random; tells the worst status of all."""
    source, seen = random.Random(20261121), []
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    bodies = [
        (CHAT, question("hi", max_tokens=1, tools=[tool])),
        ("/v1/responses", {"model": "pebble", "input": "hi", "max_output_tokens": 1}),
        ("/v1/messages", question([{"type": "text", "text": "hi"}], max_tokens=1)),
        ("/v1/embeddings", {"model": "pebble", "input": "hi"}),
    ]
    odd = [b"null", b"[]", b"{}", b"-1", b"1e309", b'""', b"true", b'"\\u0000"', b"[[[[[[[[", b"\xff", b'{"type": "x"}']
    for _ in range(FUZZED):
        path, body = source.choice(bodies)
        text = bytearray(json.dumps(body).encode())
        for _ in range(source.randrange(1, 4)):
            at = source.randrange(len(text))
            text[at : at + source.randrange(0, 9)] = source.choice([*odd, bytes([source.randrange(256)])])
        seen.append(server.send("POST", path, bytes(text))[0])
    return f"worst of all {max(seen, key=lambda status: status if isinstance(status, int) else 999)}", b""


ATTACKS = {
    "200 slow headers": slow_headers,
    "200 slow bodies": slow_bodies,
    "a message of 30 MB": long_message,
    "80,000 messages": many_messages,
    "200,000 references": many_references,
    "8 messages of 30 MB": large_bodies,
    "16 counts of 4 MB": large_counts,
    f"{FUZZED:,} fuzzed requests": fuzzed,
}


class Watch:
    """A person beside an attack: probes of the server's health, and one chat after another."""

    def __init__(self, server):
        self.server, self.done = server, threading.Event()
        self.probes, self.rates, self.memories = [], [], []
        self.threads = [threading.Thread(target=self.probe), threading.Thread(target=self.chat)]
        for thread in self.threads:
            thread.start()

    def probe(self):
        while not self.done.is_set():
            start = time.monotonic()
            status, _ = self.server.send("GET", "/health", timeout=PATIENCE)
            self.probes.append(time.monotonic() - start if status == 200 else None)
            self.memories.append(self.server.memory())
            time.sleep(0.2)

    def chat(self):
        while not self.done.is_set():
            self.rates.append(self.server.rate())

    def end(self):
        self.done.set()
        for thread in self.threads:
            thread.join()


def attacked(program, attack):
    with tempfile.TemporaryDirectory() as home:
        server = Server(program, home)
        try:
            server.rate()
            alone = statistics.median(server.rate() for _ in range(3))
            before, watch, start = server.memory(), Watch(server), time.monotonic()
            status, said = attack(server)
            seconds = time.monotonic() - start
            watch.end()
            time.sleep(5)
            health = "-" if None in watch.probes else f"{max(watch.probes):.2f} s"
            rate = f"{100 * statistics.median(watch.rates) / alone:.0f} %"
            most = max([*watch.memories, server.memory("VmHWM:")])
            told = said.decode(errors="replace").replace("\n", " ")[:110] if status != 200 else ""
            return f"{status}, {seconds:.1f} s | {health} | {rate} | {before} / {most} / {server.memory()} MB | {told}"
        finally:
            server.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", nargs="+")
    parser.add_argument("--only", default="")
    wanted = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}\n| attack | program | outcome | /health | chat | memory | told |")
    for name in filter(lambda name: wanted.only in name, ATTACKS):
        for program in wanted.programs:
            print(f"| {name} | {program} | {attacked(program, ATTACKS[name])} |", flush=True)


if __name__ == "__main__":
    main()
