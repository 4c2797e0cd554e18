"""The cost of the idle app, in the real window without a screen.

    python idle.py APP [--seconds 60] [--tool-servers 10]

APP is the built `ponder-app`. Prints, with Pebble loaded and the chat and Models windows open, the CPU time of all its processes and the wake-ups (voluntary context
switches) of their threads, without focus and with the caret resting in the composer; the network is switched off, so that nothing is waited for; then the memory before a model is loaded, with it, and after it was unloaded;
and the time to the first paint. With servers of tools, they are set up and switched on before the start, which starts none; then all run, and an idle minute is watched once more. A figure above its target is said to be, and the exit code is 1 then."""
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

# A server of tools that does nothing.
TOOL_SERVER = """import json, sys
for line in sys.stdin:
    message = json.loads(line)
    result = {"initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "idle", "version": "1"}},
              "tools/list": {"tools": [{"name": f"tool{n}", "description": "Does nothing.", "inputSchema": {"type": "object"}} for n in range(8)]}}.get(message.get("method"))
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result or {}}), flush=True)
"""


def set_up_servers(home, count):
    """Switches servers of tools on, as a person has before."""
    program = home / "tool_server.py"
    program.write_text(TOOL_SERVER)
    transport = {"kind": "stdio", "command": sys.executable, "args": [str(program)], "env": []}
    servers = [{"id": f"server{n}", "name": f"server {n}", "transport": transport, "enabled": True} for n in range(count)]
    (home / "tools.json").write_text(json.dumps({"servers": servers, "rules": {}}))
    return [server["id"] for server in servers]


def running_servers(window):
    """The servers of tools that the app has started, without the guards that they run behind."""
    commands = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in processes(window)]
    return sum(command.startswith(sys.executable.encode()) and b"tool_server.py" in command for command in commands)


def watch_servers(window, servers, seconds):
    """An idle minute while all servers of tools run: CPU seconds."""
    if running := running_servers(window):
        sys.exit(f"idle: {running} servers of tools run before they are needed")
    for server in servers:
        window.invoke("start_tool_server", {"id": server})
    until("all servers of tools run", lambda: running_servers(window) == len(servers))
    print(f"\n{len(servers)} servers of tools run; memory with them (MB, PSS): {sum(memory(processes(window)).values()):.0f}")
    time.sleep(5)
    return watch(f"with {len(servers)} servers of tools", processes(window), seconds)


def ask_engine(home, call):
    """A call of the app's engine over its socket, which takes those of its own version alone."""
    version = json.loads((Path(__file__).parent.parent / "tauri.conf.json").read_text())["version"]
    with socket.socket(socket.AF_UNIX) as engine:
        engine.connect(str(home / "run/engine.sock"))
        engine.sendall(json.dumps({"version": version, "call": call}).encode() + b"\n")
        return json.loads(engine.makefile().readline())


def measure(window, seconds, servers):
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
    figures = [("an idle minute", idle, IDLE_SECONDS), ("the caret", caret / 60, CARET_SHARE)]
    if servers:
        figures.append(("an idle minute with servers of tools", watch_servers(window, servers, seconds), IDLE_SECONDS))
    missed = [what for what, figure, most in figures if figure > most]
    print(f"above its target: {', '.join(missed)}" if missed else "all within their targets")
    return missed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("app", type=lambda path: Path(path).resolve())
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--tool-servers", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        servers = set_up_servers(Path(home), options.tool_servers)
        window = Window(options.app, Path(home))
        try:
            missed = measure(window, options.seconds, servers)
        finally:
            window.close()
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
