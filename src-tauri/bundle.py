"""The bundler's configuration in addition to tauri.conf.json: the files that a build has just made, and their places.

    bundle.py macos COMMAND METALLIB STAGE     a configuration for `tauri bundle --config`, on standard output
    bundle.py linux COMMAND MLX STAGE
    bundle.py updates                          another one for it, which depends on the release key alone

COMMAND is the built `ponder`, METALLIB MLX's compiled kernels, MLX the folder of its wheel. STAGE is an empty folder; what has to be made or renamed for the
bundler is put there.
"""
import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import dependencies

# The folders of completions on Debian, and their names in a Mac's bundle, from which Homebrew links them.
SHELLS = {
    "bash": ("/usr/share/bash-completion/completions/ponder", "ponder.bash"),
    "zsh": ("/usr/share/zsh/vendor-completions/_ponder", "_ponder"),
    "fish": ("/usr/share/fish/vendor_completions.d/ponder.fish", "ponder.fish"),
}


def completions(command, stage):
    """Writes the completions of each shell; pairs of the shell and its file."""
    for shell, (_, name) in SHELLS.items():
        script = stage / "completions" / name
        script.parent.mkdir(exist_ok=True)
        script.write_bytes(subprocess.run([command, "completions", shell], check=True, capture_output=True).stdout)
        yield shell, script


def macos(command, metallib, stage):
    """The command goes next to the window's program, and is signed like it; the kernels go into the resources."""
    # The bundler takes a program of this name, for this target, and drops the target from the name.
    shutil.copy2(command, stage / "ponder-aarch64-apple-darwin")
    # All is in one folder, which a release hands on to where it is signed.
    kernels = stage / "mlx.metallib"
    shutil.copy2(metallib, kernels)
    resources = {str(kernels): "mlx.metallib"} | {str(script): f"completions/{script.name}" for _, script in completions(command, stage)}
    return {"bundle": {"externalBin": [str(stage / "ponder")], "resources": resources}}


def updates():
    """The update that a running app fetches: the app as an archive, signed with the release key. Without that key there is nothing to sign with."""
    return {"bundle": {"createUpdaterArtifacts": bool(updater_key() and os.environ.get("TAURI_SIGNING_PRIVATE_KEY"))}}


def updater_key():
    """The public key that updates are verified with; empty if this build takes none."""
    return json.loads(Path("tauri.macos.conf.json").read_text())["plugins"]["updater"]["pubkey"]


def linux(command, mlx, stage):
    """The command in /usr/bin with its manual and completions; MLX in /usr/lib/ponder, its two folders side by side as in its wheel."""
    files = {"/usr/bin/ponder": command}
    for folder, wanted in (("mlx/lib", "libmlx.so*"), ("mlx_cpu.libs", "*")):
        for file in sorted((mlx / folder).glob(wanted)):
            files[f"/usr/lib/ponder/{folder}/{file.name}"] = file
    manual = stage / "manual"
    manual.mkdir(parents=True)
    subprocess.run([command, "manual", manual], check=True)
    for page in sorted(manual.iterdir()):
        packed = page.with_name(f"{page.name}.gz")
        # Without a time, so that the same build gives the same package.
        packed.write_bytes(gzip.compress(page.read_bytes(), mtime=0))
        files[f"/usr/share/man/man1/{packed.name}"] = packed
    for shell, script in completions(command, stage):
        files[SHELLS[shell][0]] = script
    licences = stage / "third-party-licences.txt"
    licences.write_text(dependencies.as_text(dependencies.page()))
    files["/usr/share/doc/ponder/third-party-licences.txt"] = licences
    return {"bundle": {"linux": {"deb": {"files": {place: str(file) for place, file in files.items()}}}}}


def main():
    if sys.argv[1:] == ["updates"]:
        json.dump(updates(), sys.stdout)
        return
    system, command, mlx, stage = sys.argv[1], *(Path(argument).absolute() for argument in sys.argv[2:5])
    stage.mkdir(parents=True, exist_ok=True)
    json.dump({"macos": macos, "linux": linux}[system](command, mlx, stage), sys.stdout, indent=1)


if __name__ == "__main__":
    main()
