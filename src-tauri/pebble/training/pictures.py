"""Pictures and questions about them, all made here: what Pebble's tower learns from and what its picture exam asks.

usage: pictures.py OUT [SEED [COUNT]]      writes OUT/exam.json and OUT/*.png, COUNT questions spread over all skills

Needs numpy and Pillow only. A scene is a list of things (shapes or letters) on a plain ground; everything is sampled from one atlas of
96 x 96 coverage maps, so that the trainer draws the same pictures on a GPU.
"""
from __future__ import annotations

import json
import random
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

KINDS = ["circle", "square", "triangle", "star", "moon", "heart", "diamond"]
COLORS = {"red": (220, 30, 35), "blue": (30, 70, 215), "green": (25, 145, 55), "yellow": (245, 210, 25), "purple": (125, 40, 160),
          "orange": (245, 130, 15), "pink": (250, 140, 185), "black": (15, 15, 15)}
WORDS = """apple bread cat chair city cloud comet cow dog door drum eagle frog goat grape horse juice leaf lemon lion map melon
mouse music ocean onion paper piano pig pizza river rose sheep sky snake snow stone storm sugar table tiger tower train tree water
whale wheel zebra""".split()
LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"
FONTS = 3
SIDE = 96
MOST = 6
#: Sizes of exam pictures, in pixels; between them they give four grids.
SIZES = [(256, 256), (384, 384), (600, 600), (400, 300), (300, 400), (480, 320)]
SKILLS = ["color", "shape", "see", "count", "place", "number", "word", "both", "same", "changed", "more"]


def plural(kind):
    return kind + "s"


# ------------------------------------------------------------------ the atlas
def shape_mask(kind, n):
    """Coverage (0 or 1) of a shape in the square -1..1, y down, sampled n x n."""
    at = (np.arange(n) + .5) / n * 2 - 1
    x, y = np.meshgrid(at, at)
    if kind == "circle":
        return x * x + y * y < .88 ** 2
    if kind == "square":
        return np.maximum(abs(x), abs(y)) < .76
    if kind == "diamond":
        return abs(x) / .66 + abs(y) / .95 < 1
    if kind == "triangle":
        return (y < .72) & (y > -.9 + abs(x) * 1.75)
    if kind == "moon":
        return (x * x + y * y < .9 ** 2) & ((x - .42) ** 2 + (y + .05) ** 2 > .72 ** 2)
    if kind == "heart":
        u, v = x * 1.25, -y * 1.25 + .12
        return (u * u + v * v - 1) ** 3 - u * u * v ** 3 < 0
    # A star of five points: inside at least four of its five edge lines.
    a = np.pi / 2 + np.arange(5) * 2 * np.pi / 5
    inside = sum((x * np.cos(t) + y * np.sin(t) < .95 * np.cos(2 * np.pi / 5)).astype(int) for t in a)
    return inside >= 4


def atlas():
    """Coverage maps [kinds + fonts * letters, 96, 96], 0..1."""
    maps = [shape_mask(k, SIDE * 4).reshape(SIDE, 4, SIDE, 4).mean((1, 3)) for k in KINDS]
    for weight in range(FONTS):
        font = ImageFont.load_default(size=SIDE * 4 * .74)
        for c in LETTERS:
            page = Image.new("L", (SIDE * 4, SIDE * 4))
            # One baseline for all, centred across: letters keep their descenders.
            ImageDraw.Draw(page).text((SIDE * 2, SIDE * 2.95), c, fill=255, font=font, anchor="ms", stroke_width=weight * 6)
            maps.append(np.asarray(page, np.float32).reshape(SIDE, 4, SIDE, 4).mean((1, 3)) / 255)
    return np.stack(maps).astype(np.float32)


def letter_index(c, weight):
    return len(KINDS) + weight * len(LETTERS) + LETTERS.index(c)


