"""The parts of Ponder with their licenses: for the page in the app, for packages, and as a software bill of materials.

    dependencies.py page          JSON for Settings, About: components, and each licence's text once
    dependencies.py text          the same to read
    dependencies.py sbom SYSTEM   CycloneDX 1.6; SYSTEM is linux or macos
    dependencies.py check         fails if something has no licence, or one that is not among ALLOWED

Only what ends up in the programs and pages counts: no tools, no tests, no macros. The packages have to be installed (`./dev setup`, `npm ci`).
"""
import hashlib
import json
import re
import subprocess
import sys
import uuid
from datetime import datetime, timezone
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGETS = {"linux": "x86_64-unknown-linux-gnu", "macos": "aarch64-apple-darwin"}
# Licenses that allow distribution in a program under Apache 2.0, in SPDX's names.
ALLOWED = {
    "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "CDLA-Permissive-2.0", "ISC", "MIT", "MIT-0",
    "MPL-2.0", "OFL-1.1", "Unicode-3.0", "Unlicense", "Zlib", "bzip2-1.0.6", "MITNFA", "LGPL-2.1-or-later", "GPL-3.0-or-later WITH GCC-exception-3.1",
}  # fmt: skip
# If a package leaves the choice, the first of these; most packages have the same text of it.
PREFERRED = ["Apache-2.0", "MIT", "BSD-3-Clause", "0BSD", "ISC", "Zlib", "Unlicense", "CC0-1.0"]
# The licenses of packages whose manifest names none.
UNNAMED = {"khroma": "MIT"}
FILES = re.compile(r"^(licen[cs]e|copying|notice|copyright|unlicense|ofl)", re.IGNORECASE)
# The parts that no registry of ours names: MLX and the libraries of its build, on Linux as separate libraries that can
# be replaced.
NATIVE = [
    {"name": "mlx", "version": None, "licence": "MIT", "systems": ["linux", "macos"], "url": "https://github.com/ml-explore/mlx"},
    {"name": "mlx-c", "version": None, "licence": "MIT", "systems": ["linux", "macos"], "url": "https://github.com/ml-explore/mlx-c"},
    {"name": "metal-cpp", "version": None, "licence": "Apache-2.0", "systems": ["macos"], "url": "https://developer.apple.com/metal/cpp/"},
    {"name": "fmt", "version": None, "licence": "MIT", "systems": ["linux", "macos"], "url": "https://github.com/fmtlib/fmt"},
    {"name": "gguflib", "version": None, "licence": "MIT", "systems": ["linux", "macos"], "url": "https://github.com/antirez/gguf-tools"},
    {"name": "lapack", "version": None, "licence": "BSD-3-Clause", "systems": ["linux"], "url": "https://www.netlib.org/lapack/"},
    {"name": "libquadmath", "version": None, "licence": "LGPL-2.1-or-later", "systems": ["linux"], "url": "https://gcc.gnu.org"},
    {"name": "libgfortran", "version": None, "licence": "GPL-3.0-or-later WITH GCC-exception-3.1", "systems": ["linux"], "url": "https://gcc.gnu.org"},
]


def run(*command):
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def cargo(system):
    """The packages that are compiled into the two programs for a system."""
    metadata = json.loads(run("cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", TARGETS[system]))
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    members = set(metadata["workspace_members"])
    waiting = [id for id in members if packages[id]["name"] in ("ponder-app", "cli")]
    seen = set(waiting)
    while waiting:
        for dependency in nodes[waiting.pop()]["deps"]:
            id = dependency["pkg"]
            built_in = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            macro = any("proc-macro" in target["kind"] for target in packages[id]["targets"])
            if built_in and not macro and id not in seen:
                seen.add(id)
                waiting.append(id)
    locked = (ROOT / "Cargo.lock").read_text()
    sums = {(name, version): checksum for name, version, checksum in re.findall(r'name = "(.*)"\nversion = "(.*)"\nsource = ".*"\nchecksum = "(.*)"', locked)}
    for id in seen - members:
        package = packages[id]
        folder = Path(package["manifest_path"]).parent
        name, version = package["name"], package["version"]
        named = folder / package["license_file"] if package["license_file"] else None
        yield {
            "name": name, "version": version, "licence": (package["license"] or "").replace("/", " OR ") or None, "folder": folder, "file": named,
            "purl": f"pkg:cargo/{name}@{version}", "sha256": sums.get((name, version)), "url": package["repository"] or f"https://crates.io/crates/{name}",
        }  # fmt: skip


