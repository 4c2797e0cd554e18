"""Checks what a Mac's bundle and a Debian package would hold, on any computer.

    check.py --command PONDER      PONDER is a built `ponder` of this computer, which answers from within the layout
    check.py --strings FILE...     no file, nor any in a folder, names a folder of this computer

Prints what is wrong, a line each, and ends with 1 if anything is.
"""
import argparse
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import app_layout

ROOT = Path(__file__).resolve().parents[2]
QUESTION = ["ask", "--temperature", "0", "What is 347 + 589?"]
# The name of a user's folder: with spaces, umlauts and quotation marks.
PLACE = "Programme für 'alle' Übungen"


def schema_findings(root, config, name):
    import jsonschema

    schema = root / "ui/node_modules/@tauri-apps/cli/config.schema.json"
    if not schema.is_file():
        print("report: the configuration was not read by Tauri's schema, because the window's packages are not installed")
        return
    for error in jsonschema.Draft7Validator(json.loads(schema.read_text())).iter_errors(config):
        yield f"{name}: {'.'.join(map(str, error.absolute_path))}: {error.message[:200]}"


def made_for(system, command, beside, root):
    """The part of the configuration that a build makes, by the script that makes it for one."""
    stage = Path(tempfile.mkdtemp(dir=beside))
    if system == "macos":
        # The kernels are made on a Mac alone.
        material = stage / "mlx.metallib"
        material.write_bytes(b"MTLB")
    else:
        material = stage / "wheel"
        for name in ("mlx/lib/libmlx.so", "mlx_cpu.libs/libgfortran.so"):
            (material / name).parent.mkdir(parents=True, exist_ok=True)
            (material / name).write_bytes(b"\x7fELF")
    script = [sys.executable, root / "src-tauri/bundle.py", system, command, material, stage / "files"]
    return json.loads(subprocess.run(script, check=True, capture_output=True, text=True).stdout)


def answers(command, home):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PONDER_")} | {"PONDER_HOME": str(home)}
    said = subprocess.run([command, *QUESTION], env=environment, capture_output=True, text=True)
    if "936" not in said.stdout:
        yield f"{command} answered {said.stdout!r} {said.stderr!r}"
    listed = subprocess.run([command, "models", "--json"], env=environment, capture_output=True, text=True).stdout
    pebble = (Path(command).resolve().parent / "../Resources/pebble").resolve()
    if str(pebble) not in listed:
        yield f"{command} has Pebble from elsewhere than {pebble}: {listed}"


def writable(folder, yes):
    for path in [folder, *folder.rglob("*")]:
        if path.is_symlink():
            continue
        mode = path.stat().st_mode
        path.chmod(mode | stat.S_IWUSR if yes else mode & ~0o222)


def app_findings(root, command, beside):
    config = app_layout.configuration(root, "macos", made_for("macos", command, beside, root))
    yield from schema_findings(root, config, "tauri.macos.conf.json")
    app = beside / PLACE / "Ponder.app"
    app_layout.write(config, root, app, command)
    yield from app_layout.findings(config, root, app)
    yield from path_findings([app / "Contents/Info.plist", app / "Contents/Resources"])
    # The real lookup: this computer's program in a Mac's layout, where it was put, moved, not to be written to, and by
    # a link to it.
    yield from answers(app / "Contents/MacOS/ponder", beside / "home")
    moved = beside / "Volumes/Ponder 1"
    moved.parent.mkdir()
    shutil.move(app.parent, moved)
    writable(moved, False)
    link = beside / "bin/ponder"
    link.parent.mkdir()
    link.symlink_to(moved / "Ponder.app/Contents/MacOS/ponder")
    yield from answers(link, beside / "home")
    writable(moved, True)


def deb_findings(root, command, beside):
    config = app_layout.configuration(root, "linux", made_for("linux", command, beside, root))
    yield from schema_findings(root, config, "tauri.linux.conf.json")
    deb = config["bundle"]["linux"]["deb"]
    for place, source in deb["files"].items():
        if not (root / source).is_file():
            yield f"the package's {place} is to be {source}, which is not there"
    for place in ("/usr/bin/ponder", "/usr/share/man/man1/ponder.1.gz", "/usr/share/man/man1/ponder-ask.1.gz", "/usr/lib/ponder/mlx/lib/libmlx.so"):
        if place not in deb["files"]:
            yield f"the package lacks {place}"
    for package in ("libopenblas0-pthread",):
        if package not in deb["depends"]:
            yield f"the package does not depend on {package}"
    desktop = (root / deb["desktopTemplate"]).read_text()
    for name, value in {"name": "Ponder", "comment": config["bundle"]["shortDescription"], "exec": config["mainBinaryName"], "icon": config["mainBinaryName"]}.items():
        desktop = desktop.replace(f"{{{{{name}}}}}", value)
    entry = beside / "Ponder.desktop"
    entry.write_text(desktop)
    if "{{" in desktop:
        yield "the desktop entry asks for what Tauri does not fill in"
    for tool in (["desktop-file-validate", entry], ["appstreamcli", "validate", "--no-net", root / "src-tauri/linux/metainfo.xml"]):
        if not shutil.which(tool[0]):
            print(f"report: {tool[0]} is not installed, so it did not read its file")
            continue
        read = subprocess.run(tool, capture_output=True, text=True)
        # Hints are for people; errors are not.
        if read.returncode or re.search(r"^(E:|.*: error:)", read.stdout, re.MULTILINE):
            yield f"{tool[0]}: {read.stdout.strip()} {read.stderr.strip()}"
    yield from path_findings([root / source for place, source in deb["files"].items() if place.startswith("/usr/share")])


def folders_of_this_computer():
    """The folders that must not be named in anything released. A root folder such as / or /root would also occur in
    unrelated texts."""
    cache = Path(os.environ.get("PONDER_BUILD_CACHE") or Path.home() / ".cache/ponder")
    cargo = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    return sorted({str(ROOT), str(cache), str(cargo), f"{Path.home()}/"})


def path_findings(paths):
    names = [name.encode() for name in folders_of_this_computer()]
    for path in paths:
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if not file.is_file() or file.is_symlink():
                continue
            data = file.read_bytes()
            for name in names:
                at = data.find(name)
                if at >= 0:
                    around = re.search(rb"[\x20-\x7e]*", data[at : at + 200])[0].decode()
                    yield f"{file} names a folder of this computer, {data.count(name)} times: {around}"
                    break


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", type=Path)
    parser.add_argument("--root", type=Path, default=ROOT, help="another checkout")
    parser.add_argument("--strings", type=Path, nargs="+", default=[])
    args = parser.parse_args()
    found = list(path_findings(args.strings))
    if args.command:
        with tempfile.TemporaryDirectory() as beside:
            found += app_findings(args.root, args.command.resolve(), Path(beside))
            found += deb_findings(args.root, args.command.resolve(), Path(beside))
    print("\n".join(found))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
