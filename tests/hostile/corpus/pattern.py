"""A pattern of hostile files, and how one of them is found again by its seed."""
import functools
import random
import zlib

MEGABYTE = 1 << 20


class Pattern:
    """A way to do harm. `write` takes a random generator; `name` is the file's name, whose ending programs look at."""

    def __init__(self, name, file, write):
        self.name, self.file, self.write = name, file, write


def patterns(*rows):
    return [Pattern(*row) for row in rows]


def generator(seed, kind, number):
    """The same numbers for the same file everywhere, whatever else is made."""
    return random.Random(f"{seed}/{kind}/{number}")


@functools.lru_cache(maxsize=None)
def zeros(megabytes):
    """A zlib stream of zeros, a thousandth as long; nothing holds what it unfolds to."""
    packer = zlib.compressobj(9)
    block = bytes(MEGABYTE)
    return b"".join(packer.compress(block) for _ in range(megabytes)) + packer.flush()


def stored(data):
    """A zlib stream that stores these bytes as they are and goes on with nothing."""
    blocks = [data[at : at + 65535] for at in range(0, len(data), 65535)] or [b""]
    out = b"\x78\x01"
    for at, block in enumerate(blocks):
        last = at == len(blocks) - 1
        out += bytes([last]) + len(block).to_bytes(2, "little") + (len(block) ^ 0xFFFF).to_bytes(2, "little") + block
    return out + zlib.adler32(data).to_bytes(4, "big")


def cut(random, data):
    """A file that ends too early."""
    return data[: random.randrange(1, max(2, len(data)))]


def spoiled(random, data, times=None):
    """A file some of whose bytes are others."""
    data = bytearray(data)
    for _ in range(times or random.randrange(1, 40)):
        data[random.randrange(len(data))] = random.choice([0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)])
    return bytes(data)
