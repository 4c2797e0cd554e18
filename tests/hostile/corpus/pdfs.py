"""PDFs: streams that unfold, dictionaries that hide it, objects that nest or refer to each other."""
import zlib

from .pattern import cut, patterns, spoiled, stored, zeros

TEXT = b"BT /F1 12 Tf 72 720 Td (The harbor opens at seven.) Tj ET"


def stream(dictionary, data, length=None, around=b"\n"):
    length = len(data) if length is None else length
    return b"<< /Length %d %s >>%sstream\n%s\nendstream" % (length, dictionary, around, data)


def pdf(contents, extra=(), pages=1, page=b"", catalog=b"", table=True):
    """A PDF whose pages have these contents. `extra` are objects from number 10 on."""
    kids = b" ".join(b"3 0 R" for _ in range(pages))
    objects = {
        1: b"<< /Type /Catalog /Pages 2 0 R %s >>" % catalog,
        2: b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, pages),
        3: b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 5 0 R >> >> /Contents 4 0 R %s >>" % page,
        4: contents,
        5: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    } | {10 + at: body for at, body in enumerate(extra)}
    out, places = bytearray(b"%PDF-1.7\n"), {}
    for number, body in objects.items():
        places[number] = len(out)
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 1\n0000000000 65535 f \n"
    for number, place in places.items():
        out += b"%d 1\n%010d 00000 n \n" % (number, place)
    out += b"trailer << /Root 1 0 R /Size %d >>\nstartxref\n%d\n%%%%EOF\n" % (max(objects) + 1, start)
    return bytes(out) if table else bytes(out[:start]) + b"trailer << /Root 1 0 R >>\n%%EOF\n"


def flate(random):
    """The same filter, as readers take it and a search for one spelling does not."""
    return random.choice(
        [b"/Filter /FlateDecode", b"/Filter/FlateDecode", b"/Filter [/FlateDecode]", b"/F /Fl", b"/Filter /Fl\n", b"/Filter /Fl\t"]
        + [b"/Filter /Fl%c\n", b"/Filter %c\n /FlateDecode", b"/Filter /Flate#44ecode", b"/Filter /#46lateDecode", b"/Filter\x00/FlateDecode"]
    )


def bomb(random):
    return pdf(stream(flate(random), zeros(random.choice([64, 300, 900]))), table=random.random() < 0.7)


def folded_twice(random):
    depth = random.choice([2, 3, 6])
    data = zeros(random.choice([200, 700]))
    for _ in range(depth - 1):
        data = zlib.compress(data, 9)
    names = b" ".join([b"/FlateDecode"] * depth)
    return pdf(stream(b"/Filter [%s]" % names, data))


def early_end(random):
    """`endstream` in the data, which only /Length tells from the end."""
    head = stored(TEXT + b"\nendstream\nendobj\n" * random.choice([1, 1, 50]))
    packed = zeros(random.choice([300, 900]))
    # A block that is stored, then one that unfolds.
    data = head[:2] + b"\x00" + head[3:-4] + packed[2:]
    return pdf(stream(flate(random), data))


def padded(random):
    pad = random.choice([b" ", b"\n", b"%" + b"x" * 99 + b"\n", b"/A 1 ", b"/K [1 2 3] "])
    pad *= random.choice([17_000, 40_000, 400_000]) // len(pad)
    return pdf(stream(b"/Filter /FlateDecode " + pad, zeros(400), around=random.choice([b"\n", b" ", b"%x\n"])))


def filter_elsewhere(random):
    name = random.choice([b"/Filter 10 0 R", b"/Filter %c\n10 0 R", b"/F 10 0 R", b"/Filter [10 0 R]", b"/Filter 11 0 R", b"/Filter\n10\n0\nR"])
    return pdf(stream(name, zeros(400)), extra=[b"/FlateDecode", b"[10 0 R]"])


def length_elsewhere(random):
    data = zeros(300)
    length = random.choice([b"10 0 R", b"11 0 R", b"4 0 R", b"-1", b"99999999999999999999", b"0", b"1"])
    body = b"<< /Length %s /Filter /FlateDecode >>\nstream\n%s\nendstream" % (length, data)
    return pdf(body, extra=[b"%d" % len(data), b"11 0 R"])


def nested(random):
    depth = random.choice([300, 10_000, 200_000, 2_000_000])
    opened, closed = random.choice([(b"[", b"]"), (b"<</A ", b">>"), (b"[<</A", b">>]"), (b"(", b")"), (b"<<", b">>")])
    nest = opened * depth + b"1" + closed * depth
    where = random.randrange(4)
    if where == 0:
        return pdf(stream(b"", TEXT), catalog=b"/X " + nest)
    if where == 1:
        return pdf(stream(b"", TEXT), page=b"/X " + nest)
    if where == 2:
        return pdf(stream(b"", nest + b" TJ " + TEXT))
    return pdf(stream(b"/X " + nest, TEXT))


