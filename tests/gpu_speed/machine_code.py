"""llama.cpp's library for a card whose driver cannot compile what the package brings.

The package has machine code for some architectures, and for the others PTX, which the driver compiles if it is at
least as new as the compiler that wrote it. For an older driver this compiles the modules with NVIDIA's assembler, once,
and writes a folder of the package's libraries with that code in the place of what was there.

    python machine_code.py LIBRARIES TOOLS OUT [--architecture 90 --cuda 13000]

prints the folder to take. TOOLS has cuobjdump, ptxas and fatbinary."""
import argparse
import os
import re
import shutil
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from card import Card

LIBRARY = "libggml-cuda.so"
SECTION = b".nv_fatbin"
# The head of a module's code for all architectures: magic number, version, size of the head, size of the rest.
HEAD, MAGIC = "<IHHQ", 0xBA55ED50


class Tools:
    def __init__(self, folder):
        self.folder = folder

    def run(self, name, *arguments, **options):
        command = ["nice", self.folder / name, *arguments]
        return subprocess.run([str(word) for word in command], check=True, text=True, stdout=subprocess.PIPE, **options)

    def listed(self, kind, library):
        """The names of architectures that a library has code for: `elf` is machine code, `ptx` is PTX."""
        text = self.run("cuobjdump", f"-l{kind}", library).stdout
        return set(re.findall(r"\.sm_(\d+[a-z]?)\.", text))


def source_for(names, architecture):
    """The newest PTX that the architecture can run; what ends in a letter is for that architecture alone."""
    plain = [int(name) for name in names if name.isdigit() and int(name) <= architecture]
    return max(plain, default=None)


