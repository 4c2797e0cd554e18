"""Runs built test programs, two at a time, so that one computes while another waits for a clock, a window or a disk.

    python run.py PROGRAMS LOGS FACTOR

PROGRAMS has a line per program: its room, the folder it runs in, its path, its kind. A program's output goes to LOGS. The longest of
the last run begin first. A program that takes longer than its room's budget, times FACTOR, has hung and fails; after a
failure the others still run. A failed test is a failure, but for those in flaky.txt, each with its reason: they run again when
nothing else does, twice at most. That list may only shrink; tidy.rs counts it."""
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

# The seconds a program may take: generous on a slow machine, and a hang still ends.
BUDGETS = {"api": 120, "protocol": 120, "net": 120, "hub-imitation": 120, "engine": 1800, "cli": 900, "bench": 900, "window": 1800}
BUDGET = 480
AT_ONCE = 2
MORE_TRIES = 2
# Lines of `program test: the reason`.
FLAKY = Path(__file__).with_name("flaky.txt")


class Program:
    def __init__(self, line, logs, factor):
        self.room, self.folder, path, kind = line.split("\t")
        self.path = Path(path)
        # Cargo ends the name with a hash. A binary may share the name of its library, and each needs a log of its own.
        self.name = f"{self.room}-{self.path.name.rpartition('-')[0]}{'-bin' if kind == 'bin' else ''}"
        self.log = logs / f"{self.name}.log"
        self.budget = BUDGETS.get(self.room, BUDGET) * factor
        self.seconds, self.failure = 0.0, None
        # A macro's tests are linked with the compiler's own libraries, which only cargo finds by itself.
        self.libraries = {"LD_LIBRARY_PATH": compiler_libraries()} if kind == "proc-macro" else {}

    def run(self, running, tests=()):
        """Runs all its tests, or the named ones alone."""
        start = time.monotonic()
        command = [self.path, "--nocapture", *(["--exact", *tests] if tests else [])]
        # A backtrace would hide the message of a failed test from who sees the end of the output.
        environment = os.environ | {"RUST_BACKTRACE": "0"} | self.libraries
        with self.log.open("ab" if tests else "wb") as log:
            # A group of its own, so that what a test has started ends with it.
            process = subprocess.Popen(
                command, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
            running.append(process)
            try:
                if process.wait(self.budget):
                    self.failure = "failed"
            except subprocess.TimeoutExpired:
                self.failure = f"took longer than {self.budget} s"
            # Processes that it left running end with it.
            end(process)
            running.remove(process)
        if not self.failure and "test result: ok." not in self.output():
            self.failure = "did not say that its tests are over"
        # Some tests run again take less than all of them, by which the next run is put in order.
        self.seconds = max(self.seconds, time.monotonic() - start)

    def output(self):
        return self.log.read_text(errors="replace")

    def passed(self):
        return sum(int(count) for count in re.findall(r"test result: \w+\. (\d+) passed", self.output()))

    def run_failed_again(self, running):
        """Runs the tests that failed again; those that pass now are flaky, and said to be."""
        tests = re.findall(r"^    (\S+)$", self.output().rpartition("failures:\n")[2], re.MULTILINE)
        if self.failure != "failed" or not tests or not flaky().issuperset((self.name, test) for test in tests):
            return
        self.failure = None
        self.run(running, tests)
        if not self.failure:
            with self.log.open("a") as log:
                log.writelines(f"report: flaky: {test} failed, then passed alone\n" for test in tests)


def compiler_libraries():
    command = ["rustc", "--print", "target-libdir"]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def flaky():
    """The program and name of each test that may be run again."""
    lines = (line.partition(": ")[0] for line in FLAKY.read_text().splitlines() if line and not line.startswith("#"))
    return {tuple(line.split()) for line in lines}


def end(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def report(room, programs):
    """Prints what a room's programs have to say; the number of its tests."""
    for program in programs:
        for line in re.findall(r"report: .*", program.output()):
            print(line)
    passed = sum(program.passed() for program in programs)
    seconds = sum(program.seconds for program in programs)
    longest = max(programs, key=lambda program: program.seconds)
    print(f"\033[1m==> {room}: {passed} passed in {seconds:.0f} s; {longest.name} took {longest.seconds:.0f} s of them\033[0m", flush=True)
    return passed


class Run:
    """All programs, and what became of them."""

    def __init__(self, programs, last):
        self.waiting = sorted(programs, key=lambda program: last.get(program.name, program.budget), reverse=True)
        self.rooms = {}
        for program in programs:
            self.rooms.setdefault(program.room, []).append(program)
        self.running, self.done, self.failed, self.total, self.interrupted = [], set(), [], 0, False
        self.lock = threading.Lock()

    def work(self):
        while True:
            with self.lock:
                if self.interrupted or not self.waiting:
                    return
                program = self.waiting.pop(0)
            program.run(self.running)
            with self.lock:
                self.done.add(program)
                if not self.interrupted:
                    self.account(program)

    def account(self, program):
        room = self.rooms[program.room]
        if program.failure:
            self.failed.append(program)
            print(f"{program.output()}\ndev: {program.name} {program.failure} after {program.seconds:.0f} s", flush=True)
        elif self.done.issuperset(room) and not any(program.failure for program in room):
            self.total += report(program.room, room)

    def all(self):
        workers = [threading.Thread(target=self.work) for _ in range(AT_ONCE)]
        for worker in workers:
            worker.start()
        try:
            for worker in workers:
                worker.join()
        finally:
            self.interrupted = bool(self.waiting)
            for process in list(self.running):
                end(process)
            for worker in workers:
                worker.join()
        for program in list(self.failed) * MORE_TRIES:
            if program.failure:
                program.run_failed_again(self.running)
                if not program.failure:
                    self.failed.remove(program)
                    self.account(program)
        for program in self.failed:
            print(f"{program.output()[-4000:]}\ndev: {program.name} {program.failure}", flush=True)


def main():
    # A shell starts what runs in its background with Ctrl+C ignored, and tests press it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    listed, logs, factor = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    logs.mkdir(parents=True, exist_ok=True)
    history = logs / "seconds.json"
    last = json.loads(history.read_text()) if history.exists() else {}
    start = time.monotonic()
    programs = [Program(line, logs, factor) for line in listed.read_text().splitlines()]
    run = Run(programs, last)
    run.all()
    history.write_text(json.dumps(last | {program.name: round(program.seconds, 1) for program in run.done}))
    if run.failed:
        sys.exit(f"dev: failed after {time.monotonic() - start:.0f} s: {', '.join(program.name for program in run.failed)}")
    # A worker that failed by itself leaves its program without an outcome.
    missing = [program.name for program in programs if program not in run.done]
    if missing:
        sys.exit(f"dev: not run to the end: {', '.join(missing)}")
    if run.total == 0:
        sys.exit("dev: there was no test")
    print(f"{run.total} passed, 0 failed")
    print(f"\033[1m==> all rooms passed in {time.monotonic() - start:.0f} s\033[0m")


if __name__ == "__main__":
    main()
