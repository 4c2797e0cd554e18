"""The waiting times of a user in the real window, with a large history: 5,000 chats, 200,000 messages, one chat of 3,000.

    python window_speed.py APP [APP...] --history FOLDER [--only paint,open,key,search,palette,list,stream,memory,idle,import] [--answers 200] [--seconds 60]

Each APP is a built `ponder-app`, of a release or for development; FOLDER is what the example `scale` of the history has written. Prints each figure with its target and how many times the target it is.
Answers come at 200 tokens a second from an endpoint of this script, so that no model takes a processor from the window. Times are of the page's own thread where
nothing else is said: a display without a screen draws 60 times a second, and a wait for its next frame is nobody's work. The exit code is 1 if a target is missed."""
import argparse
import json
import os
import re
import shutil
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median

from real_window import Window, first_paint, focus, memory, processes, threads, until, watch

PARTS = ["paint", "open", "key", "search", "palette", "list", "stream", "memory", "idle", "import"]
TOKENS_PER_SECOND = 200
LONG, OTHERS = "chat-0", ["chat-77", "chat-1234", "chat-4998"]
# Two answers of as many tokens, in seconds and in tokens.
STREAM_SECONDS, SHORT_ANSWER = 10, 200
# For how long the caret blinks after the last key, with some time to spare.
CARET_RESTS = 15

TEXT = """## About the {n}th question

The harbour lies where the river meets the sea, and *every* boat that comes in brings a letter, a parcel or a **story** with it. Nobody counts them; the lantern at the pier is lit all the same.

- first a rope, then a [chart](https://example.org/chart) and a knife
- second, `bread` for four days, which is one more than it takes
- third: nothing that cannot be carried up the stairs in one go

```python
def tide(hours: float, height: float = 3.2) -> float:
    \"\"\"The height of the water so many hours after noon.\"\"\"
    return height * (1 + math.sin(hours / 12.4 * math.tau)) / 2
```

| place | depth | light |
|---|---|---|
| pier | 4 m | green |
| bar | 2 m | none |

> What is written down in the evening is read in the morning, and what is read in the morning is forgotten at noon.

"""
CODE = "    total += weights[index] * values[index]  # a line like the one before it\n"


