"""Puts together what a release offers.

    assets.py packages SYSTEM BUNDLE OUT    copies the packages of a build (target/release/bundle) to OUT
    assets.py collect SYSTEM BUNDLE OUT     the same, with a bill of materials, for which all dependencies have to be installed
    assets.py finish OUT VERSION REPOSITORY checksums, the list that running apps ask, the Homebrew cask and the Debian repository of everything that was collected

SYSTEM is linux or macos; REPOSITORY is owner/name on GitHub.
"""
import gzip
import hashlib
import json
import shutil
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import dependencies  # noqa: E402

KINDS = {"linux": ("deb/*.deb",), "macos": ("dmg/*.dmg", "macos/*.app.tar.gz", "macos/*.app.tar.gz.sig")}


def sha256(path):
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def copy_packages(system, bundle, out):
    out.mkdir(parents=True, exist_ok=True)
    packages = [file for pattern in KINDS[system] for file in bundle.glob(pattern)]
    if not packages:
        sys.exit(f"there is no package in {bundle}")
    for package in packages:
        # Spaces in names become dots on GitHub, and links to them break.
        shutil.copy2(package, out / package.name.replace(" ", "-"))


def collect(system, bundle, out):
    copy_packages(system, bundle, out)
    (out / f"ponder-{system}.cdx.json").write_text(json.dumps(dependencies.sbom(system), indent=1))


def checksums(out):
    files = sorted(file for file in out.iterdir() if file.is_file() and file.name != "SHA256SUMS")
    (out / "SHA256SUMS").write_text("".join(f"{sha256(file)}  {file.name}\n" for file in files))


def cask(out, version, repository):
    """`brew install --cask` reads it from a tap; a new version is this file again."""
    images = sorted(out.glob("*.dmg"))
    if not images:
        print("report: there is no disk image, so there is no cask")
        return
    values = {"version": version, "sha256": sha256(images[0]), "repository": repository, "file": images[0].name.replace(version, "#{version}")}
    text = (HERE / "ponder.rb.in").read_text()
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    (out / "ponder.rb").write_text(text)


def updates(out, version, repository):
    """The list that a running app reads if the user looks for a new version (`app_update.rs`)."""
    archives = sorted(out.glob("*.app.tar.gz"))
    if not archives:
        print("report: there is no signed archive of the app, so there is no list of updates")
        return
    archive = archives[0]
    platform = {
        "url": f"https://github.com/{repository}/releases/download/v{version}/{archive.name}",
        "signature": archive.with_name(f"{archive.name}.sig").read_text().strip(),
    }
    # The draft's own step ends the release if there are none.
    notes = subprocess.run([sys.executable, HERE / "notes.py", version], capture_output=True, text=True).stdout
    made = datetime.now(timezone.utc).isoformat(timespec="seconds")
    listed = {"version": version, "notes": notes.strip(), "pub_date": made, "platforms": {"darwin-aarch64": platform}}
    (out / "latest.json").write_text(json.dumps(listed, indent=1))


def control(package):
    return subprocess.run(["dpkg-deb", "-f", package], check=True, capture_output=True, text=True).stdout.strip()


def debian(out, version):
    """A repository as apt reads it: pool, an index for each architecture, and the Release file over the indexes, which is what gets signed."""
    packages = sorted(out.glob("*.deb"))
    if not packages:
        print("report: there is no package of Debian, so there is no repository")
        return
    root = out / "debian"
    pool = root / "pool/main/p/ponder"
    pool.mkdir(parents=True)
    stanzas = {}
    for package in packages:
        fields = control(package)
        architecture = next(line.partition(": ")[2] for line in fields.splitlines() if line.startswith("Architecture: "))
        placed = pool / f"ponder_{version}_{architecture}.deb"
        shutil.copy2(package, placed)
        description = fields.index("Description: ")
        places = f"Filename: {placed.relative_to(root)}\nSize: {placed.stat().st_size}\nSHA256: {sha256(placed)}\n"
        stanzas.setdefault(architecture, []).append(f"{fields[:description]}{places}{fields[description:]}\n")
    suite = root / "dists/stable"
    for architecture, entries in stanzas.items():
        folder = suite / f"main/binary-{architecture}"
        folder.mkdir(parents=True)
        index = "\n".join(entries).encode()
        (folder / "Packages").write_bytes(index)
        (folder / "Packages.gz").write_bytes(gzip.compress(index, mtime=0))
    indexes = sorted(file for file in suite.rglob("Packages*"))
    lines = "".join(f" {sha256(file)} {file.stat().st_size} {file.relative_to(suite)}\n" for file in indexes)
    date = subprocess.run(["date", "-u", "-R"], check=True, capture_output=True, text=True, env={"LC_ALL": "C"}).stdout.strip().replace("+0000", "UTC")
    (suite / "Release").write_text(
        f"Origin: Ponder\nLabel: Ponder\nSuite: stable\nCodename: stable\nDate: {date}\n"
        f"Architectures: {' '.join(sorted(stanzas))}\nComponents: main\nDescription: Packages of Ponder\nSHA256:\n{lines}"
    )
    subprocess.run(["tar", "-C", root, "-czf", out / "debian-repository.tar.gz", "dists", "pool"], check=True)
    shutil.rmtree(root)


def main():
    match sys.argv[1:]:
        case ["packages", ("linux" | "macos") as system, bundle, out]:
            copy_packages(system, Path(bundle), Path(out))
        case ["collect", ("linux" | "macos") as system, bundle, out]:
            collect(system, Path(bundle), Path(out))
        case ["finish", out, version, repository]:
            updates(Path(out), version, repository)
            cask(Path(out), version, repository)
            debian(Path(out), version)
            checksums(Path(out))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