def references(random):
    """Objects that are each other, for every key that a reader follows."""
    way = random.randrange(6)
    if way == 0:
        return pdf(b"10 0 R", extra=[b"11 0 R", b"10 0 R"])
    if way == 1:
        return pdf(b"[4 0 R 4 0 R 10 0 R]", extra=[b"[4 0 R 10 0 R]"])
    if way == 2:
        count = random.choice([200, 20_000])
        return pdf(b"10 0 R", extra=[b"%d 0 R" % (11 + at) for at in range(count)] + [stream(b"", TEXT)])
    if way == 3:
        # Pages that hold each other, twice each time.
        levels = [b"<< /Type /Pages /Count 9 /Kids [%d 0 R %d 0 R] >>" % (at, at) for at in range(11, 60)]
        file = pdf(stream(b"", TEXT), extra=levels + [b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>"])
        return file.replace(b"/Kids [3 0 R] /Count 1 >>", b"/Kids [10 0 R] /Count 1>>", 1)
    if way == 4:
        file = pdf(stream(b"", TEXT))
        return file.replace(b"/Kids [3 0 R]", b"/Kids [2 0 R]")
    forms = [
        stream(b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X %d 0 R >> >>" % at, b"/X Do /X Do " * 5)
        for at in [*range(11, 40), 10]
    ]
    return pdf(stream(b"", b"/X Do"), extra=forms, page=b"/Resources << /XObject << /X 10 0 R >> >>")


def many(random):
    count = random.choice([20_000, 120_000])
    way = random.randrange(5)
    if way == 0:
        return pdf(stream(b"", TEXT), pages=count)
    if way == 1:
        return pdf(b"[%s]" % (b"10 0 R " * count), extra=[stream(b"/Filter /FlateDecode", zlib.compress(TEXT * 400, 9))])
    if way == 2:
        return pdf(stream(b"/Filter /FlateDecode", zlib.compress(random.choice([b"q ", b"BT ", b"/a BMC ", b"1 0 0 1 0 0 cm ", b"[(a)] TJ "]) * count * 20, 9)))
    if way == 3:
        return pdf(stream(b"", TEXT), extra=[stream(b"", b"x") for _ in range(count // 4)])
    return pdf(stream(b"", TEXT)) * (count // 200)


def object_streams(random):
    count = random.choice([1, 100_000, 2_000_000_000])
    data = zlib.compress(b" ".join(b"%d 0" % at for at in range(min(count, 100_000))) + b" " + b"<< >> " * 99)
    first = random.choice([0, len(data), 2_147_483_647, -1])
    body = stream(b"/Type /ObjStm /N %d /First %d /Extends 10 0 R /Filter /FlateDecode" % (count, first), data)
    rows = zlib.compress(bytes(random.randrange(256) for _ in range(4000)))
    table = b"/Type /XRef /Size %d /W [%s] /Index [0 %d] /Root 1 0 R /Prev 9 /Filter /FlateDecode"
    wide = random.choice([b"1 2 1", b"8 8 8", b"1 2000000000 1", b"0 0 0", b"-1 2 1"])
    return pdf(stream(b"", TEXT), extra=[body, stream(table % (count, wide, count), rows)], table=random.random() < 0.5)


def predictors(random):
    dictionary = b"/Filter /%s /DecodeParms << /Predictor %d /Columns %d /Colors %d /BitsPerComponent %d /EarlyChange %d >>" % (
        random.choice([b"FlateDecode", b"LZWDecode"]),
        random.choice([2, 10, 15, 99]),
        random.choice([0, 1, 2_147_483_647, 4_294_967_295, -5]),
        random.choice([0, 1, 2_000_000, -1]),
        random.choice([0, 1, 7, 16, 4096]),
        random.randrange(2),
    )
    return pdf(stream(dictionary, zeros(random.choice([1, 60]))))


def other_filters(random):
    names = [b"ASCIIHexDecode", b"ASCII85Decode", b"RunLengthDecode", b"LZWDecode", b"DCTDecode", b"JPXDecode", b"JBIG2Decode", b"CCITTFaxDecode", b"Crypt", b"Nothing"]
    chain = b" ".join(b"/" + random.choice(names) for _ in range(random.choice([1, 2, 40, 4000])))
    data = random.choice([b"\x81a" * 900_000, b"z" * 3_000_000, b"4" * 2_000_000, random.randbytes(50_000), b"\x80" * 99])
    parms = random.choice([b"", b"/DecodeParms << /K -1 /Columns 2000000000 /Rows 2000000000 >>"])
    return pdf(stream(b"/Filter [%s] %s" % (chain, parms), data))


def fonts(random):
    """A map of characters that names a range of billions, and widths without end."""
    cmap = random.choice(
        [
            b"1 beginbfrange <00000000> <FFFFFFFF> <0041> endbfrange",
            b"begincodespacerange <00> <FF> endcodespacerange " + b"1 beginbfrange <00> <FF> <0041> endbfrange " * 30_000,
            b"1 beginbfchar <41> <" + b"0041" * 200_000 + b"> endbfchar",
            b"/X usecmap " * 9000,
        ]
    )
    wide = b"/W [0 %d 5]" % random.choice([99, 2_000_000_000])
    font = b"<< /Type /Font /Subtype /Type0 /BaseFont /X /Encoding /Identity-H /ToUnicode 11 0 R /DescendantFonts [12 0 R 10 0 R] >>"
    child = b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /X %s /CIDSystemInfo << /Registry (A) /Ordering (I) /Supplement 0 >> >>" % wide
    page = b"/Resources << /Font << /F1 10 0 R >> >>"
    return pdf(stream(b"", b"BT /F1 9 Tf (%s) Tj ET" % (b"AB" * 40_000)), extra=[font, stream(b"", cmap), child], page=page)


def images(random):
    width = random.choice([1, 60_000, 2_000_000_000])
    mask = random.choice([b"", b"/SMask 10 0 R", b"/Mask 10 0 R", b"/SMask 11 0 R"])
    name = random.choice([b"FlateDecode", b"DCTDecode", b"JPXDecode", b"JBIG2Decode", b"CCITTFaxDecode"])
    image = b"/Type /XObject /Subtype /Image /Width %d /Height %d /BitsPerComponent 8 /ColorSpace /DeviceRGB /Filter /%s %s"
    bodies = [stream(image % (width, width, name, mask), zeros(60)) for _ in range(2)]
    return pdf(stream(b"", b"/X Do " * random.choice([1, 5000])), extra=bodies, page=b"/Resources << /XObject << /X 10 0 R >> >>")


def encrypted(random):
    crypt = b"<< /Filter /Standard /V %d /R %d /Length %d /P -1 /O (%s) /U (%s) /CF << /StdCF << /CFM /AESV3 >> >> /StmF /StdCF /StrF /StdCF >>" % (
        random.choice([1, 2, 4, 5, 99]), random.choice([2, 3, 4, 6, 99]), random.choice([0, 40, 128, 256, 2_000_000_000]), b"x" * random.choice([1, 32, 48]), b"y" * 32,
    )
    file = pdf(stream(b"/Filter /FlateDecode", random.randbytes(400)), extra=[crypt])
    return file.replace(b"trailer << /Root 1 0 R", b"trailer << /ID [(a)(b)] /Encrypt 10 0 R /Root 1 0 R")


def tables(random):
    """Tables of objects that name each other as the one before, or places that are none."""
    file = pdf(stream(b"", TEXT))
    start = file.index(b"xref")
    way = random.randrange(4)
    if way == 0:
        return file.replace(b"/Size", b"/Prev %d /Size" % start)
    if way == 1:
        return file.replace(b"xref\n0 1\n", b"xref\n0 4294967295\n")
    if way == 2:
        return file.replace(b"startxref\n%d" % start, b"startxref\n%d" % random.choice([0, 1, 5, 99_999_999_999]))
    return file[:start] + b"trailer << /Prev 0 /XRefStm 9 /Root 1 0 R >>\n" * 40_000 + file[start:]


def damaged(random):
    good = pdf(stream(b"/Filter /FlateDecode", zlib.compress(TEXT * 40)), extra=[stream(b"", TEXT)] * 3)
    return random.choice([cut, spoiled])(random, good)


def good(random):
    return pdf(stream(b"", TEXT.replace(b"seven", b"%d" % random.randrange(99))))


PATTERNS = patterns(
    ("PDF, a stream that unfolds", "a.pdf", bomb),
    ("PDF, streams folded twice", "a.pdf", folded_twice),
    ("PDF, endstream within the data", "a.pdf", early_end),
    ("PDF, a padded dictionary", "a.pdf", padded),
    ("PDF, the filter elsewhere", "a.pdf", filter_elsewhere),
    ("PDF, the length elsewhere", "a.pdf", length_elsewhere),
    ("PDF, nested objects", "a.pdf", nested),
    ("PDF, references in circles", "a.pdf", references),
    ("PDF, very many of one", "a.pdf", many),
    ("PDF, object streams", "a.pdf", object_streams),
    ("PDF, predictors", "a.pdf", predictors),
    ("PDF, chains of filters", "a.pdf", other_filters),
    ("PDF, fonts", "a.pdf", fonts),
    ("PDF, images", "a.pdf", images),
    ("PDF, encrypted", "a.pdf", encrypted),
    ("PDF, tables", "a.pdf", tables),
    ("PDF, damaged", "a.pdf", damaged),
    ("PDF, a good one", "a.pdf", good),
)
