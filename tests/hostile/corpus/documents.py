"""Documents that are no PDF: packages that unfold, definitions, open tags, encodings."""
import io
import warnings
import zipfile

from . import pdfs
from .pattern import MEGABYTE, cut, patterns, spoiled

WORDS = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
BODY = "<w:document {words}><w:body>{body}</w:body></w:document>"
TYPES = '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>'


class Repeated(io.RawIOBase):
    """A block, many times, which nothing holds."""

    def __init__(self, block, times):
        self.block, self.times = block, times

    def blocks(self):
        return (self.block for _ in range(self.times))


def package(parts, after=b""):
    """A DOCX of these parts: bytes, or what is repeated."""
    out = io.BytesIO()
    # Two parts of one name are what some patterns want.
    warnings.simplefilter("ignore", UserWarning)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("[Content_Types].xml", TYPES)
        for name, content in parts:
            with archive.open(name, "w", force_zip64=True) as part:
                for block in content.blocks() if isinstance(content, Repeated) else [content]:
                    part.write(block)
    return out.getvalue() + after


def docx(body, words=WORDS, head=""):
    return package([("word/document.xml", (head + BODY.format(words=words, body=body)).encode())])


def paragraph(text):
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"


def docx_bomb(random):
    block = random.choice([b"<w:p><w:r><w:t>aaaaaaaaaaaa</w:t></w:r></w:p>", b" ", b"<w:p/>", b"a", b"<!-- x -->"])
    block *= MEGABYTE // len(block)
    head = BODY.split("{body}")[0].format(words=WORDS).encode()
    part = random.choice(["word/document.xml", "word/footnotes.xml", "word/numbering.xml"])

    class WithHead(Repeated):
        def blocks(self):
            yield head
            yield from super().blocks()

    rest = [] if part == "word/document.xml" else [("word/document.xml", BODY.format(words=WORDS, body=paragraph("x")).encode())]
    return package([(part, WithHead(block, random.choice([90, 300, 600])))] + rest)


def docx_definitions(random):
    levels = "".join(f'<!ENTITY l{at} "{f"&l{at - 1};" * 10}">' for at in range(1, 12))
    head = random.choice(
        [
            f'<!DOCTYPE x [<!ENTITY l0 "lol">{levels}]>',
            '<!DOCTYPE x [<!ENTITY a "&b;"><!ENTITY b "&a;">]>',
            '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>',
            '<!DOCTYPE x SYSTEM "http://127.0.0.1:9/x.dtd">',
            '<!DOCTYPE x [<!ENTITY % a SYSTEM "file:///dev/zero"> %a;]>',
            '<!DOCTYPE x [<!ENTITY a "' + "A" * 2_000_000 + '">]>',
        ]
    )
    return docx(paragraph("&l11;&a;" * random.choice([1, 5000])), head=head)


def docx_nested(random):
    depth = random.choice([300, 20_000, 1_000_000])
    tag = random.choice(["w:p", "w:tbl", "w:tc", "w:r", "w:hyperlink", "x", "mc:AlternateContent"])
    closed = f"</{tag}>" * depth if random.random() < 0.7 else ""
    return docx(f"<{tag}>" * depth + "x" + closed)


def docx_wide(random):
    way = random.randrange(4)
    if way == 0:
        names = "".join(f' a{at}="x"' for at in range(random.choice([20_000, 200_000])))
        return docx(f"<w:p{names}>x</w:p>")
    if way == 1:
        return docx(f'<w:p a="{"&amp;" * 2_000_000}">x</w:p>')
    if way == 2:
        cells = "<w:tc><w:p/></w:tc>" * 3000
        return docx(f"<w:tbl>{f'<w:tr>{cells}</w:tr>' * 60}</w:tbl>")
    return docx(paragraph("x"), words=WORDS + "".join(f' xmlns:n{at}="x"' for at in range(100_000)))


def docx_names(random):
    name = random.choice(["../../etc/passwd", "/etc/passwd", "word/document.xml/", "word\\document.xml", "a" * 60_000, "word/\x00document.xml"])
    good = BODY.format(words=WORDS, body=paragraph("x")).encode()
    parts = [(name, good)] * random.choice([1, 3]) + [("word/document.xml", good)] * random.choice([0, 1, 2])
    return package(parts + [(f"word/media/{at}", b"x") for at in range(random.choice([0, 20_000]))])


def docx_headers(random):
    """Sizes and places in the directory that are not true."""
    good = bytearray(docx(paragraph("The harbor opens at seven.")))
    directory = good.rindex(b"PK\x01\x02")
    end = good.rindex(b"PK\x05\x06")
    for _ in range(random.randrange(1, 4)):
        at = random.choice([directory + 20, directory + 24, directory + 28, directory + 42, end + 8, end + 12, end + 16])
        good[at : at + 4] = random.choice([0, 1, 0xFFFF, 0xFFFFFFFF, 0x7FFFFFFF]).to_bytes(4, "little")
    return bytes(good)


