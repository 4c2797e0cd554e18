"""Our engine on a card, through `ponder-bench` with MLX's CUDA build in the place of the one for processors."""
from dataclasses import dataclass
from pathlib import Path

from beside import batch_rows, environment, speed_rows
from engines import run
from weights import of_folder


@dataclass
class Ours:
    name: str
    bench: str
    # The folder of MLX's CUDA build.
    libraries: Path

    def measures(self, work, form):
        return True

    def command(self, form, work, prompts, generate):
        shape = ["--shape", work.name, "--shapes", work.folder.parent, "--repeat", 1, "--generate", generate]
        return [self.bench, form, "--json", *shape, "--prompt-tokens", ",".join(map(str, prompts))]

    def prepare(self, work):
        """Writes the shape, and lets MLX compile what every process asks for."""
        run(self.command("speed", work, [8], 2), environment(self.libraries))

    def speed(self, work):
        lines, _ = run(self.command("speed", work, work.prompts, work.generate), environment(self.libraries))
        figures = [line["ours"] | {"prompt_tokens": line["prompt_tokens"]} for line in lines]
        self.versions = figures[0]["versions"]
        return speed_rows(figures)

    def batch(self, work):
        command = self.command("batch", work, [work.batch_prompt], work.batch_generate)
        lines, _ = run([*command, "--sequences", ",".join(map(str, work.sequences))], environment(self.libraries))
        return batch_rows(work.sequences, [line["tokens_per_second"] for line in lines])

    def bytes_a_token(self, work):
        return of_folder(work.folder)
