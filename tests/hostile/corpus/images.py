"""Images: headers that promise too much, files that end early, two kinds in one."""
import struct
import zlib

from . import svgs
from .pattern import cut, patterns, spoiled, zeros

SIZES = [0, 1, 255, 16_384, 65_535, 100_000, 2_147_483_647, 4_294_967_295]


def chunk(name, body):
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def png(width, height, bits=8, colors=2, data=None, more=b""):
    data = zlib.compress(bytes(1 + width * 3) * height, 9) if data is None else data
    header = struct.pack(">IIBBBBB", width, height, bits, colors, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + more + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def png_header(random):
    bits, colors = random.choice([1, 2, 4, 8, 16, 0, 99]), random.choice([0, 2, 3, 4, 6, 1])
    return png(random.choice(SIZES), random.choice(SIZES), bits, colors, zeros(random.choice([1, 30, 200])))


def png_chunks(random):
    name = random.choice([b"tEXt", b"zTXt", b"iTXt", b"iCCP", b"eXIf", b"PLTE", b"tRNS", b"acTL", b"fcTL", b"abcD"])
    body = random.choice([b"", b"a\x00\x00" + zeros(300), b"x" * 900_000, struct.pack(">II", 4_294_967_295, 0), b"II*\x00\x08\x00\x00\x00" + b"\xff" * 900])
    return png(64, 48, more=chunk(name, body) * random.choice([1, 300 if len(body) < 1000 else 2]))


def gif(random):
    width, height = random.choice(SIZES[:5]), random.choice(SIZES[:5])
    file = b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + bytes(6)
    frame = b"\x2c" + struct.pack("<HHHHB", 0, 0, random.choice(SIZES[:5]), random.choice(SIZES[:5]), 0) + random.choice([b"\x02\x02\x44\x01\x00", b"\x0c" + b"\xff" + bytes(255) + b"\x00", b"\x00\x00", b"\xff\x01\x00\x00"])
    extension = random.choice([b"", b"\x21\xf9\x04\x00\xff\xff\x00\x00", b"\x21\xfe" + (b"\xff" + b"x" * 255) * 9000 + b"\x00", b"\x21\xff\x0bNETSCAPE2.0\x03\x01\xff\xff\x00"])
    return file + (extension + frame) * random.choice([1, 3, 40 if len(extension) > 99 else 90_000]) + random.choice([b";", b""])


def jpeg(random):
    def segment(mark, body):
        return b"\xff" + bytes([mark]) + struct.pack(">H", min(65_535, len(body) + 2)) + body

    mark = random.choice([0xC0, 0xC1, 0xC2, 0xC3, 0xC9, 0xCF])
    parts = random.choice([0, 1, 3, 4, 255])
    shape = struct.pack(">BHHB", random.choice([8, 12, 0]), random.choice(SIZES[:5]), random.choice(SIZES[:5]), parts)
    frame = segment(mark, shape + b"".join(bytes([at, random.choice([0x11, 0x44, 0x00, 0xFF]), 0]) for at in range(parts)))
    tables = segment(0xDB, b"\x00" + bytes(range(1, 65))) + segment(0xC4, b"\x00" + bytes([1] + [0] * 15) + b"\x00") + segment(0xC4, b"\x10" + bytes([1] + [0] * 15) + b"\x00")
    scan = segment(0xDA, bytes([min(parts, 4)]) + b"".join(bytes([at, 0]) for at in range(min(parts, 4))) + b"\x00\x3f\x00")
    more = random.choice([b"", segment(0xE1, b"Exif\x00\x00II*\x00\x08\x00\x00\x00" + b"\xff" * 900), segment(0xE2, b"ICC_PROFILE\x00\x01\xff" + bytes(999)) * 255, segment(0xFE, b"x" * 65_000) * 30])
    # A progressive file of many scans reads each pixel as often.
    scans = (scan + bytes(random.choice([0, 2000]))) * random.choice([1, 3, 3000])
    return b"\xff\xd8" + more + frame * random.choice([1, 1, 200]) + tables + scans + random.choice([b"\xff\xd9", b""])


def webp(random):
    size = struct.pack("<I", 0x2F | random.choice([0, 0x3FFF, 0xFFFFFFF]) << 8 & 0xFFFFFFFF)
    wide = struct.pack("<I", random.choice([0, 0xFFFFFF]))[:3]
    bodies = [
        b"VP8L" + struct.pack("<I", 60) + b"\x2f" + size[:4] + random.randbytes(55),
        b"VP8 " + struct.pack("<I", 90) + b"\x10\x00\x00\x9d\x01\x2a" + struct.pack("<HH", 0x3FFF, 0x3FFF) + random.randbytes(80),
        b"VP8X" + struct.pack("<I", 10) + bytes([random.choice([0x02, 0x10, 0x3E])]) + bytes(3) + wide + wide,
    ]
    frame = b"ANMF" + struct.pack("<I", 16) + bytes(6) + wide + wide + bytes(4)
    body = b"WEBP" + random.choice(bodies) + (b"ANIM" + struct.pack("<I", 6) + bytes(6) + frame * random.choice([0, 1, 40_000]))
    return b"RIFF" + struct.pack("<I", random.choice([len(body), 0, 4_294_967_295])) + body


def bmp(random):
    depth = random.choice([1, 4, 8, 16, 24, 32, 0, 64])
    size, packing = random.choice([12, 40, 108, 124, 4_294_967_295]), random.choice([0, 1, 2, 3, 4, 5, 6, 99])
    sides = struct.pack("<ii", random.choice([1, 60_000, 2_147_483_647, -2_147_483_648]), random.choice([1, 60_000, 2_147_483_647, -2_147_483_648]))
    head = struct.pack("<IHHI", random.choice([0, 99, 4_294_967_295]), 0, 0, random.choice([54, 0, 4_294_967_295]))
    more = struct.pack("<HHIIIIII", 1, depth, packing, 0, 0, 0, random.choice([0, 4_294_967_295]), 0)
    return b"BM" + head + struct.pack("<I", size) + sides + more + random.choice([bytes(40), b"\xff\x01" * 200_000, b"\x00\x02\xff\xff" * 90_000])


def tiff(random):
    values = [(256, random.choice(SIZES)), (257, random.choice(SIZES)), (258, random.choice([1, 8, 16, 64])), (259, random.choice([1, 5, 7, 8, 32_773, 50_000])), (262, random.choice([0, 2, 3, 5, 6]))]
    values += [(273, random.choice([8, 4_294_967_295])), (277, random.choice([1, 3, 65_535])), (278, random.choice(SIZES)), (279, random.choice(SIZES))]
    fields = b"".join(struct.pack("<HHII", tag, random.choice([3, 4, 4, 16]), random.choice([1, 1, 1, 4_294_967_295]), value) for tag, value in values)
    after = struct.pack("<I", random.choice([0, 8, 8, 99_999_999]))
    return b"II*\x00\x08\x00\x00\x00" + struct.pack("<H", random.choice([len(values), 65_535])) + fields + after + random.choice([bytes(900), zeros(200)])


def box(name, body):
    return struct.pack(">I", len(body) + 8) + name + body


def heic(random):
    brand = random.choice([b"heic", b"avif", b"mif1", b"heix", b"msf1"])
    ispe = box(b"ispe", struct.pack(">III", 0, random.choice(SIZES), random.choice(SIZES)))
    properties = box(b"iprp", box(b"ipco", (ispe + box(b"hvcC", random.randbytes(40))) * random.choice([1, 2000])) + box(b"ipma", struct.pack(">II", 0, random.choice([1, 4_294_967_295])) + b"\x00\x01\x02\x81\x02"))
    count = random.choice([1, 65_535])
    items = box(b"iinf", struct.pack(">IH", 0, count) + box(b"infe", struct.pack(">IHH", 0x02000000, 1, 0) + random.choice([b"hvc1", b"grid", b"iden", b"av01"]) + b"\x00") * min(count, 9000))
    place = box(b"iloc", struct.pack(">IHH", 0, 0x4444, random.choice([1, 65_535])) + struct.pack(">HHIHII", 1, 0, 0, 1, random.choice([0, 4_294_967_295]), random.choice(SIZES)))
    derived = box(b"iref", bytes(4) + box(b"dimg", struct.pack(">HHH", 1, 65_535, 1) + struct.pack(">H", 1) * 9000))
    nest = b""
    for _ in range(random.choice([0, 0, 3000])):
        nest = box(random.choice([b"meta", b"iprp", b"moov"]), nest)
    meta = box(b"meta", bytes(4) + box(b"hdlr", bytes(8) + b"pict" + bytes(13)) + box(b"pitm", bytes(5) + b"\x01") + items + place + properties + derived + nest)
    return box(b"ftyp", brand + bytes(4) + brand) + meta + random.choice([b"", struct.pack(">I", random.choice([0, 1, 7, 4_294_967_295])) + b"mdat" + random.randbytes(900)])


def truncated(random):
    pixels = zlib.compress(b"".join(b"\x00" + random.randbytes(192) for _ in range(64)))
    return cut(random, png(64, 64, data=pixels))


def damaged(random):
    write = random.choice([gif, jpeg, webp, bmp, tiff, heic])
    return spoiled(random, write(random)[:60_000])


def polyglot(random):
    """Beginnings and ends of two kinds, in one file."""
    good = png(64, 48)
    other = random.choice([gif, jpeg, webp, bmp, tiff, heic, svgs.masks])(random)
    return random.choice([good + other, other + good, good[:8] + other, b"GIF89a/*" + svgs.masks(random), b"%PDF-1.7\n" + good, b"\xff\xd8\xff\xe0" + good, b"BM" + svgs.chain(random), b"PK\x03\x04" + good])


def animated(random):
    """An animated PNG whose frames are larger than the image."""
    count = random.choice([1, 60, 4_294_967_295])
    frames = chunk(b"acTL", struct.pack(">II", count, 0))
    for at in range(min(count, 60)):
        side = random.choice(SIZES)
        frames += chunk(b"fcTL", struct.pack(">IIIIIHHBB", at * 2, side, side, random.choice(SIZES), 0, 0, 0, 0, 0)) + chunk(b"fdAT", struct.pack(">I", at * 2 + 1) + zeros(1))
    return png(64, 48, more=frames)


PATTERNS = svgs.PATTERNS + patterns(
    ("PNG, headers", "a.png", png_header),
    ("PNG, other chunks", "a.png", png_chunks),
    ("PNG, animated", "a.png", animated),
    ("GIF", "a.gif", gif),
    ("JPEG", "a.jpg", jpeg),
    ("WebP", "a.webp", webp),
    ("BMP", "a.bmp", bmp),
    ("TIFF", "a.tiff", tiff),
    ("HEIC and AVIF", "a.heic", heic),
    ("an image that ends early", "a.png", truncated),
    ("an image, damaged", "a.gif", damaged),
    ("two kinds in one", "a.png", polyglot),
)
