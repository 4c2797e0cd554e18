"""Gives hostile files to the built program and to a local server that lives all the while: `./dev hostile`.

    run.py PONDER TEMPLATES [--tenth] [--seed SEED] [--only KIND[/NUMBER[-LAST]]] [--each]
    run.py --write KIND/NUMBER FOLDER [--seed SEED] [TEMPLATES]      writes one file, as a report names it

PONDER is the command line program, TEMPLATES the example `hostile_templates` of the crate `prompt`. Each file goes to the
program in runs of its own, and to the server, which must answer an honest question afterwards. It fails if a process was
ended by a signal, panicked, took too long or too much memory, or if the server's memory grew."""
import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True

from corpus import COUNTS, PATTERNS  # noqa: E402
from corpus.pattern import generator  # noqa: E402
from corpus.templates import Written  # noqa: E402
from server import Fault, Server  # noqa: E402
from watched import ENDED, Run  # noqa: E402
from ways import File, environment  # noqa: E402

SEED = 20261121
# The processor may work so long for a file in each way: far more than the time that a document has.
SECONDS = 60
# No file is worth more memory, in one process or in it and those that it starts.
MEMORY = 2 << 30
# Memory that the server may have at the end beyond that at the beginning: caches, and pages that an allocator keeps.
GROWTH = 192 << 20
AT_ONCE = 2


class Report:
    """Counts, the slowest, the largest, and every fault with how its file is found again."""

    def __init__(self, seed, each):
        self.each, self.seed, self.faults, self.lock = each, seed, [], threading.Lock()
        self.counts, self.runs, self.slowest, self.largest = {}, {}, {}, {}

    def add(self, kind, name, pattern, way, run):
        with self.lock:
            if self.each:
                print(f"{run.seconds:6.1f} s {run.peak >> 20:5} MB {name} ({pattern.name}), `ponder {way}`: {run.code}, {run.last_line()}", flush=True)
            self.runs[kind] = self.runs.get(kind, 0) + 1
            self.slowest[kind] = max(self.slowest.get(kind, (0, "")), (run.seconds, f"{name} in `ponder {way}`"))
            self.largest[kind] = max(self.largest.get(kind, (0, "")), (run.peak, f"{name} in `ponder {way}`"))

    def answered(self, kind, name, pattern, seconds, server):
        with self.lock:
            if self.each:
                memory = f"{server.own >> 20} MB and {(server.last - server.own) >> 20} MB in its sandboxes"
                print(f"{seconds:6.1f} s          {name} ({pattern.name}), the server: {memory}", flush=True)
            self.counts[kind] = self.counts.get(kind, 0) + 1
            self.slowest[kind] = max(self.slowest.get(kind, (0, "")), (seconds, f"{name} at the server"))

    def fault(self, name, pattern, way, fault):
        with self.lock:
            self.faults.append(f"{name} ({pattern.name}), {way}: {fault}")
            print(f"fault: {self.faults[-1]}", flush=True)

    def print(self, server, seconds):
        for kind, count in self.counts.items():
            (slow, slow_name), (peak, peak_name) = self.slowest[kind], self.largest[kind]
            print(f"report: hostile {kind}: {count} files in {self.runs[kind]} runs and {count} rounds of the server", flush=True)
            print(f"report:   slowest {slow:.1f} s of the processor: {slow_name}; largest {peak >> 20} MB: {peak_name}")
        lives = ", ".join(f"{first >> 20} MB at the beginning, {last >> 20} MB at the end" for first, last in server.ends)
        print(f"report: the server: {lives}, {server.peak >> 20} MB at most; it was started {len(server.ends)} times")
        signals = sum("ended by SIG" in fault for fault in self.faults)
        over = sum(" within " in fault for fault in self.faults)
        print(f"report: seed {self.seed}, {seconds:.0f} s, ended by a signal: {signals}, over their time: {over}, faults: {len(self.faults)}")


