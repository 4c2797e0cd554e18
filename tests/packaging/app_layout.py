"""The .app as Tauri's bundler writes it on a Mac, from the configuration alone (tauri-bundler's bundle/macos/app.rs), and what must be true of it."""
import io
import json
import plistlib
import re
import shutil
import struct
from pathlib import Path

from PIL import Image, IcnsImagePlugin

# The oldest system of MLX's Metal build: its libraries and kernels are made for 14.0 (LC_BUILD_VERSION of libmlx.dylib
# in mlx-metal 0.32.2).
LEAST_MACOS = (14, 0)
# Exceptions from the hardened runtime; Entitlements.plist has the reasons for none.
ENTITLEMENTS = {}
# Kinds of documents that macOS itself declares, in addition to its public ones.
SYSTEM_KINDS = {"com.adobe.pdf", "org.openxmlformats.wordprocessingml.document"}
# Everything that may stand in Info.plist, so that a slip of the pen is found.
PLIST_KEYS = {
    "CFBundleDevelopmentRegion", "CFBundleDisplayName", "CFBundleExecutable", "CFBundleIconFile", "CFBundleIdentifier", "CFBundleInfoDictionaryVersion",
    "CFBundleLocalizations", "CFBundleName", "CFBundlePackageType", "CFBundleShortVersionString", "CFBundleVersion", "CSResourcesFileMapped",
    "LSApplicationCategoryType", "LSMinimumSystemVersion", "LSRequiresCarbon", "NSHighResolutionCapable", "NSHumanReadableCopyright", "CFBundleURLTypes",
    "CFBundleDocumentTypes", "UTExportedTypeDeclarations", "NSLocalNetworkUsageDescription",
}  # fmt: skip
# Each image that macOS looks for: points and density. An icns file without one shows a scaled neighbor.
ICNS = {(16, 1), (16, 2), (32, 1), (32, 2), (128, 1), (128, 2), (256, 1), (256, 2), (512, 1), (512, 2)}


def merged(base, patch):
    """JSON Merge Patch, as Tauri merges its configurations."""
    if not isinstance(base, dict) or not isinstance(patch, dict):
        return patch
    out = dict(base)
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        else:
            out[key] = merged(out.get(key), value)
    return out


def configuration(root, system, made=None):
    config = json.loads((root / "tauri.conf.json").read_text())
    config = merged(config, json.loads((root / f"tauri.{system}.conf.json").read_text()))
    return merged(config, made or {})


def info_plist(config, root):
    """Tauri's own keys, then those of our file, which win."""
    bundle, mac = config["bundle"], config["bundle"]["macOS"]
    category = re.sub(r"(?<!^)(?=[A-Z])", "-", bundle["category"]).lower()
    keys = {
        "CFBundleDevelopmentRegion": "English", "CFBundleDisplayName": config["productName"], "CFBundleExecutable": config["mainBinaryName"],
        "CFBundleIconFile": next((Path(icon).name for icon in bundle["icon"] if icon.endswith(".icns")), ""), "CFBundleIdentifier": config["identifier"],
        "CFBundleInfoDictionaryVersion": "6.0", "CFBundleName": config["productName"], "CFBundlePackageType": "APPL",
        "CFBundleShortVersionString": config["version"], "CFBundleVersion": config["version"], "CSResourcesFileMapped": True,
        "LSApplicationCategoryType": f"public.app-category.{category}", "LSMinimumSystemVersion": mac["minimumSystemVersion"],
        "LSRequiresCarbon": True, "NSHighResolutionCapable": True, "NSHumanReadableCopyright": bundle["copyright"],
    }  # fmt: skip
    return keys | plistlib.loads((root / mac["infoPlist"]).read_bytes())


def resources(config, root):
    """Pairs of a file and its place among the resources."""
    for source, place in config["bundle"]["resources"].items():
        path = root / source
        if path.is_dir():
            yield from ((file, Path(place) / file.relative_to(path)) for file in sorted(path.rglob("*")) if file.is_file())
        else:
            yield path, Path(place)


def write(config, root, app, window):
    """Writes the bundle to `app`. `window` stands for the window's program, which this computer cannot build for a Mac."""
    contents = app / "Contents"
    (contents / "MacOS").mkdir(parents=True)
    (contents / "Resources").mkdir()
    for icon in config["bundle"]["icon"]:
        if icon.endswith(".icns"):
            shutil.copy(root / icon, contents / "Resources")
    with (contents / "Info.plist").open("wb") as file:
        plistlib.dump(info_plist(config, root), file)
    for source, place in resources(config, root):
        target = contents / "Resources" / place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    for program in config["bundle"].get("externalBin", []):
        shutil.copy2(f"{program}-aarch64-apple-darwin", contents / "MacOS" / Path(program).name)
    shutil.copy2(window, contents / "MacOS" / config["mainBinaryName"])


