"""Drawings: references that multiply, masks of masks, and spellings of them that a count may miss."""
import gzip

from .pattern import cut, patterns, spoiled

HEAD = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="%s" height="%s" viewBox="0 0 80 60">%s</svg>'


def svg(inside, width="80", height="60"):
    return (HEAD % (width, height, inside)).encode()


def function(random, name):
    """`url(#name)`, as readers take it."""
    form = random.choice(["url(#%s)", "url(&#9;#%s)", "url( #%s )", "url(&#10;#%s)", "url('#%s')", 'url(&quot;#%s&quot;)', "url(&#13;#%s&#9;)", "URL(#%s)", "url(#%s) none", "url(&#x9;&#35;%s)"])
    return form % name


def link(random, name):
    form = random.choice(['href="#%s"', 'xlink:href="#%s"', 'href=" #%s"', 'href="#%s "', 'href="&#9;#%s"', 'href="&#35;%s"', "href='#%s'", 'href="#%s" xlink:href="#none"'])
    return form % name


def chain(random):
    """Each use is several of the one before."""
    depth, wide = random.choice([(12, 2), (12, 10), (40, 2), (60, 2), (400, 1), (20_000, 1)])
    tag = random.choice(["use", "use", "use", "tref", "image"])
    uses = lambda at: "".join(f"<{tag} {link(random, f'g{at}')}/>" for _ in range(wide))
    levels = "".join(f'<g id="g{at}">{uses(at - 1)}</g>' for at in range(1, depth))
    return svg(f'<defs><g id="g0"><rect width="9" height="9"/></g>{levels}</defs><use href="#g{depth - 1}"/>')


def masks(random):
    kind, attribute = random.choice([("mask", "mask"), ("clipPath", "clip-path"), ("pattern", "fill"), ("filter", "filter"), ("marker", "marker-start")])
    depth = random.choice([14, 40, 80])
    shape = '<rect width="60" height="50"/>' if kind != "filter" else '<feFlood flood-color="red"/>'
    parts = []
    for at in range(depth):
        attributes = f'{attribute}="{function(random, f"m{at + 1}")}"' if random.random() < 0.8 else f'style="{attribute}:{function(random, f"m{at + 1}")}"'
        inside = f"<g {attributes}>{shape}</g>" * 2 if kind != "filter" else shape
        extra = ' width="5" height="5"' if kind == "pattern" else ""
        parts.append(f'<{kind} id="m{at}"{extra}>{inside}</{kind}>')
    return svg(f'{"".join(parts)}<{kind} id="m{depth}">{shape}</{kind}><rect width="60" height="50" {attribute}="url(#m0)"/>')


def circles(random):
    kind, attribute = random.choice([("mask", "mask"), ("clipPath", "clip-path"), ("pattern", "fill"), ("linearGradient", "href"), ("g", "use"), ("symbol", "use")])
    if attribute == "use":
        return svg(f'<{kind} id="a"><use {link(random, "b")}/></{kind}><{kind} id="b"><use {link(random, "a")}/></{kind}><use href="#a"/>')
    if attribute == "href":
        return svg(f'<{kind} id="a" {link(random, "b")}/><{kind} id="b" {link(random, "a")}/><rect width="9" height="9" fill="url(#a)"/>')
    return svg(f'<{kind} id="a"><rect width="9" height="9" {attribute}="{function(random, "a")}"/></{kind}><rect width="9" height="9" {attribute}="url(#a)"/>')


def filters(random):
    one = random.choice(
        [
            '<feGaussianBlur stdDeviation="1e9"/>',
            '<feMorphology operator="dilate" radius="100000"/>',
            '<feTurbulence baseFrequency="0.0001" numOctaves="2000000000"/>',
            '<feConvolveMatrix order="100" kernelMatrix="' + "1 " * 10_000 + '"/>',
            '<feTile/><feOffset dx="1e30"/>',
            '<feImage href="#f"/>',
            '<feDropShadow stdDeviation="500 500"/>',
        ]
    )
    area = random.choice(["", ' x="-1e6" y="-1e6" width="1e7" height="1e7"', ' filterUnits="userSpaceOnUse" width="1e30" height="1e30"'])
    return svg(f'<filter id="f"{area}>{one * random.choice([1, 90, 2000])}</filter>' + '<rect width="70" height="50" filter="url(#f)"/>' * random.choice([1, 400]), random.choice(["80", "4000"]), "4000")


def sizes(random):
    size = random.choice(["1e38", "4294967295", "-5", "0", "NaN", "1e-40", "100000", "1e308in", "99999999999999999999%", ""])
    other = random.choice([size, "1", "1e-30"])
    body = random.choice(['<rect width="1e38" height="1e38"/>', '<path d="M0 0L1e38 1e38"/>', '<rect width="1" height="1" transform="scale(1e38)"/>', '<circle r="1e30" stroke-width="1e30" stroke="red"/>'])
    return svg(body, size, other)


