"""A large folder of documents, with the built command.

    python bench.py PROGRAM [--files 10000] [--from FOLDER]... [--questions 40]

Copies texts of this computer's documentation (and of other folders) until there are so many, and prints: the time until all are read, the memory of the command and
of the process that reads documents, the size of the index; how long a question takes (median and 95th percentile, with the start of the command); one changed file
until it is found; a renamed folder; a process that is killed in the middle, and what the next one does. Counts that differ are an error: nothing may be lost, nothing twice."""
import argparse
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ENDINGS = (".md", ".txt", ".html", ".rst", ".pdf", ".rs", ".py", ".toml", "copyright")
LARGEST = 2_000_000


def copy_texts(roots, folder, wanted):
    """Texts from these folders, spread over subfolders: how many, and their bytes."""
    count = size = 0
    for root in roots:
        for place, _, names in os.walk(root):
            for name in sorted(names):
                path = Path(place, name)
                if not name.endswith(ENDINGS) or path.is_symlink() or not 0 < path.stat().st_size < LARGEST:
                    continue
                into = folder / str(count % 200)
                into.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, into / f"{count}-{name[-80:]}")
                size += path.stat().st_size
                count += 1
                if count == wanted:
                    return count, size
    return count, size


class Command:
    """The command with data of its own."""

    def __init__(self, program, home):
        self.program, self.home = program, home
        self.environment = {**os.environ, "PONDER_HOME": str(home), "HF_HOME": str(home / "hub")}

    def start(self, *arguments):
        home = {"cwd": self.home, "env": self.environment}
        return subprocess.Popen([self.program, "docs", *arguments, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **home)

    def run(self, *arguments):
        """Its lines of JSON, its seconds and the most memory of it and its children, in MB."""
        begun, process = time.perf_counter(), self.start(*arguments)
        peak, ended = [0.0, 0.0], threading.Event()
        watcher = threading.Thread(target=watch_memory, args=(process.pid, peak, ended))
        watcher.start()
        out, error = process.communicate()
        seconds = time.perf_counter() - begun
        ended.set()
        watcher.join()
        if process.returncode:
            sys.exit(f"documents: {arguments[0]} failed: {error}")
        return [json.loads(line) for line in out.splitlines()], seconds, peak


def memory(pid):
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1000
    except (OSError, StopIteration):
        return 0.0


def watch_memory(pid, peak, ended):
    while not ended.wait(0.2):
        peak[0] = max(peak[0], memory(pid))
        children = []
        for thread in Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                children += thread.read_text().split()
            except OSError:
                pass
        peak[1] = max(peak[1], sum(memory(child) for child in children))


def counts(command):
    collection = command.run("list")[0][0]
    return {name: collection[name] for name in ("read", "waiting", "failed", "skipped", "passages", "text_bytes")}


def found(command, words):
    return [passage["file"] for passage in command.run("search", words)[0]]


def must(is_so, sentence):
    print(("" if is_so else "WRONG: ") + sentence)
    return is_so


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--from", dest="roots", action="append", default=[])
    parser.add_argument("--questions", type=int, default=40)
    options = parser.parse_args()
    right = True
    with tempfile.TemporaryDirectory(prefix="documents-") as temporary:
        work = Path(temporary)
        folder, home = work / "folder", work / "home"
        home.mkdir()
        count, size = copy_texts(["/usr/share/doc", *options.roots], folder, options.files)
        print(f"{count} files, {size / 1e6:.0f} MB, load {os.getloadavg()[0]:.1f}")
        command = Command(options.program, home)
        _, seconds, (own, reader) = command.run("add", str(folder), "--name", "big")
        index = sum(file.stat().st_size for file in home.glob("documents.sqlite*"))
        whole = counts(command)
        print(f"read in {seconds:.1f} s: {whole}")
        print(f"memory at most: {own:.0f} MB, of the process that reads {reader:.0f} MB; index {index / 1e6:.0f} MB")

        words = "how does the package install a file when it is removed with an option of the license and no warranty for the user".split()
        chance = random.Random(1)
        times = sorted(command.run("search", " ".join(chance.sample(words, 4)))[1] for _ in range(options.questions))
        start = statistics.median(command.run("list")[1] for _ in range(5))
        print(f"a question: median {statistics.median(times) * 1000:.0f} ms, p95 {times[int(len(times) * 0.95)] * 1000:.0f} ms; the command without one: {start * 1000:.0f} ms")

        changed = next(folder.glob("7/*"))
        changed.write_text("The heliotrope zeppelin lands at dawn.")
        _, seconds, _ = command.run("update")
        right &= must(found(command, "heliotrope") == [str(changed.relative_to(folder))], f"one changed file is found after {seconds:.1f} s")
        (folder / "8").rename(folder / "moved")
        before, (_, seconds, _) = counts(command), command.run("update")
        after = counts(command)
        right &= must(before == after, f"a renamed subfolder is followed in {seconds:.1f} s, and nothing is lost or twice")

        other = Command(options.program, work / "killed")
        other.home.mkdir()
        process = other.start("add", str(folder), "--name", "big")
        time.sleep(chance.uniform(2, 6))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        half = counts(other)
        other.run("update")
        whole, again = counts(command), counts(other)
        right &= must(whole == again, f"killed with {half['read']} files read: the next one reads the rest, and counts are those of the first")
    sys.exit(not right)


if __name__ == "__main__":
    main()
