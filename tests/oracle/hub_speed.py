"""Speed of a download on loopback, compared with `hf download` in one run: four shards, the same hub, one after the other, in turns.

usage: hub_speed.py HUB_IMITATION PONDER [--bytes N] [--shards N] [--runs N]

Prints the wall time until the command ends (Ponder's end is a verified one, hf's is not), the largest resident memory, the bytes
on disk, and the ratio of the medians. Whatever was fetched is checked afterwards, outside the measured time.
"""
import argparse
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MODEL = "bench/shards"


def measured(command, environment):
    """Seconds, largest resident memory in MiB, and what it said where it failed."""
    os.sync()
    with tempfile.TemporaryFile() as said:
        started = time.monotonic()
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - started
        # The processor's time counts what the wall time on a shared computer hides.
        busy = usage.ru_utime + usage.ru_stime
        said.seek(0)
        if os.waitstatus_to_exitcode(status) != 0:
            sys.exit(f"{command[0]} failed: {said.read().decode(errors='replace')[-2000:]}")
    memory = usage.ru_maxrss / (1024 * 1024 if sys.platform == "darwin" else 1024)
    return seconds, busy, memory


def check(cache):
    """The bytes below snapshots, each file's hash compared with the name of its blob."""
    total = 0
    for path in Path(cache).glob("models--*/snapshots/*/*"):
        name = path.resolve().name
        if len(name) == 64:
            digest = hashlib.sha256()
            with path.open("rb") as file:
                while piece := file.read(1 << 22):
                    digest.update(piece)
            if digest.hexdigest() != name:
                sys.exit(f"{path} is not what its name says")
        total += path.stat().st_size
    return total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("imitation")
    parser.add_argument("ponder")
    parser.add_argument("--bytes", type=int, default=1 << 30)
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    hub = subprocess.Popen(
        [given.imitation, "--shards", MODEL, str(given.shards), str(given.bytes)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    endpoint = hub.stdout.readline().strip()
    hf = Path(sys.executable).with_name("hf")
    results = {"ponder": [], "hf": []}
    total = None
    for run in range(given.runs):
        # The first one meets the emptier disk cache, so they take turns.
        for peer in ("ponder", "hf") if run % 2 == 0 else ("hf", "ponder"):
            with tempfile.TemporaryDirectory() as folder:
                cache = Path(folder, "hub")
                environment = {name: value for name, value in os.environ.items() if name not in ("LD_LIBRARY_PATH", "HF_HUB_OFFLINE", "HF_TOKEN")}
                environment |= {
                    "HF_ENDPOINT": endpoint, "HF_HOME": folder, "HF_HUB_CACHE": str(cache), "HF_HUB_DISABLE_XET": "1",
                    "HF_HUB_DISABLE_TELEMETRY": "1", "PONDER_HOME": str(Path(folder, "ponder")),
                }
                command = [given.ponder, "pull", MODEL] if peer == "ponder" else [str(hf), "download", MODEL]
                results[peer].append(measured(command, environment))
                if run == 0:
                    found = check(cache)
                    if total not in (None, found):
                        sys.exit(f"{peer} fetched {found} bytes, the other {total}")
                    total = found
                shutil.rmtree(cache)
    hub.stdin.close()
    hub.wait()
    print(f"{total / 1e9:.2f} GB in {given.shards} shards on loopback, {given.runs} runs each, in turns")
    median = {}
    for peer, ended in (("ponder", "verified"), ("hf", "unverified")):
        seconds, busy, memory = zip(*results[peer])
        median[peer] = statistics.median(seconds)
        each = ", ".join(f"{one:.2f}" for one in seconds)
        print(
            f"{peer:7} {ended:10} {median[peer]:6.2f} s ({each}), {total / median[peer] / 1e6:5.0f} MB/s, "
            f"processor {statistics.median(busy):5.2f} s, largest memory {max(memory):4.0f} MiB"
        )
    print(f"ponder / hf: {median['ponder'] / median['hf']:.2f} of the time")
    print(json.dumps({"ponder": results["ponder"], "hf": results["hf"], "bytes": total}))


main()