def has_machine_code(names, architecture):
    """Machine code runs on later minor versions of its architecture, too."""
    numbers = [int(name) for name in names if name.isdigit()]
    same = f"{architecture}a" in names or f"{architecture}f" in names
    return same or any(number // 10 == architecture // 10 and number <= architecture for number in numbers)


def cuda_of(ptx):
    """The CUDA that wrote PTX, as drivers number it: since PTX 9.0, which is CUDA 13.0, both count alike. What is older
    every driver of the card takes that llama.cpp's own runtime starts on."""
    major, minor = map(int, re.search(r"^\.version (\d+)\.(\d+)", ptx, re.MULTILINE).groups())
    return 1000 * (major + 4) + 10 * minor


def section(data, wanted):
    """Where a section of a 64 bit ELF file begins and ends."""
    (table,) = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    heads = [struct.unpack_from("<IIQQQQ", data, table + index * size) for index in range(count)]
    for head in heads:
        start = heads[names][4] + head[0]
        if data[start : data.index(b"\0", start)] == wanted:
            return head[4], head[4] + head[5]
    raise SystemExit(f"no section {wanted.decode()}")


def modules(data):
    """The places and lengths of the modules' code, in their order, which is cuobjdump's."""
    at, end = section(data, SECTION)
    found = []
    while at < end:
        magic, _, head, size = struct.unpack_from(HEAD, data, at)
        if magic != MAGIC:
            at += 8
            continue
        found.append((at, head + size))
        at = (at + head + size + 7) & ~7
    return found


def put_in(data, code):
    """Writes each module's code over what is there. A module without gets none, and its kernels fail when they are
    launched."""
    for number, (at, room) in enumerate(modules(data), 1):
        part = code.get(number) or struct.pack(HEAD, MAGIC, 1, 16, 0)
        if len(part) > room:
            raise SystemExit(f"the code of module {number} has {len(part)} bytes, and there is room for {room}")
        data[at : at + room] = part.ljust(room, b"\0")


def packed(tools, cubin, architecture, room):
    """Machine code in the container that CUDA reads, compressed where it must be."""
    out, image = cubin.with_suffix(".fatbin"), f"--image3=kind=elf,sm={architecture},file={cubin}"
    for how in ("--compress=false", "--compress-all"):
        tools.run("fatbinary", "-64", how, f"--create={out}", image)
        if out.stat().st_size <= room:
            break
    return out.read_bytes()


def compile_all(tools, ptx, architecture, cubins, jobs):
    def compile_one(path):
        cubin = cubins / f"{number_of(path)}.cubin"
        if not cubin.exists():
            part = cubin.with_suffix(".part")
            tools.run("ptxas", f"-arch=sm_{architecture}", "-O3", path, "-o", part)
            part.rename(cubin)

    with ThreadPoolExecutor(jobs) as pool:
        # The longest first, so that none is left at the end.
        done = pool.map(compile_one, sorted(ptx, key=lambda path: path.stat().st_size, reverse=True))
        for count, _ in enumerate(done, 1):
            if count % 10 == 0 or count == len(ptx):
                print(f"{count} of {len(ptx)} modules compiled", file=sys.stderr)


def number_of(path):
    return int(path.name.split(".")[1])


def build(tools, libraries, out, architecture, source, only, jobs):
    ptx_folder, cubins = out / "ptx", out / "cubin"
    for folder in (ptx_folder, cubins):
        folder.mkdir(parents=True, exist_ok=True)
    library = (libraries / LIBRARY).resolve()
    tools.run("cuobjdump", "-arch", f"sm_{source}", "-xptx", "all", library, cwd=ptx_folder)
    ptx = [path for path in ptx_folder.glob("*.ptx") if not only or number_of(path) in only]
    compile_all(tools, ptx, architecture, cubins, jobs)
    data = bytearray(library.read_bytes())
    rooms = [room for _, room in modules(data)]
    code = {
        number: packed(tools, cubins / f"{number}.cubin", architecture, rooms[number - 1])
        for number in map(number_of, ptx)
    }
    put_in(data, code)
    result = out / "libraries"
    shutil.copytree(libraries, result, dirs_exist_ok=True)
    (result / LIBRARY).write_bytes(data)
    shutil.rmtree(ptx_folder)
    return result


def chosen(libraries, tools, out, architecture, cuda, only=(), jobs=1):
    """The folder of libraries that this card and its driver can run."""
    library = libraries / LIBRARY
    if has_machine_code(tools.listed("elf", library), architecture):
        return libraries
    source = source_for(tools.listed("ptx", library), architecture)
    if source is None:
        raise SystemExit(f"llama.cpp has no code for architecture {architecture}")
    out.mkdir(parents=True, exist_ok=True)
    names = tools.run("cuobjdump", "-arch", f"sm_{source}", "-lptx", library.resolve()).stdout
    first = re.search(r"(\S+\.ptx)", names).group(1)
    tools.run("cuobjdump", "-arch", f"sm_{source}", "-xptx", first, library.resolve(), cwd=out)
    text = (out / first).read_text()
    (out / first).unlink()
    if cuda >= cuda_of(text):
        return libraries
    mark = out / "complete"
    if not mark.exists():
        print(f"compiling llama.cpp for architecture {architecture}: the driver is older than it", file=sys.stderr)
        build(tools, libraries, out, architecture, source, only, jobs)
        mark.touch()
    return out / "libraries"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("libraries", type=Path)
    parser.add_argument("tools", type=Path)
    parser.add_argument("out", type=Path, help="the compiled libraries are written below, in a folder by architecture")
    parser.add_argument("--architecture", type=int, help="default: the card's")
    parser.add_argument("--cuda", type=int, help="default: what the driver takes")
    parser.add_argument("--modules", type=int, nargs="+", default=[], help="these alone; for a library to carry")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    args = parser.parse_args()
    if args.architecture is None or args.cuda is None:
        card = Card().describe()
        args.architecture, args.cuda = args.architecture or card["architecture"], args.cuda or card["cuda"]
    out = args.out / f"sm_{args.architecture}"
    tools = Tools(args.tools)
    print(chosen(args.libraries, tools, out, args.architecture, args.cuda, args.modules, args.jobs))


if __name__ == "__main__":
    main()
