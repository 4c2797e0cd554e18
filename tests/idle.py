"""What the app costs while nobody does anything, in the real window without a screen.

    python idle.py APP [--seconds 60]

APP is the built `ponder-app`. Prints, with Pebble loaded and the chat and Models windows open, the CPU time of all its processes and the wake-ups (voluntary context
switches) of their threads, without focus and with the caret resting in the composer; the network is switched off, so that nothing is waited for; then the memory before a model is loaded, with it, and after it was unloaded;
and the time to the first paint. A figure above its target is said to be, and the exit code is 1 then."""
import argparse
import ctypes
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from glob import glob
from pathlib import Path

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
# What an idle minute may cost all processes together, in seconds of CPU, and what the caret may cost of one CPU.
IDLE_SECONDS, CARET_SHARE = 0.3, 0.005


class Window:
    """The app under WebDriver, with data of its own."""

    def __init__(self, app, home):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        environment = os.environ | {"TAURI_WEBVIEW_AUTOMATION": "true", "PONDER_HOME": str(home), "HF_HOME": str(home / "hub"), "HF_HUB_OFFLINE": "1"}
        driver = ["xvfb-run", "-a", "-s", "-screen 0 1280x860x24 -nolisten tcp", "dbus-run-session", "--", "WebKitWebDriver", f"--port={port}", "--host=127.0.0.1"]
        self.driver = subprocess.Popen(driver, env=environment, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.base, self.home, self.app = f"http://127.0.0.1:{port}", home, app
        wanted = {"capabilities": {"alwaysMatch": {"webkitgtk:browserOptions": {"binary": str(app), "args": []}}}}
        self.base += "/session/" + until("the app starts", lambda: self.call("POST", "/session", wanted))["sessionId"]

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as reply:
                return json.load(reply)["value"]
        except (urllib.error.URLError, OSError):
            return None

    def run(self, script, *args):
        return self.call("POST", "/execute/sync", {"script": script, "args": args})

    def find(self, name):
        found = self.call("POST", "/element", {"using": "css selector", "value": f'[data-testid="{name}"]'})
        return found and found[ELEMENT]

    def click(self, name):
        element = until(f"{name} is there", lambda: self.find(name))
        self.call("POST", f"/element/{element}/click", {})

    def write(self, name, text):
        element = until(f"{name} is there", lambda: self.find(name))
        self.call("POST", f"/element/{element}/value", {"text": text})

    def show(self, title):
        def shown():
            for handle in self.call("GET", "/window/handles") or []:
                self.call("POST", "/window", {"handle": handle})
                if self.call("GET", "/title") == title:
                    return True
            return False

        until(f"a window is called {title}", shown)

    def close(self):
        self.call("DELETE", "")
        os.killpg(self.driver.pid, signal.SIGKILL)
        self.driver.wait()


def until(what, holds, seconds=90):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := holds():
            return value
        time.sleep(0.1)
    sys.exit(f"idle: it never came to this: {what}")


def processes(app):
    """The app and what it has started, by their ids."""
    parents, found = {}, set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
                parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
                if os.readlink(entry / "exe") == str(app):
                    found.add(int(entry.name))
            except OSError:
                pass
    while new := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= new
    return sorted(found)


def focus(app, title):
    """Gives a window the keyboard, as a window manager does; there is none on a display without a screen."""
    environ = dict(entry.split("=", 1) for entry in Path(f"/proc/{app}/environ").read_text().split("\0") if "=" in entry)
    os.environ["XAUTHORITY"] = environ["XAUTHORITY"]
    x = ctypes.CDLL("libX11.so.6")
    x.XOpenDisplay.restype = ctypes.c_void_p
    display = ctypes.c_void_p(x.XOpenDisplay(environ["DISPLAY"].encode()))
    x.XDefaultRootWindow.restype = ctypes.c_ulong

    def search(window):
        text = ctypes.c_char_p()
        if x.XFetchName(display, ctypes.c_ulong(window), ctypes.byref(text)) and text.value == title.encode():
            return window
        root, parent, children, count = ctypes.c_ulong(), ctypes.c_ulong(), ctypes.POINTER(ctypes.c_ulong)(), ctypes.c_uint()
        x.XQueryTree(display, ctypes.c_ulong(window), ctypes.byref(root), ctypes.byref(parent), ctypes.byref(children), ctypes.byref(count))
        return next((found for index in range(count.value) if (found := search(children[index]))), None)

    window = search(x.XDefaultRootWindow(display))
    if window:
        x.XRaiseWindow(display, ctypes.c_ulong(window))
        x.XSetInputFocus(display, ctypes.c_ulong(window), 1, ctypes.c_ulong(0))
    x.XCloseDisplay(display)


def name(pid):
    return Path(f"/proc/{pid}/comm").read_text().strip()


def threads(pids):
    """For each thread its process and name, the seconds that it ran, and how often it waited for something."""
    seen = {}
    for pid in pids:
        # A process or a thread may end meanwhile.
        for task in glob(f"/proc/{pid}/task/*"):
            try:
                task = Path(task)
                waits = int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", (task / "status").read_text(), re.MULTILINE)[1])
                seconds = int((task / "schedstat").read_text().split()[0]) / 1e9
                seen[int(task.name)] = (f"{name(pid)} · {(task / 'comm').read_text().strip()}", seconds, waits)
            except OSError:
                pass
    return seen


def watch(what, pids, seconds):
    """Lets so much time pass, and prints what it cost; the seconds of CPU."""
    before, begun = threads(pids), time.monotonic()
    time.sleep(seconds)
    after, took = threads(pids), time.monotonic() - begun
    cpu, wakes = Counter(), Counter()
    for task, (thread, ran, waited) in after.items():
        _, ran_before, waited_before = before.get(task, ("", 0, 0))
        cpu[thread] += ran - ran_before
        wakes[thread] += waited - waited_before
    total = sum(cpu.values())
    print(f"\n{what}, {took:.0f} s: {total:.3f} s of CPU ({100 * total / took:.2f} %), {sum(wakes.values())} wake-ups")
    for thread, count in wakes.most_common():
        if count > 0 or cpu[thread] >= 0.001:
            print(f"  {thread:45} {count:6} wake-ups  {1000 * cpu[thread]:8.1f} ms")
    return total * 60 / took


def memory(pids):
    """The share of memory that each process has (PSS), in MB by name."""
    sizes = Counter()
    for pid in pids:
        try:
            sizes[name(pid)] += int(re.search(r"^Pss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)[1]) * 1024 / 1e6
        except OSError:
            pass
    return sizes


def ask_engine(home, call):
    """A call of the app's engine over its socket."""
    with socket.socket(socket.AF_UNIX) as engine:
        engine.connect(str(home / "run/engine.sock"))
        engine.sendall(json.dumps(call).encode() + b"\n")
        return json.loads(engine.makefile().readline())


def first_paint(home):
    log = "".join(file.read_text() for file in (home / "logs").iterdir())
    return int(re.search(r"first paint milliseconds=(\d+)", log)[1])


def measure(window, seconds):
    home = window.home
    until("the chat window is there", lambda: window.find("composer"))
    time.sleep(5)
    pids = processes(window.app)
    painted, sizes = first_paint(home), {"before a model is loaded": memory(pids)}

    window.click("open-models")
    window.show("Models")
    until("the Models window has listed models", lambda: window.find("memory"))
    window.show("Ponder")
    window.write("composer", "What is 347 + 589?")
    window.click("send")
    until("the answer is complete", lambda: window.run("return document.querySelector('[data-testid=message-assistant]')?.dataset.state") == "complete")
    print("the answer:", window.run("return document.querySelector('[data-testid=answer-text]').textContent.trim()"))
    # What follows an answer, such as reading ahead, is no idle time.
    time.sleep(10)
    pids = processes(window.app)
    sizes["with Pebble, both windows"] = memory(pids)

    window.run("document.activeElement.blur()")
    idle = watch("without focus", pids, seconds)
    window.click("composer")
    focus(pids[0], "Ponder")
    time.sleep(1)
    focused = window.run("return document.hasFocus() && document.activeElement.dataset.testid === 'composer'")
    caret = watch(f"with the caret in the composer ({'focused' if focused else 'the window has no focus here'})", pids, seconds)

    unloaded = ask_engine(home, {"unload_idle": ["pebble", {"secs": 0, "nanos": 0}]})
    time.sleep(5)
    sizes[f"after Pebble was unloaded ({unloaded})"] = memory(processes(window.app))
    print("\nmemory in MB (PSS):")
    for when, parts in sizes.items():
        print(f"  {when:45} {sum(parts.values()):6.0f}  " + ", ".join(f"{part} {size:.0f}" for part, size in parts.most_common()))
    print(f"\nstart to first paint: {painted} ms")
    missed = [what for what, figure, most in [("an idle minute", idle, IDLE_SECONDS), ("the caret", caret / 60, CARET_SHARE)] if figure > most]
    print(f"above its target: {', '.join(missed)}" if missed else "all within their targets")
    return missed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("app", type=lambda path: Path(path).resolve())
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        window = Window(options.app, Path(home))
        try:
            missed = measure(window, options.seconds)
        finally:
            window.close()
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