def npm():
    """The packages whose code, styles or fonts are among the pages: those that are no tools, and Svelte, whose runtime is."""
    lock = json.loads((ROOT / "ui/package-lock.json").read_text())["packages"]
    for place, package in lock.items():
        name = place.rpartition("node_modules/")[2]
        # Types are no code.
        if not place or (package.get("dev") and name != "svelte") or package.get("optional") or name.startswith("@types/"):
            continue
        folder = ROOT / "ui" / place
        about = json.loads((folder / "package.json").read_text()) if folder.is_dir() else {}
        yield {
            "name": name, "version": package["version"], "licence": package.get("license") or about.get("license") or UNNAMED.get(name), "folder": folder, "file": None,
            "purl": f"pkg:npm/{name.replace('@', '%40')}@{package['version']}", "sha256": None, "url": package.get("resolved") and f"https://www.npmjs.com/package/{name}",
        }  # fmt: skip


def native(system):
    metadata = json.loads(run("cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", TARGETS[system]))
    mlx_sys = next(Path(package["manifest_path"]).parent for package in metadata["packages"] if package["name"] == "mlx-sys")
    lock = (ROOT / "src-tauri/mlx/requirements.txt").read_text()
    mlx = re.search(r"^mlx==(\S+)", lock, re.MULTILINE)[1]
    for part in NATIVE:
        if system in part["systems"]:
            version = mlx if part["name"] in ("mlx", "mlx-c") else part["version"]
            # Both have the same license and holder, and the crate that builds them carries it.
            file = mlx_sys / "src/mlx-c/LICENSE" if part["name"] in ("mlx", "mlx-c") else None
            yield part | {"version": version, "folder": mlx_sys, "file": file, "sha256": None, "purl": f"pkg:generic/{part['name']}" + (f"@{version}" if version else "")}


def components(systems=tuple(TARGETS)):
    found = {}
    for system in systems:
        for part in [*cargo(system), *npm(), *native(system)]:
            found[part["purl"]] = part
    return sorted(found.values(), key=lambda part: (part["name"].lower(), part["version"] or ""))


def chosen(expression):
    """The terms of an SPDX expression that apply: the preferred one of alternatives, and everything joined by AND."""
    expression = (expression or "").strip()
    if not expression:
        return []
    depth, parts, operator, last = 0, [], None, 0
    for match in re.finditer(r"[()]|\bAND\b|\bOR\b", expression):
        word = match[0]
        depth += {"(": 1, ")": -1}.get(word, 0)
        # AND binds tighter, so an OR outside of brackets divides first.
        if depth == 0 and word == "OR" or depth == 0 and word == "AND" and operator != "OR" and not re.search(r"\bOR\b", re.sub(r"\([^()]*\)", "", expression)):
            operator = word
            parts.append(expression[last : match.start()])
            last = match.end()
    parts.append(expression[last:])
    if len(parts) == 1:
        inner = re.fullmatch(r"\((.*)\)", expression, re.DOTALL)
        return chosen(inner[1]) if inner else [expression]
    options = [chosen(part) for part in parts]
    if operator == "AND":
        return sorted({licence for option in options for licence in option})

    def rank(option):
        return (not set(option) <= ALLOWED, max((PREFERRED.index(licence) if licence in PREFERRED else len(PREFERRED) for licence in option), default=0))

    return min(options, key=rank)