class Endpoint:
    """A model server on loopback that writes every answer at the same rate."""

    def __init__(self):
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                body = json.dumps({"object": "list", "data": [{"id": model, "object": "model"} for model in ("prose", "code", "short")]}).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self):
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("connection", "close")
                self.end_headers()
                try:
                    endpoint.write(self.wfile, asked["model"])
                except OSError:
                    pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @staticmethod
    def tokens(model):
        """Four letters each, as tokens have on average."""
        if model == "code":
            text = "```python\n" + CODE * 200
        else:
            text = "".join(TEXT.format(n=n) for n in range(40))
        count = SHORT_ANSWER if model == "short" else STREAM_SECONDS * TOKENS_PER_SECOND
        return [text[at : at + 4] for at in range(0, 4 * count, 4)]

    def write(self, out, model):
        def event(delta, reason=None):
            chunk = {"id": "1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
            out.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
            out.flush()

        begun = time.monotonic()
        for number, token in enumerate(self.tokens(model)):
            # By the clock, so that what is late is caught up with.
            time.sleep(max(0, begun + number / TOKENS_PER_SECOND - time.monotonic()))
            event({"role": "assistant", "content": token} if number == 0 else {"content": token})
        event({}, "stop")
        out.write(b"data: [DONE]\n\n")
        out.flush()


TOOLS = (Path(__file__).parent / "window_probes.js").read_text()


class Figures:
    """The measured figures, next to their targets."""

    def __init__(self):
        self.missed = []

    def tell(self, what, figure, target, unit="ms", least=False, note=""):
        """Prints a figure; `least`: it should be as much at least."""
        ratio = target / figure if least and figure else figure / target
        print(f"{what:74} {figure:8.1f} {unit:4} target {'≥' if least else '≤'} {target:6.1f}  ratio {ratio:5.2f}{'  ' + note if note else ''}", flush=True)
        if ratio > 1:
            self.missed.append(what)


def spread(times):
    return f"(of {len(times)}: {min(times):.0f} to {max(times):.0f})"


class Bench:
    def __init__(self, app, options, home, endpoint, figures):
        self.app, self.options, self.home, self.endpoint, self.figures = app, options, home, endpoint, figures
        self.window = None

    def start(self):
        """The app with the long chats at hand, and its endpoint as the default model."""
        self.window = Window(self.app, self.home)
        until("the chats are listed", lambda: self.window.find("chat-item"))
        self.window.run(TOOLS)
        # Work at the start after the first frame is not measured.
        time.sleep(3)

    def prepare(self):
        self.start()
        self.window.invoke_in("settings", "Settings", "add_endpoint", {"name": "bench", "url": self.endpoint.url, "key": None, "unencryptedKey": False})
        for chat in [*OTHERS, LONG]:
            self.window.invoke("pin_chat", {"id": chat, "pinned": True})
        self.stop()

    def stop(self):
        self.window.close()
        # The end of the app is not waited for by its driver.
        until("the app has ended", lambda: not processes(self.window))

    def end_of(self, chat):
        return f"number {chat.removeprefix('chat-')} {2999 if chat == LONG else 39}"

    def open(self, chat):
        return self.window.run_async("return await bench.open(args[0], args[1])", chat, self.end_of(chat))

    def paint(self):
        """With the long chat open, which was open last."""
        times = []
        for number in range(6):
            self.start()
            if number == 0:
                self.open(LONG)
                time.sleep(1)
            else:
                times.append(first_paint(self.window))
            self.stop()
        self.figures.tell("first paint, from the start of the process; 5,000 chats, the long one open", median(times), 500, note=spread(times))

    def opening(self):
        self.start()
        self.open(OTHERS[1])
        short, long = [], []
        for _ in range(9):
            short.append(self.open(OTHERS[0]))
            time.sleep(0.3)
            long.append(self.open(LONG))
            time.sleep(0.5)
        self.figures.tell("open a chat of 40 messages, until it is drawn", median(short), 150, note=spread(short))
        self.figures.tell("open the chat of 3,000 messages, until it is drawn", median(long), 150, note=spread(long))
        self.stop()

    def type(self, what, field="composer", keys="the quick brown fox jumps over it ", caret=10_000_000):
        self.window.click(field)
        self.window.run(f"bench.by('{field}').setSelectionRange({caret}, {caret})")
        time.sleep(1)
        self.window.run(f"window.typed = bench.keys('{field}')")
        for key in keys:
            self.window.press(key)
            time.sleep(0.03)
        # Work after a pause, such as storing the draft and counting its tokens, is included.
        time.sleep(1.5)
        typed = self.window.run("return window.typed()")
        work = [figure["work"] for figure in typed["figures"]]
        seen = median(figure["seen"] for figure in typed["figures"])
        self.figures.tell(f"a key in {what}", median(work), 16, note=f"{spread(work)}, seen after {seen:.0f} ms")
        self.figures.tell("  longest task, storing and counting included", typed["longest"], 50)
        self.window.run(f"bench.write('{field}', '')")
        time.sleep(1)

    def key(self):
        self.start()
        self.open(OTHERS[0])
        self.type("the composer")
        for what, keys, caret in [("the end of a draft of 200 KB", "the quick brown fox jumps over it ", 10_000_000), ("its beginning", "the quick", 100)]:
            self.window.run("bench.write('composer', 'a line of words in a draft\\n'.repeat(200000 / 27))")
            time.sleep(2)
            self.type(what, keys=keys, caret=caret)
        self.open(LONG)
        self.type("the composer below 3,000 messages")
        self.stop()

    def search(self):
        self.start()
        self.open(OTHERS[0])
        times, longest = [], []
        self.window.run("window.dispatchEvent(new KeyboardEvent('keydown', { key: 'F', code: 'KeyF', ctrlKey: true, shiftKey: true, bubbles: true, cancelable: true }))")
        time.sleep(0.3)
        # Words that no title holds, because titles stand above what was said.
        for text in ["river token", "cafe naive", "number 4711", "engine proof", "lantern budget", "京都 letter", "harbour gar", "n 77", "proof engine"]:
            self.window.run("window.watched = bench.watch()")
            times.append(self.window.run_async("return await bench.search(args[0])", text))
            time.sleep(0.3)
            longest.append(self.window.run("return window.watched()")["longest"])
            self.window.run("bench.write('search', '')")
            time.sleep(0.5)
        self.figures.tell("search in 200,000 messages, from the last letter until it is drawn", median(times), 50, note=spread(times))
        self.figures.tell("  longest task", max(longest), 32)
        self.type("the search field", "search", "river lantern")
        self.stop()

    def palette(self):
        self.start()
        opened, found = [], []
        for chat in range(9):
            times = self.window.run_async("return await bench.palette(args[0])", f"Chat {1000 + 7 * chat}")
            opened.append(times["opened"])
            found.append(times["found"])
            time.sleep(0.3)
        self.figures.tell("open the palette, until its entries are drawn", median(opened), 50, note=spread(opened))
        self.figures.tell("words in the palette, until what they find is drawn", median(found), 50, note=spread(found))
        self.stop()

    def list(self):
        self.start()
        frames = self.window.run_async("return await bench.scroll(300, 120)")
        self.figures.tell("a frame of the list of chats while it scrolls", median(frames), 16, note=spread(frames))
        self.stop()

    def importing(self):
        """The last part, because the history is a larger one afterwards."""
        self.start()
        done = self.window.run_async("return await bench.importChats(1000, 12)")
        self.figures.tell(f"import 1,000 chats of 12 messages ({done['bytes'] / 1e6:.1f} MB)", done["time"], 3000)
        self.stop()

    def ask(self, model, watched=True):
        """Asks in the open chat; the figures of the answer."""
        self.window.invoke("change_settings", {"change": {"default_model": f"endpoint:bench/{model}"}})
        return self.window.run_async(
            """const before = document.querySelectorAll('[data-testid=message-assistant]').length && [...document.querySelectorAll('[data-testid=message-assistant]')].at(-1).dataset.messageId;
            bench.write('composer', 'Write something long, please.');
            await bench.frame();
            bench.by('send').click();
            const last = () => [...document.querySelectorAll('[data-testid=message-assistant]')].at(-1);
            const begun = performance.now();
            const late = () => { if (performance.now() - begun > 100000) throw new Error('no answer comes'); };
            const pause = (time) => new Promise((resolve) => setTimeout(resolve, time));
            while (!last() || last().dataset.messageId === before || !last().querySelector('[data-testid=answer-text]')) { late(); await pause(20); }
            const stop = args[0] ? bench.watch() : null;
            while (last().dataset.state === 'streaming') { late(); await pause(50); }
            if (last().dataset.state !== 'complete') throw new Error('the answer is ' + last().dataset.state);
            const seen = stop?.();
            await pause(300);
            return seen""",
            watched,
        )

    def busy(self):
        """The seconds that the page's own thread ran so far."""
        return sum(ran for thread, ran, _ in threads(processes(self.window)).values() if re.fullmatch(r"WebKitWebProces\S* · WebKitWebProces\S*", thread))

    def stream(self):
        """Without a graphics card the processor draws every frame of the window, so the display's own limit is reported
        as well."""
        self.start()
        self.window.click("new-chat")
        ceiling = self.window.run_async("return await bench.ceiling()")
        print(f"frames in which one word changes: {ceiling:.1f} /s")
        for what, model, chat in [("an answer in a new chat", "prose", None), ("code in one long block", "code", None), ("an answer in the chat of 3,000 messages", "prose", LONG)]:
            if chat is None:
                self.window.click("new-chat")
            else:
                self.open(chat)
            time.sleep(0.5)
            begun, before = time.monotonic(), self.busy()
            seen = self.ask(model)
            share = 100 * (self.busy() - before) / (time.monotonic() - begun)
            self.figures.tell(f"{what} at {TOKENS_PER_SECOND} tokens a second: frames", seen["frames"], 58, "/s", least=True, note=f"the page's own thread: {share:.0f} % of a processor")
            self.figures.tell("  longest task", seen["longest"], 32, note=f"above 16 ms: {seen['tasks']}" if seen["tasks"] else "")
        self.stop()

    def least_memory(self):
        """Memory at rest; garbage waits for its collection, so the minimum of half a minute counts."""
        seen = []
        for _ in range(6):
            time.sleep(5)
            seen.append(memory(processes(self.window)))
        return min(seen, key=lambda parts: sum(parts.values()))

    def memory(self):
        """Of all processes, in one chat that grows."""
        self.start()
        self.window.click("new-chat")
        sizes = {0: self.least_memory()}
        for number in range(1, self.options.answers + 1):
            self.ask("short", watched=False)
            if number == 20 or number % 50 == 0 or number == self.options.answers:
                sizes[number] = self.least_memory()
        for number, parts in sizes.items():
            print(f"  after {number:3} answers {sum(parts.values()):6.0f} MB  " + ", ".join(f"{part} {size:.0f}" for part, size in parts.most_common()))
        last = max(sizes)
        before, after = (sum(sizes[number].values()) for number in (20, last))
        self.figures.tell(f"memory of all processes after {last} answers, in times of that after 20", after / before, 1.1, "×", note=f"{before:.0f} → {after:.0f} MB")
        self.stop()

    def idle(self):
        self.start()
        self.open(OTHERS[0])
        self.window.click("composer")
        self.window.press("a")
        focus(processes(self.window)[0], self.window.call("GET", "/title"))
        time.sleep(CARET_RESTS)
        focused = self.window.run("return document.hasFocus() && document.activeElement.dataset.testid === 'composer'")
        spent = watch(f"with the caret resting in the composer ({'focused' if focused else 'the window has no focus here'})", processes(self.window), self.options.seconds)
        self.figures.tell("CPU of all processes while the caret rests in the composer", 100 * spent / 60, 0.5, "%")
        self.stop()

    def all(self):
        self.prepare()
        parts = {
            "paint": self.paint,
            "open": self.opening,
            "key": self.key,
            "search": self.search,
            "palette": self.palette,
            "list": self.list,
            "stream": self.stream,
            "memory": self.memory,
            "idle": self.idle,
            "import": self.importing,
        }
        for part in self.options.only:
            parts[part]()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("apps", metavar="app", nargs="+", type=lambda path: Path(path).resolve())
    parser.add_argument("--history", type=Path, required=True)
    parser.add_argument("--only", type=lambda text: text.split(","), default=PARTS)
    parser.add_argument("--answers", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    if unknown := set(options.only) - set(PARTS):
        parser.error(f"no part is called {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    figures = Figures()
    print(f"load of the computer before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    endpoint = Endpoint()
    for app in options.apps:
        print(f"\n{app}")
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            home = Path(folder)
            for file in options.history.glob("history.sqlite*"):
                shutil.copy(file, home)
            bench = Bench(app, options, home, endpoint, figures)
            try:
                bench.all()
            finally:
                if bench.window:
                    bench.window.close()
    print(f"above its target: {', '.join(figures.missed)}" if figures.missed else "all within their targets")
    sys.exit(1 if figures.missed else 0)


if __name__ == "__main__":
    main()
