"""llama.cpp on a card, through the script that measures it on a processor: another library is all that differs."""
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from beside import CPU_SPEED, HERE, batch_rows, environment, speed_rows
from engines import physical_cores, run
from weights import of_gguf

# The back end of a card. Without it llama.cpp computes on the processor, and says so nowhere but in its log.
BACK_END = "cuda"
# Threads for the little that the processor does. More wait for each other longer.
THREADS = 8
# Tokens before those that are measured: it records the launches of a step after some, and replays them from then on.
WARM_UP = 24
# Shapes that random_gguf.py can write.
SHAPES = ["qwen3-4b", "qwen3-30b-a3b", "gpt-oss-20b"]


@dataclass
class LlamaCpp:
    name: str
    # The folder of its libraries, and those of CUDA's.
    library: Path
    cuda: str = ""
    back_end: str = BACK_END

    def measures(self, work, form):
        return work.gguf is not None

    def prepare(self, work):
        if work.gguf and not work.gguf.exists():
            command = [sys.executable, HERE / "random_gguf.py", work.folder / "config.json", work.gguf]
            subprocess.run([str(word) for word in command], check=True)

    def driver(self, form, work, generate, *arguments):
        command = [sys.executable, CPU_SPEED / "llama_cpp.py", form, "--library", self.library]
        command += ["--threads", min(physical_cores(), THREADS), "--model", work.gguf]
        command += ["--generate", generate, "--warm-up", WARM_UP]
        lines, _ = run([*command, *arguments], environment(self.cuda))
        self.versions = lines[0]["versions"]
        if self.back_end not in self.versions.split(",")[1]:
            raise SystemExit(f"llama.cpp did not compute on the card: {self.versions}")
        return lines[0]

    def speed(self, work):
        found = self.driver("speed", work, work.generate, "--prompt-tokens", *work.prompts)
        figures = [
            figure | {"load_ms": found["load_ms"]}
            | {"first_token_ms": 1000 * figure["prompt_tokens"] / figure["prefill_tokens_per_second"]}
            for figure in found["figures"]
        ]
        return speed_rows(figures)

    def batch(self, work):
        options = ["--prompt-tokens", work.batch_prompt, "--sequences", *work.sequences]
        return batch_rows(work.sequences, self.driver("batch", work, work.batch_generate, *options)["figures"])

    def bytes_a_token(self, work):
        return of_gguf(work.folder)