def findings(config, root, app):
    """The faults of a bundle that was written."""
    contents = app / "Contents"
    plist = plistlib.loads((contents / "Info.plist").read_bytes())
    yield from plist_findings(plist, config, root, contents)
    yield from icns_findings(contents / "Resources" / plist["CFBundleIconFile"])
    yield from lookup_findings(root, contents)
    mac = config["bundle"]["macOS"]
    entitlements = plistlib.loads((root / mac["entitlements"]).read_bytes())
    if entitlements != ENTITLEMENTS:
        yield f"the entitlements are {entitlements}, and the list has {ENTITLEMENTS}"
    if not mac["hardenedRuntime"]:
        yield "the hardened runtime is off, so the app cannot be notarised"
    if not mac["signingIdentity"]:
        yield "nothing signs the bundle, not even ad hoc, and a Mac runs no unsigned arm64 program"
    yield from background_findings(mac["dmg"], root)


def plist_findings(plist, config, root, contents):
    unknown = set(plist) - PLIST_KEYS
    if unknown:
        yield f"Info.plist has keys that nobody listed: {sorted(unknown)}"
    if not re.fullmatch(r"[a-z]+(\.[A-Za-z0-9-]+){2,}", plist["CFBundleIdentifier"]):
        yield f"{plist['CFBundleIdentifier']} is no bundle identifier"
    if plist["CFBundleIdentifier"].endswith(".app"):
        yield "an identifier that ends in .app reads as a bundle's own name"
    version = re.search(r'^\[workspace\.package\]\nversion = "(.*)"', (root / "Cargo.toml").read_text(), re.MULTILINE)[1]
    if not plist["CFBundleVersion"] == plist["CFBundleShortVersionString"] == version or not re.fullmatch(r"\d+\.\d+\.\d+", version):
        yield f"the bundle is version {plist['CFBundleVersion']}, the workspace {version}"
    if tuple(map(int, plist["LSMinimumSystemVersion"].split("."))) != LEAST_MACOS:
        yield f"the bundle runs from macOS {plist['LSMinimumSystemVersion']} on, MLX from {LEAST_MACOS}"
    program = contents / "MacOS" / plist["CFBundleExecutable"]
    if not program.is_file() or not program.stat().st_mode & 0o111:
        yield f"there is no program {plist['CFBundleExecutable']}"
    schemes = [scheme for kind in plist.get("CFBundleURLTypes", []) for scheme in kind["CFBundleURLSchemes"]]
    if schemes != ["ponder"]:
        yield f"the links are {schemes}"
    exported = {kind["UTTypeIdentifier"] for kind in plist.get("UTExportedTypeDeclarations", [])}
    opened = {kind for document in plist.get("CFBundleDocumentTypes", []) for kind in document["LSItemContentTypes"]}
    if "app.ponder.chat" not in exported & opened:
        yield "chats that were exported are not a document of the app"
    if not all(kind in exported | SYSTEM_KINDS or kind.startswith("public.") for kind in opened):
        yield f"documents of a kind that nothing declares: {sorted(opened - exported)}"
    if not plist["NSHumanReadableCopyright"].startswith("©"):
        yield "there is no copyright"


def icns_findings(file):
    if not file.is_file():
        yield f"there is no {file.name}"
        return
    data = file.read_bytes()
    if data[:4] != b"icns" or struct.unpack(">I", data[4:8])[0] != len(data):
        yield f"{file.name} is broken"
        return
    icon = IcnsImagePlugin.IcnsFile(io.BytesIO(data))
    there = {(points, density) for points, _, density in icon.itersizes()}
    if there != ICNS:
        yield f"{file.name} lacks {sorted(ICNS - there)}"
    for points, density in sorted(there & ICNS):
        image = icon.getimage((points, points, density))
        pixels = points * density
        if image.size != (pixels, pixels) or image.getextrema()[3] != (0, 255):
            yield f"{file.name} has a wrong image for {points} points at density {density}"


def lookup_findings(root, contents):
    """The names that the app looks for next to its program are in its source; each must be in the bundle."""
    source = (root / "src-tauri/crates/hub/src/local/home.rs").read_text()
    wanted = re.findall(r'beside_program\("([^"]+)", "([^"]*)"\)', source)
    if len(wanted) < 2 or '"../Resources"' not in source:
        yield "home.rs no longer says what the app looks for in a way that this check reads"
    for name, holds in wanted:
        if not (contents / "Resources" / name / holds).is_file() and not (not holds and (contents / "Resources" / name).is_file()):
            yield f"the app looks for Resources/{name}/{holds}, and the bundle has none"
    if not (contents / "MacOS/ponder").is_file():
        yield "the command `ponder` is not in the bundle"


def background_findings(dmg, root):
    size = (dmg["windowSize"]["width"], dmg["windowSize"]["height"])
    with Image.open(root / dmg["background"]) as image:
        pages = []
        for page in range(image.n_frames):
            image.seek(page)
            pages.append((image.size, tuple(round(density) for density in image.info["dpi"])))
    if pages != [(size, (72, 72)), ((size[0] * 2, size[1] * 2), (144, 144))]:
        yield f"the disk image's background has {pages} for a window of {size}"
