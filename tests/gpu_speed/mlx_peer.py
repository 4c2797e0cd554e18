"""mlx-lm on a card, through the scripts that measure it everywhere."""
from dataclasses import dataclass

from beside import ORACLE, batch_rows, environment, speed_rows
from engines import run
from weights import of_folder


@dataclass
class MlxLm:
    name: str
    # The Python that has mlx-lm and MLX's CUDA build.
    python: str

    def measures(self, work, form):
        return True

    def speed(self, work):
        command = [self.python, ORACLE / "bench.py", "--model", work.folder, "--generate", work.generate]
        lines, _ = run([*command, "--prompt-tokens", *work.prompts], environment())
        self.versions = lines[0][0]["versions"]
        return speed_rows(lines[0])

    def batch(self, work):
        command = [self.python, ORACLE / "batch.py", "--model", work.folder, "--generate", work.batch_generate]
        command += ["--prompt-tokens", work.batch_prompt, "--sequences", *work.sequences]
        lines, _ = run(command, environment())
        return batch_rows(work.sequences, lines[0])

    def bytes_a_token(self, work):
        return of_folder(work.folder)
