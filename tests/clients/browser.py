"""Pages of a stranger in a real browser engine (WebKitGTK's MiniBrowser under WebDriver) that try to use a running `ponder serve`: by a name that
was pointed at this computer after the page was loaded (DNS rebinding), and across origins in every way that a page has. No answer is
started, no page reads anything but a refusal, and a chat of this computer goes on meanwhile.

    browser.py PONDER HOME SECONDS    where HOME is an empty data folder and SECONDS how long requests are stormed"""
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cells import FIVE, SUM, cells
from wire import Chat, ask, send

PONDER, HOME, SECONDS = sys.argv[1], sys.argv[2], float(sys.argv[3])
COUNT = "Count from 1 to 400"
ENVIRONMENT = os.environ | {"PONDER_HOME": HOME, "HF_HOME": f"{HOME}/hub"}
# The beginning of every attempt. `attempts` are named promises; their results are reported by name.
PRELUDE = """
const done = arguments[arguments.length - 1];
const body = JSON.stringify({model: 'pebble', max_tokens: 2000, messages: [{role: 'user', content: 'Count from 1 to 400'}]});
const json = {'content-type': 'application/json'};
const limited = (promise) => Promise.race([promise, new Promise((end) => setTimeout(() => end('nothing came'), 6000))]);
const told = (attempts) => Promise.all(Object.entries(attempts).map(async ([name, attempt]) => {
  try { return [name, await limited(attempt())]; } catch (error) { return [name, `refused: ${error.name}`]; }
})).then((all) => done(Object.fromEntries(all)));
const read = async (response) => response.type === 'opaque' ? 'opaque' : `${response.status} ${await response.text()}`;
const event = (target, good, bad) => new Promise((end) => {
  for (const name of good) target.addEventListener(name, () => end(`it had ${name}`));
  for (const name of bad) target.addEventListener(name, () => end('refused'));
});
const frame = (make) => new Promise((end) => {
  const frame = document.createElement('iframe');
  make(frame);
  // Its own empty page is loaded at once, before anybody listens.
  document.body.append(frame);
  frame.addEventListener('load', () => {
    try { end(`read: ${frame.contentDocument.body.innerText}`); } catch (error) { end('refused'); }
  });
});
const post = (kind, url, fields) => {
  const name = `frame${Math.random()}`, form = Object.assign(document.createElement('form'), {method: 'post', action: url, enctype: kind, target: name});
  for (const [name, value] of Object.entries(fields)) form.append(Object.assign(document.createElement('input'), {name, value}));
  document.body.append(form);
  const sent = frame((frame) => frame.name = name);
  form.submit();
  return sent;
};
"""
# A page whose own name leads to Ponder now: to the browser, all of it is one origin.
REBOUND = PRELUDE + """
told({
  page: () => fetch('/').then(read), models: () => fetch('/v1/models').then(read), health: () => fetch('/health').then(read),
  metrics: () => fetch('/metrics').then(read),
  chat: () => fetch('/v1/chat/completions', {method: 'POST', headers: json, body}).then(read),
  messages: () => fetch('/v1/messages', {method: 'POST', headers: json, body}).then(read),
  'raw host': () => fetch('/v1/models', {headers: {Host: '127.0.0.1'}}).then(read),
  frame: () => frame((frame) => frame.src = '/'),
  form: () => post('application/x-www-form-urlencoded', '/v1/chat/completions', {model: 'pebble'}),
  events: () => event(new EventSource('/v1/chat/completions'), ['open', 'message'], ['error']),
  socket: () => event(new WebSocket(`ws://${location.host}/v1/chat/completions`), ['open', 'message'], ['error']),
});
"""
# A page of another origin. The first argument is where Ponder listens.
FOREIGN = PRELUDE + """
const at = arguments[0], chat = `${at}/v1/chat/completions`;
const script = (make) => { const script = document.createElement('script'); make(script); document.head.append(script); return event(script, ['load'], ['error']); };
told({
  'fetch models': () => fetch(`${at}/v1/models`).then(read),
  'fetch chat': () => fetch(chat, {method: 'POST', headers: json, body}).then(read),
  'fetch as text': () => fetch(chat, {method: 'POST', body}).then(read),
  'fetch with cookies': () => fetch(chat, {method: 'POST', body, credentials: 'include'}).then(read),
  'fetch no-cors': () => fetch(chat, {method: 'POST', mode: 'no-cors', headers: json, body}).then(read),
  'get no-cors': () => fetch(`${at}/v1/models`, {mode: 'no-cors'}).then(read),
  'request': () => { const request = new XMLHttpRequest(); request.open('POST', chat); request.send(body); return event(request, ['load'], ['error']); },
  beacon: () => { navigator.sendBeacon(chat, new Blob([body], {type: 'text/plain'})); return 'refused'; },
  events: () => event(new EventSource(chat), ['open', 'message'], ['error']),
  socket: () => event(new WebSocket(chat.replace('http', 'ws')), ['open', 'message'], ['error']),
  image: () => { const image = new Image(); image.src = `${at}/`; return event(image, ['load'], ['error']); },
  script: () => script((script) => script.src = `${at}/v1/models`),
  module: () => import(`${at}/v1/models`).then(() => 'it was loaded'),
  worker: () => event(new Worker(`${at}/v1/models`), ['message'], ['error']),
  frame: () => frame((frame) => frame.src = `${at}/`),
  'form as text': () => post('text/plain', chat, {[body.slice(0, -1) + ', "a": "']: '"}'}),
  'form of fields': () => post('application/x-www-form-urlencoded', chat, {model: 'pebble'}),
  'page without an origin': () => new Promise((end) => {
    addEventListener('message', (event) => end(event.data));
    frame((frame) => { frame.sandbox = 'allow-scripts'; frame.srcdoc = `<script>fetch('${chat}', {method: 'POST', body: '{}'})
      .then((response) => response.text(), () => 'refused').then((text) => parent.postMessage(text, '*'))</` + 'script>'; });
  }),
});
"""
# As many requests as a page can send, until its time is over.
STORM = PRELUDE + """
const [at, seconds] = arguments, until = performance.now() + seconds * 1000;
let sent = 0;
const go = async () => { while (performance.now() < until) { sent += 1; await fetch(`${at}/v1/chat/completions`, {method: 'POST', body}).catch(() => 0); } };
Promise.all(Array.from({length: 8}, go)).then(() => done(sent));
"""