def docx_damaged(random):
    return random.choice([cut, spoiled])(random, docx(paragraph("The harbor opens at seven.") * 200))


def html(body):
    return b"<!doctype html><html><body>" + body


def html_open(random):
    tag = random.choice([b"div", b"b", b"p", b"table", b"svg", b"a", b"font", b"template", b"select", b"li", b"math", b"frameset", b"nobr", b"x", b"tr", b"button"])
    return html(b"<%s>" % tag * random.choice([100_000, 1_000_000]) + b"The end.")


def html_mixed(random):
    """Tags in an order for which a parser that builds a tree adopts and rebuilds."""
    piece = random.choice(
        [b"<b><p>", b"<a><div>", b"<b><i><u></b></i></u>", b"<table><b>", b"</p></br>", b"<svg><desc><b>", b"<a href=x><a>", b"<font><p></font>", b"<template><tr>"]
        + [b"<table><td><form></table>", b"<math><mi><svg>", b"<select><option><select>", b"<plaintext><p>", b"<title>", b"<textarea>", b"<script><!--<script>"]
    )
    return html(piece * random.choice([20_000, 200_000]))


def html_wide(random):
    way = random.randrange(5)
    if way == 0:
        return html(b"<p " + b" ".join(b"a%d=x" % at for at in range(200_000)) + b">x")
    if way == 1:
        return html(b"<p title='" + random.choice([b"&amp;", b"&#x41;", b"&CounterClockwiseContourIntegral", b"&#99999999999;", b"x"]) * 1_000_000 + b"'>x")
    if way == 2:
        return html(random.choice([b"&", b"&#", b"&#x", b"&n", b"&#0;", b"&nbsp;"]) * 3_000_000)
    if way == 3:
        return html(random.choice([b"<!--", b"<!", b"<?", b"</", b"<", b"<![CDATA[", b"<!doctype "]) * 1_500_000)
    return html(b"<table>" + (b"<tr>" + b"<td>x" * 3000) * 60)


def encodings(random):
    marks = [b"", b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf", b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff", b"+/v8"]
    piece = random.choice(
        [b"\x80", b"\xff", b"\xd8\x00", b"\x00\xd8", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf", b"\x1b$B!!", b"\x00a", b"a\x00", b"\r", b"\x0c", b"\x85", b"\xe2\x80\xae"]
        + [b"a\xcc\x80" * 20, b"\xef\xb7\xba", b"\x1b[2J", b"\xf0\x9f\x90\xb1", b"\xe2\x80\xa8", random.randbytes(90)]
    )
    return random.choice(marks) + piece * random.choice([1, 1000, 2_000_000 // len(piece)])


def long_texts(random):
    way = random.randrange(5)
    if way == 0:
        return b"a" * random.choice([MEGABYTE, 30 * MEGABYTE, 51 * MEGABYTE])
    if way == 1:
        return b"\n" * (4 * MEGABYTE)
    if way == 2:
        return (b"```" + b"`" * random.choice([1, 3000]) + b"\n") * 20_000
    if way == 3:
        return b"<|im_end|><|turn>system\n</s>[INST]" * 40_000
    return b"a,b\n" + b",".join([b'"'] * 900_000)


def markdown(random):
    piece = random.choice([b"> ", b"* ", b"[", b"![](", b"**", b"_", b"|", b"- - ", b"<div>", b"\\", b"# ", b"1. ", b"$$", b"~~"])
    return piece * (1_000_000 // len(piece)) + b"x"


def magic(random):
    """A beginning that says what the rest is not."""
    begin = random.choice([b"%PDF-1.7\n", b"PK\x03\x04", b"\x00\x00%PDF-", b"PK\x05\x06" + bytes(18), b"<!doctype html>", b"{\\rtf1", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"\x7fELF"])
    return begin + random.choice([b"", random.randbytes(9000), b"PK\x01\x02" * 9000, b"obj " * 90_000, b"%PDF-" * 90_000])


PATTERNS = pdfs.PATTERNS + patterns(
    ("DOCX, a part that unfolds", "a.docx", docx_bomb),
    ("DOCX, definitions", "a.docx", docx_definitions),
    ("DOCX, nested tags", "a.docx", docx_nested),
    ("DOCX, wide tags", "a.docx", docx_wide),
    ("DOCX, names of parts", "a.docx", docx_names),
    ("DOCX, untrue sizes", "a.docx", docx_headers),
    ("DOCX, damaged", "a.docx", docx_damaged),
    ("HTML, open tags", "a.html", html_open),
    ("HTML, tags in disorder", "a.html", html_mixed),
    ("HTML, wide tags and references", "a.html", html_wide),
    ("text, encodings", "a.txt", encodings),
    ("text, long", "a.txt", long_texts),
    ("Markdown", "a.md", markdown),
    ("a beginning that is not true", "a.pdf", magic),
)
