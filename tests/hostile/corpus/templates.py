"""Chat templates. Their patterns stand in the tests of the crate `prompt`, whose example writes the files."""
import subprocess

from .pattern import Pattern


class Written:
    """The templates of a seed, once for all."""

    def __init__(self, program, folder, count, seed):
        folder.mkdir(parents=True, exist_ok=True)
        said = subprocess.run([program, folder, str(count), str(seed)], capture_output=True, text=True, check=True).stdout
        rows = [line.split("\t") for line in said.splitlines()]
        assert len(rows) == count, f"{program} wrote {len(rows)} templates instead of {count}"
        self.patterns = [self.pattern(folder / file, name) for file, name in rows]

    @staticmethod
    def pattern(path, name):
        return Pattern(f"template, {name}", "chat_template.jinja", lambda _: path.read_bytes())