def texts(part):
    """The texts that a package brings for what applies of its license, and its notices."""
    if not part["folder"] or not part["folder"].is_dir():
        return []
    if part["purl"].startswith("pkg:generic/") and not part["file"]:
        return []
    files = [part["file"]] if part["file"] else sorted(file for file in part["folder"].iterdir() if file.is_file() and FILES.match(file.name))
    applies = " ".join(chosen(part["licence"])).lower()
    known = {"apache": "apache", "mit": "mit", "bsd": "bsd", "unlicense": "unlicense", "zlib": "zlib", "isc": "isc", "cc0": "cc0", "mpl": "mpl", "ofl": "ofl", "boost": "bsl"}

    def counts(file):
        suffix = file.name.lower()
        named = [licence for word, licence in known.items() if word in suffix.replace("license", "").replace("licence", "")]
        return not named or any(licence in applies for licence in named) or suffix.startswith(("notice", "copyright"))

    found = [file.read_text(errors="replace").strip() for file in files if file.is_file() and counts(file)]
    return [text for text in found if text]


def page():
    """Components by name, and every text once."""
    order, parts = {}, []
    for part in components():
        numbers = [order.setdefault(re.sub(r"\s+", " ", text), (len(order), text))[0] for text in texts(part)]
        parts.append({"name": part["name"], "version": part["version"] or "", "licence": " AND ".join(chosen(part["licence"])), "url": part["url"], "texts": sorted(set(numbers))})
    return {"components": parts, "texts": [text for _, text in order.values()]}


def as_text(read):
    lines = ["What Ponder is built of, each under the licence that is named; the texts follow.", ""]
    for part in read["components"]:
        numbers = f" (text {', '.join(str(number + 1) for number in part['texts'])})" if part["texts"] else f" ({part['url']})"
        lines.append(f"{part['name']} {part['version']}: {part['licence']}{numbers}".replace(" :", ":"))
    for number, text in enumerate(read["texts"], 1):
        lines += ["", "-" * 78, f"Text {number}", "", text]
    return "\n".join(lines) + "\n"


def sbom(system):
    version = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
    parts = [
        {"type": "library", "bom-ref": part["purl"], "name": part["name"], "purl": part["purl"]}
        | ({"version": part["version"]} if part["version"] else {})
        | ({"licenses": [{"expression": part["licence"]}]} if part["licence"] else {})
        | ({"hashes": [{"alg": "SHA-256", "content": part["sha256"]}]} if part["sha256"] else {})
        | ({"externalReferences": [{"type": "website", "url": part["url"]}]} if part["url"] else {})
        for part in components([system])
    ]
    # The same sources give the same serial number.
    serial = uuid.UUID(hashlib.sha256(json.dumps([system, version, parts]).encode()).hexdigest()[:32])
    stamp = datetime.fromtimestamp(int(run("git", "log", "-1", "--format=%ct")), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    ours = {"type": "application", "bom-ref": "ponder", "name": "Ponder", "version": version, "licenses": [{"license": {"id": "Apache-2.0"}}]}
    return {
        "bomFormat": "CycloneDX", "specVersion": "1.6", "serialNumber": f"urn:uuid:{serial}", "version": 1,
        "metadata": {"timestamp": stamp, "component": ours}, "components": parts,
        "dependencies": [{"ref": "ponder", "dependsOn": [part["bom-ref"] for part in parts]}],
    }  # fmt: skip


def check():
    wrong = []
    for part in components():
        applies = chosen(part["licence"])
        if not applies or not set(applies) <= ALLOWED:
            wrong.append(f"{part['name']} {part['version']}: {part['licence'] or 'no licence'}")
    if wrong:
        sys.exit("licences that nobody allowed:\n" + "\n".join(wrong))


def main():
    match sys.argv[1:]:
        case ["page"]:
            json.dump(page(), sys.stdout, ensure_ascii=False)
        case ["text"]:
            sys.stdout.write(as_text(page()))
        case ["sbom", ("linux" | "macos") as system]:
            json.dump(sbom(system), sys.stdout, indent=1)
        case ["check"]:
            check()
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
