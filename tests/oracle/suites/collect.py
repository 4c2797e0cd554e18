"""The cases of other people's test suites for parsers of reasoning and tool calls, as one list per suite.

    python collect.py FOLDER    fetches the sources with pip and writes FOLDER/cases/*.jsonl

vllm-mlx, mlx-lm and vLLM run their own tests, and what their parsers are asked and answer there is written down (recorder.py); the
cases of llama.cpp are read from its C++ (llama_cpp.py). The sources are other people's work under their own licences: they and the
cases stay in FOLDER and never enter the repository.
"""

import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import formats
import llama_cpp

HERE = Path(__file__).resolve().parent
SOURCES = {"vllm-mlx": "0.6.0", "mlx-lm": "0.32.2", "llama-cpp-python": "0.3.36", "vllm": "0.33.0"}
# The files of theirs that are read.
READ = (".py", ".cpp", ".jinja", ".json", ".jsonl", ".txt", ".toml")
# The folders of tests that ask parsers: where conftest files count from, and which files.
TESTS = {
    "vllm-mlx": [("tests", ["tests/test_*.py"], "tool_parsers reasoning")],
    "mlx-lm": [("tests", ["tests/test_tool_parsing.py"], "")],
    "vllm": [
        ("tests/tool_parsers", ["tests/tool_parsers"], ""),
        ("tests/reasoning", ["tests/reasoning"], ""),
        ("tests/parser", ["tests/parser"], ""),
        ("tests/tool_use/mistral", ["tests/tool_use/test_muse*.py", "tests/tool_use/test_kimi*.py"], ""),
    ],
}
# They want a server, a model or a graphics card.
LEFT_OUT = ("real", "bench", "lifecycle", "test_cli", "test_server", "model_workflow", "paged")


def pip(*arguments, **environment):
    command = [sys.executable, "-m", "pip", arguments[0], "--quiet", "--disable-pip-version-check", *arguments[1:]]
    subprocess.run(command, check=True, env=os.environ | environment)


def sources(folder, package):
    return folder / "sources" / f"{package}-{SOURCES[package]}"


def fetch(folder):
    """The source distributions, unpacked as far as they are read. pip asks each for its metadata; a build backend of our own gives what the distribution
    says of itself, so that nothing is built and nothing that building needs is installed."""
    for package, version in SOURCES.items():
        target = sources(folder, package)
        if target.exists():
            continue
        place = folder / "download"
        shutil.rmtree(place, ignore_errors=True)
        only = ["--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--dest", str(place)]
        pip("download", *only, f"{package}=={version}", PYTHONPATH=str(HERE / "backend"))
        with tarfile.open(next(place.iterdir())) as archive:
            read = [member for member in archive if member.name.endswith(READ)]
            archive.extractall(place / "unpacked", members=read, filter="data")
        target.parent.mkdir(exist_ok=True)
        shutil.move(next((place / "unpacked").iterdir()), target)
        shutil.rmtree(place)


def install(packages):
    """The requirements of the tests, in addition to the oracle's own packages."""
    requirements, installed = (HERE / "requirements.txt").read_text(), packages / ".requirements"
    if not installed.exists() or installed.read_text() != requirements:
        shutil.rmtree(packages, ignore_errors=True)
        pip("install", "--target", str(packages), "-r", str(HERE / "requirements.txt"))
        installed.write_text(requirements)


def record(folder, suite):
    """Runs a peer's tests; what its parsers were asked and answered."""
    root, out = sources(folder, suite), folder / f"{suite}.recorded"
    out.unlink(missing_ok=True)
    environment = os.environ | {
        "PONDER_SUITE": suite,
        "PONDER_SOURCES": str(root),
        "PONDER_CASES": str(out),
        "PYTHONPATH": f"{HERE}{os.pathsep}{folder / 'packages'}",
        "PYTHONDONTWRITEBYTECODE": "1",
        # Downloads of the tests are replaced (stand_ins.py), or the tests are skipped.
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
    }
    for top, patterns, words in TESTS[suite]:
        files = [file for pattern in patterns for file in sorted(root.glob(pattern))]
        files = [file for file in files if not any(part in file.name for part in LEFT_OUT)]
        if words:
            files = [file for file in files if any(word in file.read_text() for word in words.split())]
        options = ["-q", "--no-header", "--tb=no", "-p", "recorder", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(root)]
        options += ["--confcutdir", str(root / top), "--continue-on-collection-errors"]
        with (folder / f"{suite}.log").open("w") as log:
            # Some of their tests fail without what is left out here; only what passes is written down.
            subprocess.run([sys.executable, "-m", "pytest", *options, *map(str, files)], cwd=root, env=environment, stdout=log, stderr=log)
    lines = out.read_text().splitlines() if out.exists() else []
    return [json.loads(line) for line in lines]


def distinct(cases):
    """Each case once, the one that came whole before those that came in pieces."""
    found = {}
    for case in sorted(cases, key=lambda case: case.get("streamed", False)):
        key = [case.get(name) for name in ("format", "template", "kind", "source", "opened", "tools")]
        found.setdefault(json.dumps(key, sort_keys=True), case)
    return list(found.values())


def main():
    folder = Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    fetch(folder)
    install(folder / "packages")
    shutil.rmtree(folder / "cases", ignore_errors=True)
    (folder / "cases").mkdir()
    llama, left_out = llama_cpp.cases(folder, sources(folder, "llama-cpp-python"))
    suites = {"llama.cpp": llama}
    for suite in TESTS:
        recorded = record(folder, suite)
        named = [formats.named(case) for case in recorded]
        suites[suite] = [case for case in named if case]
    for suite, cases in suites.items():
        cases = distinct(cases)
        if not cases:
            sys.exit(f"no cases of {suite}; see {folder / suite}.log")
        with (folder / "cases" / f"{suite}.jsonl").open("w") as out:
            out.writelines(json.dumps(case, ensure_ascii=False) + "\n" for case in cases)
        print(f"{suite}: {len(cases)} cases")
    print(f"llama.cpp: {left_out} left out, since they show a step on the way or what no parser does")


if __name__ == "__main__":
    main()
