"""Texts with which the tests of other sanitizers try to get something past them, for `ui/src/app/hostileText.test.ts`.

    collect.py FILE       writes a JSON list of texts

They come out of source distributions, as pip fetches them, and stay out of the repository, because their licences differ."""
import ast
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import warnings
from pathlib import Path

# Versions are pinned, so that the texts are the same for everybody.
PACKAGES = ["bleach==6.4.0", "lxml_html_clean==0.4.6", "mistune==3.4.0"]
TESTS = re.compile(r"/tests?/.*\.(py|txt|test|data|json|html)$")
# A text without any of these tries nothing.
TRIES = re.compile(r"<\s*/?[a-z!?]|javascript|vbscript|data:|\]\(|&#", re.IGNORECASE)
LONGEST = 3000


def texts(name, content):
    """The texts in a file of tests: its strings, its examples, or the file itself."""
    if name.endswith(".py"):
        for node in ast.walk(ast.parse(content)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
    elif name.endswith(".json"):
        for case in json.loads(content):
            if isinstance(case, dict):
                yield case.get("markdown", "")
    elif name.endswith(".txt"):
        yield from re.split(r"`{20,}[^\n]*\n|^\.$\n|\n\n>>> ", content, flags=re.MULTILINE)
    else:
        yield content.split("\n--\n")[0]


def main(target):
    found = {}
    # Other people's strings with odd escapes.
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "--dest", folder]
        subprocess.run([*fetch, *PACKAGES], check=True)
        for archive in sorted(Path(folder).glob("*.tar.gz")):
            with tarfile.open(archive) as members:
                for member in members:
                    if not member.isfile() or not TESTS.search(member.name):
                        continue
                    content = members.extractfile(member).read().decode("utf-8", "replace")
                    for text in texts(member.name, content):
                        text = text.strip()
                        if len(text) <= LONGEST and TRIES.search(text):
                            # JSON and the page know no half of a pair of surrogates.
                            found[text.encode("utf-8", "replace").decode()] = None
    Path(target).write_text(json.dumps(list(found), ensure_ascii=False))
    print(f"{len(found)} texts")


main(*sys.argv[1:])
