"""A program with a limit of time and of memory, both of it and of what it starts."""
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

# Between two looks at the memory, in seconds.
PAUSE = 0.02
WAITS = 5
# Set when the whole run ends early: no program goes on.
ENDED = threading.Event()


def tree(pid):
    """The process and all that descend from it."""
    found, waiting = [], [pid]
    while waiting:
        at = waiting.pop()
        found.append(at)
        try:
            for task in Path(f"/proc/{at}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
        except OSError:
            pass  # It has ended meanwhile.
    return found


def field(pid, name):
    """A field of /proc/PID/status in bytes; nothing for a process that has ended, or on another system."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) << 10
    except (OSError, ValueError):
        pass
    return 0


def resident(pid):
    return sum(field(at, "VmRSS:") for at in tree(pid))


def peak(pid):
    """The most that a process ever held, since the start of it."""
    return field(pid, "VmHWM:")


def processor(pid):
    """The seconds that the processor has worked for a process, those that it started and has waited for, and those that run."""
    used = 0
    for at in tree(pid):
        try:
            # The name may hold blanks and brackets.
            fields = Path(f"/proc/{at}/stat").read_text().rpartition(")")[2].split()
            used += sum(map(int, fields[11:15]))
        except (OSError, ValueError):
            pass
    return used / os.sysconf("SC_CLK_TCK")


def end(process):
    """Ends a process and what it started. They stay in this one's group, so that whoever ends that ends them, too."""
    for at in reversed(tree(process.pid)):
        try:
            os.kill(at, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.wait()


class Run:
    """The outcome of a program: the seconds it took of the processor, its peak of memory, what it said, and what is wrong with
    that. It may take so many seconds of the processor, and WAITS times as many by the clock, because others use it too."""

    def __init__(self, command, environment, folder, seconds, memory):
        self.command, self.peak, self.seconds, self.fault = command, 0, 0, None
        output = folder / "output"
        start = time.monotonic()
        with output.open("wb") as said:
            process = subprocess.Popen(command, env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
            try:
                while process.poll() is None and not ENDED.is_set():
                    self.peak = max(self.peak, resident(process.pid), peak(process.pid))
                    self.seconds = max(self.seconds, processor(process.pid))
                    if self.seconds > seconds or time.monotonic() - start > seconds * WAITS:
                        self.fault = f"it did not end within {seconds} s of the processor, or {seconds * WAITS} by the clock"
                    elif self.peak > memory:
                        self.fault = f"it held {self.peak >> 20} MB"
                    if self.fault:
                        break
                    time.sleep(PAUSE)
            finally:
                end(process)
        self.clock = time.monotonic() - start
        with output.open("rb") as said:
            said.seek(max(0, output.stat().st_size - 4000))
            self.said = said.read().decode(errors="replace")
        self.code = process.returncode
        if ENDED.is_set():
            return
        if not self.fault and self.code < 0:
            self.fault = f"it was ended by {signal.Signals(-self.code).name}"
        if not self.fault and (self.code == 101 or "panicked at" in self.said):
            self.fault = "it panicked"
        # 0: done; 1: refused in words; 2: refused as a usage; 3: an answer that was cut off.
        if not self.fault and self.code not in (0, 1, 2, 3):
            self.fault = f"it ended with {self.code}"

    def last_line(self):
        lines = [line for line in self.said.splitlines() if line.strip()]
        return lines[-1][:200] if lines else ""
