"""Makes every icon from icons/ponder.svg, and the disk image's background from src-tauri/macos/dmg.svg.

    ./dev icons            writes them
    ./dev icons --check    fails if one that is committed differs from what would be written
"""
import io
import struct
import sys
from pathlib import Path

import resvg_py
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
ICONS = ROOT / "icons"
DMG = ROOT / "src-tauri/macos/dmg"
VERSIONS = ("large", "small", "tiny", "template")
HIDDEN = ".small, .tiny, .template { display: none }"
# 36 pixels are 18 points on a screen of two pixels a point: what the menu bar has room for.
MENU_BAR = 36
# The kinds of an icns file and their pixels; `is32` and `il32` store their transparency separately.
MASKED = {"is32": ("s8mk", 16), "il32": ("l8mk", 32)}
WHOLE = {"ic11": 32, "ic12": 64, "ic07": 128, "ic13": 256, "ic08": 256, "ic14": 512, "ic09": 512, "ic10": 1024}
# The sizes that Linux desktops look for, and that a window gets.
SIZES = {"16x16": 16, "24x24": 24, "32x32": 32, "48x48": 48, "64x64": 64, "128x128": 128, "128x128@2x": 256, "icon": 512}


def version(pixels):
    """Which version of the drawing is right at a size."""
    return "tiny" if pixels <= 24 else "small" if pixels <= 64 else "large"


def draw(pixels, which=None):
    """The icon at a size, red, green, blue and alpha."""
    shown = which or version(pixels)
    style = " ".join(f".{name} {{ display: {'inline' if name == shown else 'none'} }}" for name in VERSIONS)
    source = (ICONS / "ponder.svg").read_text()
    if HIDDEN not in source:
        sys.exit("icons: the drawing no longer hides its versions in the line that this script replaces")
    return Image.open(io.BytesIO(bytes(resvg_py.svg_to_bytes(svg_string=source.replace(HIDDEN, style), width=pixels, height=pixels)))).convert("RGBA")


def png(image):
    out = io.BytesIO()
    image.save(out, "PNG", optimize=True)
    return out.getvalue()


def packed(channel):
    """Runs as icns has them: n < 128 is followed by n + 1 bytes as they are, n >= 128 by one that stands n - 125 times."""
    out, plain, at = bytearray(), bytearray(), 0
    while at < len(channel):
        end = at
        while end < len(channel) and channel[end] == channel[at] and end - at < 130:
            end += 1
        repeats = end - at >= 3
        if plain and (repeats or len(plain) == 128):
            out += bytes([len(plain) - 1]) + plain
            plain.clear()
        if repeats:
            out += bytes([end - at + 125, channel[at]])
            at = end
        else:
            plain.append(channel[at])
            at += 1
    return bytes(out + (bytes([len(plain) - 1]) + plain if plain else b""))


def icns():
    parts = []
    for kind, (mask, pixels) in MASKED.items():
        *colours, alpha = (channel.tobytes() for channel in draw(pixels).split())
        parts += [(kind, b"".join(packed(colour) for colour in colours)), (mask, alpha)]
    parts += [(kind, png(draw(pixels))) for kind, pixels in WHOLE.items()]
    body = b"".join(kind.encode() + struct.pack(">I", 8 + len(data)) + data for kind, data in parts)
    return b"icns" + struct.pack(">I", 8 + len(body)) + body


def background():
    """One TIFF with a picture for each density of screen, as Finder wants it."""
    pages = [Image.open(io.BytesIO(bytes(resvg_py.svg_to_bytes(svg_path=str(DMG.with_suffix(".svg")), width=660 * scale)))).convert("RGB") for scale in (1, 2)]
    for scale, page in enumerate(pages, 1):
        page.encoderinfo = {"dpi": (72 * scale, 72 * scale), "resolution_unit": 2}
    out = io.BytesIO()
    pages[0].save(out, "TIFF", compression="tiff_lzw", save_all=True, append_images=pages[1:], dpi=(72, 72))
    return out.getvalue()


def files():
    made = {ICONS / f"{name}.png": png(draw(pixels)) for name, pixels in SIZES.items()}
    made[ICONS / "menubar.png"] = png(draw(MENU_BAR, "template"))
    made[ICONS / "icon.icns"] = icns()
    made[DMG.with_suffix(".tiff")] = background()
    return made


def main():
    made = files()
    if "--check" in sys.argv[1:]:
        stale = [str(path.relative_to(ROOT)) for path, content in made.items() if not path.exists() or path.read_bytes() != content]
        if stale:
            sys.exit(f"icons: not what the drawing gives: {', '.join(stale)}")
        return
    for path, content in made.items():
        path.write_bytes(content)
        print(f"{path.relative_to(ROOT)}  {len(content):,} bytes")


if __name__ == "__main__":
    main()