def shapes(random):
    way = random.randrange(6)
    if way == 0:
        return svg(f'<path d="M0 0{"L9 9 0 9" * 300_000}" stroke="red"/>')
    if way == 1:
        return svg('<path d="M0 0H1e7" stroke="red" stroke-dasharray="%s"/>' % random.choice(["1e-9", "0.0001 0.0001", "1 " * 200_000]))
    if way == 2:
        return svg('<rect width="9" height="9"/>' * 200_000)
    if way == 3:
        return svg(f'<path d="{"A1e9 1e-9 5 1 1 9 9 C0 0 1e9 1e9 0 0" * 20_000}" stroke-width="1e9" stroke="#123"/>')
    if way == 4:
        return svg(f'<text x="5" y="9" font-size="1e9">{"a" * 400_000}</text>')
    stops = "".join(f'<stop offset="{at / 90_000}"/>' for at in range(90_000))
    return svg(f'<linearGradient id="l">{stops}</linearGradient><rect width="70" height="50" fill="url(#l)"/>')


def nested(random):
    depth = random.choice([500, 20_000, 300_000])
    tag = random.choice(["g", "svg", "a", "text", "tspan", "switch", "defs", "g opacity='.5'", "symbol", "style"])
    return svg(f"<{tag}>" * depth + '<rect width="9" height="9"/>' + f"</{tag.split()[0]}>" * depth)


def styles(random):
    rule = random.choice([".a{fill:red}", "g g g g g g rect{fill:url(#m)}", "*{mask:url(&#9;#m)}", "a:not(b)>c~d+e{}", "@import url(file:///dev/zero);", "{" * 900, "/*" * 900, "rect{font-family:" + "x," * 900 + "}"])
    body = '<g class="a">' * 60 + '<rect width="9" height="9"/>' * random.choice([1, 3000]) + "</g>" * 60
    return svg(f"<style>{rule * random.choice([1, 900, 20_000 // (len(rule) // 40 + 1)])}</style>{body}")


def definitions(random):
    head = random.choice(
        [
            '<!DOCTYPE svg [<!ENTITY a "&b;&b;"><!ENTITY b "&c;&c;"><!ENTITY c "&a;">]>',
            '<!DOCTYPE svg [' + '<!ENTITY l0 "lol">' + "".join(f'<!ENTITY l{at} "{f"&l{at - 1};" * 10}">' for at in range(1, 12)) + "]>",
            '<!DOCTYPE svg SYSTEM "file:///dev/zero">',
            '<?xml version="1.0" encoding="UTF-32"?>',
            '<?xml-stylesheet href="file:///dev/zero"?>',
        ]
    )
    return head.encode() + svg("<text>&l11;&a;</text>" + '<image href="file:///dev/zero" width="9" height="9"/>')


def images(random):
    href = random.choice(["file:///dev/zero", "http://127.0.0.1:9/x", "data:image/svg+xml;base64,PHN2Zy8+", "data:image/png;base64," + "A" * 900_000, "data:image/svg+xml," + "%3Cg%3E" * 90_000, "#a", "/dev/zero"])
    return svg(f'<image id="a" href="{href}" width="9" height="9"/>' * random.choice([1, 900]))


def packed(random):
    """SVGZ, which is short for its length."""
    return gzip.compress(svg(" " * random.choice([1_000_000, 150_000_000])), 1)


def encoded(random):
    text = svg(f'<rect width="9" height="9" mask="{function(random, "m")}"/><mask id="m"><rect width="9" height="9"/></mask>').decode()
    return random.choice([text.encode("utf-16"), text.encode("utf-16-be"), b"\xef\xbb\xbf" + text.encode(), b" " * 90_000 + text.encode(), b"\x00" + text.encode()])


def damaged(random):
    return random.choice([cut, spoiled])(random, masks(random))


PATTERNS = patterns(
    ("SVG, uses of uses", "a.svg", chain),
    ("SVG, masks of masks", "a.svg", masks),
    ("SVG, circles", "a.svg", circles),
    ("SVG, filters", "a.svg", filters),
    ("SVG, sizes", "a.svg", sizes),
    ("SVG, shapes without end", "a.svg", shapes),
    ("SVG, nested", "a.svg", nested),
    ("SVG, styles", "a.svg", styles),
    ("SVG, definitions", "a.svg", definitions),
    ("SVG, images in it", "a.svg", images),
    ("SVG, packed", "a.svgz", packed),
    ("SVG, encodings", "a.svg", encoded),
    ("SVG, damaged", "a.svg", damaged),
)