class Page(BaseHTTPRequestHandler):
    """A page of another origin, at every path."""

    def do_GET(self):  # noqa: N802: the library's name
        page = b"<!doctype html><title>a page</title><body>"
        self.send_response(200)
        for name, value in [("content-type", "text/html"), ("content-length", len(page)), ("connection", "close")]:
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_):
        pass


def stranger():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


class Browser:
    """WebKitGTK's own browser, driven by WebDriver on a display without a screen."""

    def __init__(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = ["xvfb-run", "-a", "-s", "-screen 0 800x600x24 -nolisten tcp", "dbus-run-session", "--", "WebKitWebDriver"]
        self.driver = subprocess.Popen(
            [*command, f"--port={port}", "--host=127.0.0.1"], start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.session, deadline = f"http://127.0.0.1:{port}/session", time.monotonic() + 60
        while True:
            try:
                self.session += "/" + self.post("", {"capabilities": {"alwaysMatch": {"timeouts": {"script": 90_000}}}})["sessionId"]
                return
            except OSError:
                if time.monotonic() > deadline:
                    self.close()
                    raise AssertionError("no session with the browser") from None
                time.sleep(0.1)

    def post(self, path, body):
        request = urllib.request.Request(self.session + path, json.dumps(body).encode(), {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=120) as response:
            return json.load(response)["value"]

    def open(self, address):
        self.post("/url", {"url": address})

    def run(self, script, *arguments):
        return self.post("/execute/async", {"script": script, "args": list(arguments)})

    def close(self):
        os.killpg(self.driver.pid, signal.SIGKILL)
        self.driver.wait()


def start_ponder(port):
    serving = subprocess.Popen([PONDER, "serve", "--no-key", "--port", str(port), "--json"], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True)
    assert json.loads(serving.stdout.readline())["port"] == port
    return serving


def counts():
    """Answers that were made, and all requests by their status."""
    lines = send(URL, "GET", "/metrics", headers={}).body.decode().splitlines()
    answers = sum(float(line.split()[1]) for line in lines if line.startswith(("ponder_answer_seconds_count", "ponder_cancelled_total", "ponder_requests_in_flight")))
    statuses = {}
    for line in lines:
        if line.startswith("ponder_requests_total"):
            status = line.split('status="')[1][:3]
            statuses[status] = statuses.get(status, 0) + int(line.split()[1])
    return answers, statuses


def refused_alone(before, least):
    """Since `before` there were only refusals, at least this many, and no answer was started."""
    (answers, statuses), (answers_before, statuses_before) = counts(), before
    came = {status: count - statuses_before.get(status, 0) for status, count in statuses.items() if count != statuses_before.get(status, 0)}
    # The look at the counts before is one of them.
    came["200"] = came.get("200", 0) - 1
    assert answers == answers_before, (answers_before, answers)
    assert {status for status, count in came.items() if count} == {"403"} and came["403"] >= least, came
    return came["403"]


def rebound():
    before = counts()
    told = browser.run(REBOUND)
    for name, text in told.items():
        assert text in ("refused", "nothing came") or "does not answer to that Host" in text, (name, text)
    assert sum("does not answer to that Host" in text for text in told.values()) >= 8, told
    return f"{refused_alone(before, 10)} requests by a name that was pointed here were refused"


def other_origins():
    refused = 0
    for page in ("127.0.0.1", "localhost", "evil.localhost"):
        for name in ("127.0.0.1", "localhost"):
            browser.open(f"http://{page}:{outside.server_address[1]}/")
            before = counts()
            told = browser.run(FOREIGN, f"http://{name}:{PORT}")
            wrong = {name: text for name, text in told.items() if not text.startswith("refused") and text not in ("opaque", "nothing came")}
            assert not wrong and sum(text.startswith("refused") for text in told.values()) >= 12, (page, told)
            refused += refused_alone(before, 12)
    return f"{refused} requests of pages of three other origins were refused"


def counted():
    """A chat of this computer: its text, and the tokens of a second."""
    command = [PONDER, "ask", "--json", "--model", "pebble", "--thinking", "off", "--temperature", "0", COUNT]
    lines = [json.loads(line) for line in subprocess.run(command, env=ENVIRONMENT, check=True, capture_output=True, text=True).stdout.splitlines()]
    assert lines[-1]["type"] == "done", lines[-1]
    return "".join(line["text"] for line in lines if line["type"] == "text"), lines[-1]["timing"]["decode_tokens_per_second"]


def storm():
    browser.open(f"http://evil.localhost:{outside.server_address[1]}/")
    counted()
    text, alone = counted()
    before, sent = counts(), []
    storming = threading.Thread(target=lambda: sent.append(browser.run(STORM, URL, SECONDS)))
    storming.start()
    rates, again = [], text
    while storming.is_alive() and again == text:
        again, rate = counted()
        rates.append(rate)
    storming.join()
    assert again == text and len(text) > 300, (text, again)
    # Requests that are refused cost the browser's time and ours, but no answer waits for them.
    assert min(rates) > alone / 8, (alone, rates)
    refused_alone(before, sent[0])
    rate = sent[0] / SECONDS
    return f"{sent[0]} requests in {SECONDS:.0f} s ({rate:.0f} a second) were refused; a chat made {alone:.0f} tokens/s before and {sum(rates) / len(rates):.0f} meanwhile"


def still_answers():
    assert FIVE in ask(URL, Chat, Chat.body([("user", SUM)], False, False))[1].text


outside, rebinding, browser, ponder = stranger(), stranger(), None, None
try:
    browser = Browser()
    PORT = rebinding.server_address[1]
    URL = f"http://127.0.0.1:{PORT}"
    browser.open(f"http://rebind.localhost:{PORT}/")
    # The name leads to Ponder from here on, as after a change in the stranger's DNS.
    rebinding.shutdown()
    rebinding.server_close()
    ponder = start_ponder(PORT)
    cells("browser", {"a name that was pointed here": rebound, "pages of other origins": other_origins, "a storm": storm, "answers": still_answers})
finally:
    if browser:
        browser.close()
    if ponder:
        ponder.kill()
        ponder.wait()
