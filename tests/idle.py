"""The cost of the idle app, in the real window without a screen.

    python idle.py APP [--seconds 60]

APP is the built `ponder-app`. Prints, with Pebble loaded and the chat and Models windows open, the CPU time of all its processes and the wake-ups (voluntary context
switches) of their threads, without focus and with the caret resting in the composer; the network is switched off, so that nothing is waited for; then the memory before a model is loaded, with it, and after it was unloaded;
and the time to the first paint. A figure above its target is said to be, and the exit code is 1 then."""
import argparse
import json
import socket
import sys
import tempfile
import time
from pathlib import Path

from real_window import Window, first_paint, focus, memory, processes, until, watch

# Targets: CPU seconds of all processes together in an idle minute, and the caret's share of one CPU.
IDLE_SECONDS, CARET_SHARE = 0.3, 0.005
# For how long the caret blinks after the last key, with some time to spare.
CARET_RESTS = 15


def ask_engine(home, call):
    """A call of the app's engine over its socket."""
    with socket.socket(socket.AF_UNIX) as engine:
        engine.connect(str(home / "run/engine.sock"))
        engine.sendall(json.dumps(call).encode() + b"\n")
        return json.loads(engine.makefile().readline())


def measure(window, seconds):
    home = window.home
    until("the chat window is there", lambda: window.find("composer"))
    time.sleep(5)
    pids = processes(window)
    painted, sizes = first_paint(window), {"before a model is loaded": memory(pids)}

    window.click("open-models")
    window.show("Models")
    until("the Models window has listed models", lambda: window.find("memory"))
    window.show("Ponder")
    window.write("composer", "What is 347 + 589?")
    window.click("send")
    until("the answer is complete", lambda: window.run("return document.querySelector('[data-testid=message-assistant]')?.dataset.state") == "complete")
    print("the answer:", window.run("return document.querySelector('[data-testid=answer-text]').textContent.trim()"))
    # Work after an answer, such as prefetching, is not idle time.
    time.sleep(10)
    pids = processes(window)
    sizes["with Pebble, both windows"] = memory(pids)

    window.run("document.activeElement.blur()")
    idle = watch("without focus", pids, seconds)
    window.click("composer")
    focus(pids[0], "Ponder")
    time.sleep(CARET_RESTS)
    focused = window.run("return document.hasFocus() && document.activeElement.dataset.testid === 'composer'")
    caret = watch(f"with the caret in the composer ({'focused' if focused else 'the window has no focus here'})", pids, seconds)

    unloaded = ask_engine(home, {"unload_idle": "pebble"})
    time.sleep(5)
    sizes[f"after Pebble was unloaded ({unloaded})"] = memory(processes(window))
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