# ------------------------------------------------------------------ scenes
@dataclass
class Scene:
    """The objects of an image; `things` rows are (map, r, g, b, x, y, radius, angle), pixels, radians."""
    width: int
    height: int
    things: list = field(default_factory=list)
    ground: tuple = (1., 1., 1.)
    #: (kind, color) of each shape, in the order of `things`.
    shapes: list = field(default_factory=list)
    text: str = ""
    #: "across" or "down" if two shapes lie beside or above each other, first the left or upper one.
    axis: str = ""


def tint(r, name):
    return tuple(min(1., max(0., (c + r.uniform(-18, 18)) / 255)) for c in COLORS[name])


def ground(r):
    if r.random() < .5:
        return (1., 1., 1.)
    base = r.uniform(.86, 1.)
    return tuple(min(1., base + r.uniform(-.04, .04)) for _ in range(3))


def put(r, scene, kind, color, x, y, radius):
    turn = r.uniform(-.15, .15)
    scene.things.append((KINDS.index(kind), *tint(r, color), x, y, radius, turn))
    scene.shapes.append((kind, color))


def scatter(r, scene, what, low, high):
    """Places shapes at random without touching."""
    side = min(scene.width, scene.height)
    while True:
        placed = []
        for _ in what:
            for _ in range(60):
                rad = r.uniform(low, high) * side
                x, y = r.uniform(rad, scene.width - rad), r.uniform(rad, scene.height - rad)
                if all((x - a) ** 2 + (y - b) ** 2 > (rad + c) ** 2 * 1.05 for a, b, c in placed):
                    placed.append((x, y, rad))
                    break
        if len(placed) == len(what):
            break
        low, high = low * .95, high * .95
    for (kind, color), (x, y, rad) in zip(what, placed):
        put(r, scene, kind, color, x, y, rad)
    return scene


def shapes_scene(r, w, h, n=None):
    n = n or r.choice([1, 1, 2, 3, 4])
    kinds, colors = r.sample(KINDS, n), r.sample(list(COLORS), n)
    return scatter(r, Scene(w, h, ground=ground(r)), list(zip(kinds, colors)), .16, .42 if n == 1 else .26)


def count_scene(r, w, h, n=None, kind=None):
    n = n or r.randint(1, 6)
    a = kind or r.choice(KINDS)
    b = r.choice([k for k in KINDS if k != a])
    m = n if r.random() < .5 else r.randint(1, n)
    ca, cb = r.choice(list(COLORS)), r.choice(list(COLORS))
    mixed = r.random() < .3
    what = [(a if i < m else b, r.choice(list(COLORS)) if mixed else ca if i < m else cb) for i in range(n)]
    r.shuffle(what)
    return scatter(r, Scene(w, h, ground=ground(r)), what, .11, .19)


def place_scene(r, w, h):
    s = Scene(w, h, ground=ground(r), axis=r.choice(["across", "down"]))
    side = min(w, h)
    kinds, colors = r.sample(KINDS, 2), r.sample(list(COLORS), 2)
    for i in range(2):
        rad = r.uniform(.15, .23) * side
        along, other = ((i + .5) / 2 + r.uniform(-.03, .03)), r.uniform(.42, .58)
        x, y = (along, other) if s.axis == "across" else (other, along)
        put(r, s, kinds[i], colors[i], min(max(x * w, rad), w - rad), min(max(y * h, rad), h - rad), rad)
    return s


def text_scene(r, w, h, text):
    s = Scene(w, h, ground=ground(r), text=text)
    step = .48 if text[0].isdigit() else .5
    widest = w * .94 / (len(text) * step + .3)
    size = r.uniform(.75, 1) * min(widest, h * .55)
    long = size * step * len(text)
    x0, y = r.uniform(0, w - long) if w > long else (w - long) / 2, r.uniform(size * .5, h - size * .5)
    weight, turn = r.randrange(FONTS), 0.
    color = tint(r, r.choice([c for c in COLORS if c not in ("yellow", "pink")]))
    for i, c in enumerate(text):
        s.things.append((letter_index(c, weight), *color, x0 + size * step * (i + .5), y, size / 2, turn))
    return s


