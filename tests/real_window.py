"""The built app in a real web view without a screen, driven by WebDriver, and what its processes cost. Scripts that measure the window share it."""
import ctypes
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from glob import glob
from pathlib import Path

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


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

    def run_async(self, script, *args):
        """Runs the body of an async function in the page, two minutes at most, and gives what it returns."""
        self.call("POST", "/timeouts", {"script": 120_000})
        wrapped = (
            "const args = [...arguments], done = args.pop();"
            f"(async () => {{ {script} }})().then((value) => done([true, value ?? null]), (reason) => done([false, String(reason?.message ?? reason)]));"
        )
        outcome = self.call("POST", "/execute/async", {"script": wrapped, "args": args})
        if not outcome or not outcome[0]:
            sys.exit(f"a script of the page failed: {outcome and outcome[1]}: {script[:200]}")
        return outcome[1]

    def invoke(self, command, arguments):
        """A command of the host, as the page calls it."""
        return self.run_async("return await window.__TAURI_INTERNALS__.invoke(args[0], args[1])", command, arguments)

    def invoke_in(self, name, title, command, arguments):
        """A command that only the page of another window may call; that window is closed afterwards."""
        chat = self.call("GET", "/window")
        self.invoke("open_window", {"name": name})
        self.show(title)
        done = self.invoke(command, arguments)
        self.call("DELETE", "/window")
        self.call("POST", "/window", {"handle": chat})
        return done

    def find(self, name):
        found = self.call("POST", "/element", {"using": "css selector", "value": f'[data-testid="{name}"]'})
        return found and found[ELEMENT]

    def click(self, name):
        element = until(f"{name} is there", lambda: self.find(name))
        self.call("POST", f"/element/{element}/click", {})

    def write(self, name, text):
        element = until(f"{name} is there", lambda: self.find(name))
        self.call("POST", f"/element/{element}/value", {"text": text})

    def press(self, key):
        """Presses a key where the focus is."""
        actions = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

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
    sys.exit(f"{Path(sys.argv[0]).stem}: it never came to this: {what}")


def processes(window):
    """The app of this window and what it has started, by their ids."""
    parents, found = {}, set()
    own = f"PONDER_HOME={window.home}"
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
                parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
                if os.readlink(entry / "exe") == str(window.app) and own in (entry / "environ").read_text().split("\0"):
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
    """Lets so much time pass, and prints what it cost; the seconds of CPU for each minute."""
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


def first_paint(window):
    """The milliseconds from the start of the app's process to the first paint that shows something, which the page of the chat window tells."""
    app = min(map(began, processes(window)))
    painted = window.run("return performance.timeOrigin + performance.getEntriesByName('first-contentful-paint')[0].startTime")
    booted = time.time() - float(Path("/proc/uptime").read_text().split()[0])
    return round(painted - 1000 * (booted + app))


def began(pid):
    """When a process began, in seconds after the start of the computer."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
