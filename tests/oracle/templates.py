"""Chat templates of public packages, and what transformers makes of them.

    python templates.py fetch FOLDER            fetches the packages with pip and keeps their templates
    python templates.py render FOLDER OUT.json  renders every template with every set of messages

The templates are other people's work under their own licences: they stay in FOLDER and never enter the repository.
"""
import datetime
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import traceback
import zipfile
from pathlib import Path

from template_cases import CASES
from template_constructs import VARIABLES, constructs

# Package, version, and whether its source distribution or its wheel has the templates.
PACKAGES = [
    ("llama-cpp-python", "0.3.36", "source"),
    ("trl", "1.16.0", "wheel"),
    ("axolotl", "0.19.0", "wheel"),
    ("xinference", "4.1.0", "wheel"),
]
NOW = datetime.datetime(2026, 3, 4, 5, 6, 7)


def members(archive):
    """Names and contents of the files of a package."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as opened:
            for name in opened.namelist():
                yield name, lambda: opened.read(name)
    else:
        with tarfile.open(archive) as opened:
            for member in opened:
                if member.isfile():
                    yield member.name, lambda: opened.extractfile(member).read()


def templates_of(archive):
    """Templates in files of their own, and those in descriptions of models."""
    for name, read in members(archive):
        if name.endswith((".jinja", ".jinja2")):
            yield Path(name).name.rsplit(".", 1)[0], read().decode()
        elif name.endswith(".json") and "/model/llm/" in name:
            described = json.loads(read())
            for model in described if isinstance(described, list) else [described]:
                if isinstance(model, dict) and isinstance(model.get("chat_template"), str):
                    yield model["model_name"], model["chat_template"]


def fetch(folder):
    """Fills the folder; what two packages share is kept once."""
    known = set()
    for package, version, kind in PACKAGES:
        only = ["--no-binary", package] if kind == "source" else ["--only-binary", ":all:"]
        with tempfile.TemporaryDirectory() as place:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--dest", place]
            subprocess.run([*pip, *only, f"{package}=={version}"], check=True)
            archive = next(Path(place).iterdir())
            target = folder / package
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir(parents=True)
            for name, source in sorted(templates_of(archive)):
                digest = hashlib.sha256(source.encode()).hexdigest()
                if digest not in known:
                    known.add(digest)
                    (target / f"{name.replace('/', '-')}.jinja").write_bytes(source.encode())


def render(folder, out):
    """The output of transformers for every template and every case, at a fixed time."""
    from transformers.utils import chat_template_utils as utils

    class Clock(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return NOW

    utils.datetime = Clock
    renders = []
    for source in constructs():
        renders.append({"construct": source} | attempt(lambda: utils._compile_jinja_template(source).render(**VARIABLES)))
    for path in sorted(folder.rglob("*.jinja")):
        source = path.read_bytes().decode()
        for number, (_, variables) in enumerate(CASES):
            variables = dict(variables)
            messages = variables.pop("messages")
            made = attempt(lambda: utils.render_jinja_template([messages], chat_template=source, **variables)[0][0])
            renders.append({"template": str(path.relative_to(folder)), "case": number} | made)
    cases = [{"name": name, "variables": variables} for name, variables in CASES]
    versions = {name: sys.modules[name].__version__ for name in ("transformers", "jinja2")}
    out.write_text(json.dumps({"versions": versions, "now": NOW.isoformat(), "cases": cases, "variables": VARIABLES, "renders": renders}, ensure_ascii=False))


def attempt(make):
    """The text; or what `raise_exception` said; or what went wrong."""
    try:
        return {"text": make()}
    except Exception as error:  # what a template does wrong has no common class
        if any(frame.name == "raise_exception" for frame in traceback.extract_tb(error.__traceback__)):
            return {"raised": str(error)}
        return {"failed": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    verb, folder, *rest = sys.argv[1:]
    if verb == "fetch":
        fetch(Path(folder))
    else:
        render(Path(folder), Path(rest[0]))