def number(r):
    return str(r.randint(0, 10 ** r.randint(1, 4) - 1))


# ------------------------------------------------------------------ questions
def a(shape):
    kind, color = shape
    return f"{'an' if color[0] in 'aeiou' else 'a'} {color} {kind}"


def cap(s):
    return s[0].upper() + s[1:]


def how_many(n, kind):
    return f"The picture has **{n}** {kind if n == 1 else plural(kind)}."


SIDES = {"across": ["left", "right"], "down": ["above", "below"]}
ENDS = {"across": ["on the left", "on the right"], "down": ["at the top", "at the bottom"]}


def scenes_for(r, skill, w, h):
    """The picture or the two pictures that a question of this skill is about."""
    if skill in ("color", "shape"):
        return [shapes_scene(r, w, h)]
    if skill == "see":
        return [shapes_scene(r, w, h, 1)]
    if skill == "count":
        return [count_scene(r, w, h)]
    if skill == "place":
        return [place_scene(r, w, h)]
    if skill in ("number", "word"):
        return [text_scene(r, w, h, number(r) if skill == "number" else r.choice(WORDS))]
    if skill == "more":
        kind = r.choice(KINDS)
        return [scatter(r, Scene(w, h, ground=ground(r)), [(kind, r.choice(list(COLORS)))] * n, .11, .19) for n in r.sample(range(1, 7), 2)]
    kind, color = r.choice(KINDS), r.choice(list(COLORS))
    changed = r.choice([(), (), (0,), (1,), (0,), (1,), (0, 1)] if skill == "same" else [(), (0,), (1,)] if skill == "changed" else [(0,), (1,), (0, 1)])
    other = (r.choice([k for k in KINDS if k != kind]) if 0 in changed else kind, r.choice([c for c in COLORS if c != color]) if 1 in changed else color)
    return [scatter(r, Scene(w, h, ground=ground(r)), [x], .2, .42) for x in ((kind, color), other)]


def question(r, skill, scenes):
    """(question, answer) of a skill about the pictures."""
    p, s = r.choice, scenes[0]
    if skill == "color":
        kind, color = p(s.shapes)
        return p([f"What color is the {kind}?", f"What is the color of the {kind}?", f"Which color does the {kind} have?"]), f"The color of the {kind} is **{color}**."
    if skill == "shape":
        kind, color = p(s.shapes)
        return p([f"Which shape is {color}?", f"What shape is {color}?", f"What is the {color} shape?"]), f"The {color} shape is a **{kind}**."
    if skill == "see":
        return p(["What is in the picture?", "What do you see?", "What is this?", "Describe the picture."]), f"{cap(a(s.shapes[0]))}."
    if skill == "count":
        kinds = sorted({k for k, _ in s.shapes})
        k = p(kinds + ["shape"])
        n = len(s.shapes) if k == "shape" else sum(x == k for x, _ in s.shapes)
        return p([f"How many {plural(k)} are there?", f"How many {plural(k)} are in the picture?", f"Count the {plural(k)}."]), how_many(n, k)
    if skill == "place":
        i = r.randrange(2)
        (one, _), (other, _) = s.shapes[i], s.shapes[1 - i]
        x, y = SIDES[s.axis]
        of = " of" if s.axis == "across" else ""
        if r.random() < .25:
            return f"What is {ENDS[s.axis][i]}?", f"{cap(a(s.shapes[i]))}."
        answer = f"The {one} is **{SIDES[s.axis][i]}**{of} the {other}."
        return p([f"Where is the {one}?", f"Is the {one} {x} or {y}{of} the {other}?", f"What is {SIDES[s.axis][i]}{of} the {other}?"]), answer
    if skill == "number":
        return p(["What number is in the picture?", "Which number do you see?", "Read the number.", "What number is this?"]), f"The number is **{s.text}**."
    if skill == "word":
        return p(["What word is in the picture?", "Which word do you see?", "Read the word.", "What word is this?"]), f"The word is **{s.text}**."
    if skill == "more":
        kind, n, m = s.shapes[0][0], *(len(x.shapes) for x in scenes)
        return (p([f"Which picture has more {plural(kind)}?", f"Where are more {plural(kind)}?"]),
                f"The first has {n}, the second has {m}: the **{'first' if n > m else 'second'}**.")
    one, two = (x.shapes[0] for x in scenes)
    both = f"The first shows {a(one)}, the second {a(two)}."
    if skill == "both":
        return p(["What do the pictures show?", "Describe both pictures.", "What is in the two pictures?"]), both
    if skill == "same":
        return p(["Are the pictures the same?", "Do both pictures show the same?"]), f"Yes, both show {a(one)}." if one == two else f"No, {both[0].lower()}{both[1:]}"
    change = [w for w, x, y in zip(("shape", "color"), one, two) if x != y]
    k = 0 if change == ["shape"] else 1
    answer = f"The {change[0]} changed from {one[k]} to **{two[k]}**." if change else "Nothing changed."
    return p(["What changed?", "What is different?", "What is the difference?"]), answer


