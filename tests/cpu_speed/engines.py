"""The engines, each measured in a process of its own that has the processor for itself. A measurement gives figures by
the names of the table's rows."""
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ORACLE = HERE.parent / "oracle"
QUESTION = "What is the capital of France?"
# The exit status of an answer that was cut.
CUT = 3
# Tokens that it has with the template that all models are written with.
ASKED = 37
SEQUENCES = [1, 2, 4, 8, 16]
BATCH_PROMPT = 32
# The instruction sets of llama.cpp's back ends in Ponder's and OpenBLAS's words.
CPUS = {
    "haswell": {"PONDER_CPU": "avx2", "OPENBLAS_CORETYPE": "Haswell"},
    "skylakex": {"PONDER_CPU": "avx512", "OPENBLAS_CORETYPE": "SkylakeX"},
}
# Cores that other programs used during each run: measured threads count in the load, so it says less.
others = []


@dataclass
class Work:
    """A model and how much of it is measured."""

    name: str
    folder: Path
    gguf: Path
    prompts: list
    generate: int


def busy_seconds():
    """Processor seconds of all programs since the computer started."""
    user, nice, system, _, _, irq, soft, *_ = map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:])
    return (user + nice + system + irq + soft) / os.sysconf("SC_CLK_TCK")


def run(command, env, codes=(0,)):
    """The lines of a program's output as JSON, and the most memory that its process had."""
    # Text goes into files, since a pipe that nobody reads would stop the program.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        start, busy = time.perf_counter(), busy_seconds()
        process = subprocess.Popen([str(word) for word in command], stdout=out, stderr=errors, env=env)
        _, status, used = os.wait4(process.pid, 0)
        busy = busy_seconds() - busy - used.ru_utime - used.ru_stime
        others.append(max(busy, 0.0) / (time.perf_counter() - start))
        out.seek(0)
        errors.seek(0)
        if os.waitstatus_to_exitcode(status) not in codes:
            raise SystemExit(f"{command[0]} failed: {errors.read().decode(errors='replace')[-2000:]}")
        lines = [json.loads(line) for line in out.read().splitlines()]
    return lines, used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def speed_rows(figures, load_ms, peak):
    rows = {}
    for figure in figures:
        rows[f"prefill of {figure['prompt_tokens']}, tokens/s"] = figure["prefill_tokens_per_second"]
    for figure in figures:
        rows[f"decode after {figure['prompt_tokens']}, tokens/s"] = figure["decode_tokens_per_second"]
    return rows | {"load, ms": load_ms, "memory of the process, MB": peak / 1e6}


def batch_rows(rates):
    return {f"decode of {count} together, tokens/s": rate for count, rate in zip(SEQUENCES, rates)}


@dataclass
class Engine:
    """What all have in common: the name of the column, the number of threads, the instruction set."""

    name: str
    threads: int
    cpu: str | None

    def env(self):
        threads = str(self.threads)
        env = dict(os.environ, PONDER_THREADS=threads, OPENBLAS_NUM_THREADS=threads, PYTHONDONTWRITEBYTECODE="1")
        return env | CPUS.get(self.cpu, {})


@dataclass
class Ours(Engine):
    bench: str = ""
    ponder: str = ""

    def measures(self, work, form):
        return True

    def speed(self, work):
        command = [self.bench, "speed", "--json", "--repeat", 1, "--generate", work.generate, "--model", work.folder]
        lines, peak = run([*command, "--prompt-tokens", ",".join(map(str, work.prompts))], self.env())
        figures = [line["ours"] | {"prompt_tokens": line["prompt_tokens"]} for line in lines]
        self.versions = figures[0]["versions"]
        return speed_rows(figures, figures[0]["load_ms"], peak)

    def batch(self, work):
        command = [self.bench, "batch", "--json", "--repeat", 1, "--generate", work.generate, "--model", work.folder]
        lines, _ = run([*command, "--prompt-tokens", BATCH_PROMPT], self.env())
        return batch_rows([line["tokens_per_second"] for line in lines])

    def ask(self, work):
        """From the start of the process to the first byte of an answer. Models and settings are its own."""
        with tempfile.TemporaryDirectory() as home:
            env = self.env() | {"PONDER_HOME": home}
            command = [self.ponder, "ask", "--model", work.folder, "--temperature", "0", QUESTION]
            # The first process makes the folder, and the file of the weights is read from the disk.
            lines, _ = run([*command, "--json", "--max-tokens", 4], env, (0, CUT))
            assert lines[-1]["usage"]["prompt_tokens"] == ASKED, "the template or the tokenizer is another one"
            start = time.perf_counter()
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env)
            process.stdout.read(1)
            spent = time.perf_counter() - start
            process.kill()
            process.communicate()
        return {"first token of `ask`, ms": spent * 1000}

    def perplexity(self, work, text, tokens):
        command = [self.bench, "perplexity", "--json", "--tokens", tokens, "--model", work.folder, text]
        lines, _ = run(command, self.env())
        return lines[0]


@dataclass
class LlamaCpp(Engine):
    library: Path = Path()
    python: str = ""

    def measures(self, work, form):
        return True

    def driver(self, form, work, *arguments):
        command = [self.python, HERE / "llama_cpp.py", form, "--library", self.library, "--threads", self.threads]
        command += ["--cpu", self.cpu] if self.cpu else []
        lines, _ = run([*command, "--model", work.gguf, "--generate", work.generate, *arguments], self.env())
        self.versions = lines[0]["versions"]
        return lines[0]

    def speed(self, work):
        found = self.driver("speed", work, "--prompt-tokens", *work.prompts)
        return speed_rows(found["figures"], found["load_ms"], found["peak_bytes"])

    def batch(self, work):
        found = self.driver("batch", work, "--prompt-tokens", BATCH_PROMPT, "--sequences", *SEQUENCES)
        return batch_rows(found["figures"])

    def ask(self, work):
        """From the moment that its library is opened; Python and numpy started before."""
        found = self.driver("ask", work, "--prompt-tokens", ASKED)
        return {"first token of `ask`, ms": found["total_ms"]}

    def perplexity(self, work, tokens):
        return self.driver("perplexity", work, "--tokens", tokens)["figures"]


@dataclass
class MlxLm(Engine):
    """mlx-lm, whose packed products make a token in seconds on a processor: weights of 16 and 32 bits alone."""

    python: str = ""
    preload: str | None = None
    prompts = [32, 512]

    def measures(self, work, form):
        return form == "speed" and work.name.endswith("bit")

    def env(self):
        env = super().env()
        # It has an MLX of its own, and a slow BLAS.
        env.pop("LD_LIBRARY_PATH", None)
        return env | ({"LD_PRELOAD": self.preload} if self.preload else {})

    def speed(self, work):
        prompts = [length for length in work.prompts if length in self.prompts]
        command = [self.python, ORACLE / "bench.py", "--as-stored", "--model", work.folder]
        lines, peak = run([*command, "--generate", min(work.generate, 32), "--prompt-tokens", *prompts], self.env())
        self.versions = lines[0][0]["versions"]
        return speed_rows(lines[0], lines[0][0]["load_ms"], peak)

    def perplexity(self, work, tokens):
        command = [self.python, ORACLE / "perplexity.py", "--model", work.folder, "--tokens", tokens]
        return run(command, self.env())[0][0]


def physical_cores():
    """The cores that this process may use, without second threads of one."""
    allowed = os.sched_getaffinity(0)
    siblings = set()
    for cpu in allowed:
        path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        siblings.add(path.read_text() if path.exists() else cpu)
    return len(siblings)