class Rounds:
    """All files of a run, two at a time; the server gets one after the other."""

    def __init__(self, ponder, files, folder, report):
        self.ponder, self.files, self.folder, self.report = ponder, list(files), folder, report
        self.lock, self.at_server, self.stopped = threading.Lock(), threading.Lock(), False
        self.home = folder / "server"
        self.home.mkdir()
        self.server = Server(ponder, environment(self.home), SECONDS)

    def work(self):
        while True:
            with self.lock:
                if self.stopped or not self.files:
                    return
                kind, number, pattern = self.files.pop(0)
            self.round(kind, number, pattern)

    def round(self, kind, number, pattern):
        name = f"{kind}/{number}"
        content = pattern.write(generator(self.report.seed, kind, number))
        file = File(kind, pattern, content, self.folder / f"{kind}-{number}")
        for arguments in file.commands():
            run = Run([self.ponder, *arguments], environment(file.home), file.home, SECONDS, MEMORY)
            way = " ".join(word for word in arguments[:2] if "/" not in word)
            self.report.add(kind, name, pattern, way, run)
            if run.fault:
                self.report.fault(name, pattern, f"`ponder {way}`", f"{run.fault}; {run.last_line()}")
        with self.at_server:
            before, pid = self.server.used(), self.server.process.pid
            try:
                file.ask(self.server, self.home / "hub")
                self.server.honest()
            except Fault as fault:
                if ENDED.is_set():
                    return
                self.report.fault(name, pattern, "the server", str(fault))
                self.server.stop()
                self.server.start()
            self.server.look()
            used = self.server.used() - before if self.server.process.pid == pid else 0
            self.report.answered(kind, name, pattern, used, self.server)
        file.remove()

    def all(self):
        workers = [threading.Thread(target=self.guarded) for _ in range(AT_ONCE)]
        for worker in workers:
            worker.start()
        try:
            for worker in workers:
                worker.join()
        except BaseException:
            ENDED.set()
            raise
        finally:
            self.stopped = True
            for worker in workers:
                worker.join()
            self.server.stop()
        for first, last in self.server.ends:
            if last - first > GROWTH:
                self.report.faults.append(f"the server grew by {(last - first) >> 20} MB")

    def guarded(self):
        """A fault of this program is one of the run, never a worker that is missing."""
        try:
            self.work()
        except BaseException as error:
            self.stopped = True
            with self.report.lock:
                self.report.faults.append(f"the runner itself: {error!r}")
            raise


def chosen(seed, tenth, only, templates):
    """The files of a run: kind, number, pattern."""
    for kind, count in COUNTS.items():
        kind_only, _, number_only = (only or kind).partition("/")
        if kind != kind_only:
            continue
        first, _, last = number_only.partition("-")
        numbers = range(count)
        if first:
            numbers = range(int(first), int(last or first) + 1)
        elif tenth:
            numbers = sorted(random.Random(f"{seed}/{kind}/tenth").sample(numbers, count // 10))
        patterns = templates(count) if kind == "templates" else PATTERNS[kind]
        for number in numbers:
            yield kind, number, patterns[number % len(patterns)]


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", nargs="*", type=Path)
    parser.add_argument("--tenth", action="store_true")
    parser.add_argument("--each", action="store_true")
    parser.add_argument("--only")
    parser.add_argument("--write", nargs=2)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("PONDER_SEED", SEED)))
    return parser.parse_args()


def end_early(*_):
    """Ends the run once, with everything that it started."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def main():
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end_early)
    wanted = arguments()
    folder = Path(tempfile.mkdtemp(prefix="ponder-hostile-"))
    try:
        programs = [program.resolve() for program in wanted.programs]

        def templates(count):
            return Written(programs[-1], folder / "templates", count, wanted.seed).patterns

        if wanted.write:
            name, target = wanted.write
            (kind, number, pattern), *_ = chosen(wanted.seed, False, name, templates)
            path = Path(target) / pattern.file
            path.write_bytes(pattern.write(generator(wanted.seed, kind, number)))
            print(f"{path}: {pattern.name}")
            return
        start, report = time.monotonic(), Report(wanted.seed, wanted.each)
        rounds = Rounds(programs[0], chosen(wanted.seed, wanted.tenth, wanted.only, templates), folder, report)
        rounds.all()
        report.print(rounds.server, time.monotonic() - start)
        if report.faults:
            sys.exit("dev: hostile files did harm:\n" + "\n".join(report.faults))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