# ------------------------------------------------------------------ drawing
def draw(scene, maps):
    """The picture as uint8 [height, width, 3]: each map turned, scaled and sampled linearly, laid over the ground."""
    out = np.broadcast_to(np.asarray(scene.ground, np.float32), (scene.height, scene.width, 3)).copy()
    for m, r, g, b, x, y, rad, turn in scene.things:
        x0, x1 = max(0, int(x - rad * 1.5)), min(scene.width, int(x + rad * 1.5) + 1)
        y0, y1 = max(0, int(y - rad * 1.5)), min(scene.height, int(y + rad * 1.5) + 1)
        px, py = np.meshgrid(np.arange(x0, x1) + .5 - x, np.arange(y0, y1) + .5 - y)
        u, v = (px * np.cos(turn) + py * np.sin(turn)) / rad, (py * np.cos(turn) - px * np.sin(turn)) / rad
        cover = sample(maps[m], u, v)[..., None]
        out[y0:y1, x0:x1] += cover * (np.asarray((r, g, b), np.float32) - out[y0:y1, x0:x1])
    return np.rint(out * 255).clip(0, 255).astype(np.uint8)


def sample(page, u, v):
    """Linear samples of a map at -1..1, nothing beyond it."""
    u, v = (u + 1) * SIDE / 2 - .5, (v + 1) * SIDE / 2 - .5
    page = np.pad(page, 1)
    u, v = (np.clip(t, -1, SIDE) + 1 for t in (u, v))
    i, j = np.minimum(v.astype(int), SIDE), np.minimum(u.astype(int), SIDE)
    f, e = v - i, u - j
    return (page[i, j] * (1 - e) + page[i, j + 1] * e) * (1 - f) + (page[i + 1, j] * (1 - e) + page[i + 1, j + 1] * e) * f


def exam(seed, count, skills=SKILLS):
    """`count` questions, the skills in turn: (skill, pictures, question, answer)."""
    r = random.Random(f"exam {seed}")
    for i in range(count):
        skill = skills[i % len(skills)]
        scenes = scenes_for(r, skill, *r.choice(SIZES))
        yield skill, scenes, *question(r, skill, scenes)


def main():
    out, seed, count = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1, int(sys.argv[3]) if len(sys.argv) > 3 else 200
    out.mkdir(parents=True, exist_ok=True)
    maps, rows = atlas(), []
    for i, (skill, scenes, question, answer) in enumerate(exam(seed, count)):
        files = [f"{i:04}-{j}.png" for j in range(len(scenes))]
        for f, s in zip(files, scenes):
            Image.fromarray(draw(s, maps)).save(out / f)
        rows.append({"skill": skill, "pictures": files, "question": question, "answer": answer})
    (out / "exam.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
