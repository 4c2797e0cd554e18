"""Files that claim to hold chats: of Ponder, ChatGPT, Claude and LM Studio, as JSON and as ZIP archives."""
import base64
import io
import json
import zipfile

from . import images, svgs
from .pattern import MEGABYTE, cut, patterns, spoiled

TIME = 1_772_359_200_000
WRONG = [None, True, -1, 1e308, 18_446_744_073_709_551_615, "", "x", [], {}, [[]], {"a": []}, "\u0000", "\ud800", "9" * 400]


def message(number, parent, **more):
    part = {"kind": "text", "text": f"Message {number}", "started_at": TIME, "ended_at": TIME}
    return {"id": f"m{number}", "chat": "c", "parent": parent, "role": ["user", "assistant"][number % 2], "state": "complete", "parts": [part]} | {
        "siblings": [], "created_at": TIME, "finished_at": TIME, "thinking_ended": False, "notices": [], "edited": False, "continuable": False
    } | more


def ours(messages, **more):
    chat = {"id": "c", "title": "A chat", "created_at": TIME, "updated_at": TIME, "pinned": False, "running": False, "unread": False, "has_draft": False, "revision": 1, "archived": False}
    return {"format": "ponder-chat", "version": 1, "chat": chat, "head": messages[-1]["id"] if messages else None, "messages": messages} | more


def chatgpt(count=4, **more):
    def node(at):
        said = {"id": f"n{at}", "author": {"role": ["user", "assistant"][at % 2]}, "create_time": 1.7e9 + at, "content": {"content_type": "text", "parts": [f"Part {at}"]}}
        return {"id": f"n{at}", "parent": f"n{at - 1}" if at else None, "children": [f"n{at + 1}"], "message": said}

    return [{"title": "A chat", "conversation_id": "g", "create_time": 1.7e9, "mapping": {f"n{at}": node(at) for at in range(count)}, "current_node": f"n{count - 1}"} | more]


def claude(count=4):
    said = [{"uuid": f"u{at}", "sender": ["human", "assistant"][at % 2], "text": f"Part {at}", "created_at": "2026-03-01T10:00:00Z"} for at in range(count)]
    return [{"uuid": "k", "name": "A chat", "created_at": "2026-03-01T10:00:00Z", "updated_at": "2026-03-01T10:00:00Z", "chat_messages": said}]


def lm_studio(count=4):
    said = [{"currentlySelected": 0, "versions": [{"role": ["user", "assistant"][at % 2], "content": [{"type": "text", "text": f"Part {at}"}]}]} for at in range(count)]
    return {"name": "A chat", "createdAt": TIME, "messages": said}


def some(random):
    return random.choice([ours([message(at, f"m{at - 1}" if at else None) for at in range(4)]), chatgpt(), claude(), lm_studio()])


def nested(random):
    depth = random.choice([100, 130, 20_000, 2_000_000])
    opened, closed = random.choice([("[", "]"), ('{"a":', "}"), ('[{"messages":', "}]"), ('{"mapping":', "}")])
    return (opened * depth + "1" + closed * depth).encode()


def much(random):
    """Values that are many times longer in memory than in the file."""
    one = random.choice(["[]", "{}", "[[]]", '""', "1", '{"a":{}}', "null"])
    inside = ",".join([one] * (random.choice([2, 12, 30]) * MEGABYTE // (len(one) + 1)))
    shape = random.choice(['{"format":"ponder-chats","chats":[%s]}', '{"messages":[%s]}', "[%s]", '[{"mapping":{"a":{"children":[%s]}}}]', '{"format":"ponder-chat","version":1,"notices":[%s]}'])
    return (shape % inside).encode()


def archive_bomb(random):
    one = random.choice([b"[],", b"{},", b" ", b'"",', b"0,"])
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for at in range(random.choice([1, 1, 3])):
            with archive.open("conversations.json" if at == 0 else f"conversations-{at:03}.json", "w", force_zip64=True) as part:
                part.write(b"[")
                block = one * (MEGABYTE // len(one))
                for _ in range(random.choice([100, 260, 600])):
                    part.write(block)
                part.write(b"0]")
    return out.getvalue()


def archive_names(random):
    out = io.BytesIO()
    names = random.choice([["../conversations.json"], ["/conversations.json"], ["a/conversations.json", "b/conversations.json"], [f"x{at}" for at in range(20_000)] + ["conversations.json"], ["conversations.json/"], ["c\\conversations.json"], []])
    with zipfile.ZipFile(out, "w") as archive:
        for name in names:
            archive.writestr(name, json.dumps(claude()))
    return random.choice([out.getvalue(), spoiled(random, out.getvalue()), cut(random, out.getvalue())])


def wrong(random):
    """A file one value of which is of another kind."""
    value = some(random)
    for _ in range(random.choice([1, 3, 12])):
        place = value
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                break
            key = random.choice(keys)
            if isinstance(place[key], (dict, list)) and random.random() < 0.85:
                place = place[key]
                continue
            place[key] = random.choice(WRONG)
            break
    return json.dumps(value).encode()


def cycles(random):
    way = random.randrange(4)
    if way == 0:
        return json.dumps(ours([message(at, f"m{(at + 1) % 9}") for at in range(9)])).encode()
    if way == 1:
        return json.dumps(ours([message(0, "m0"), message(1, "m1")] * 3, head="m0")).encode()
    if way == 2:
        file = chatgpt(9)
        file[0]["mapping"]["n8"]["children"] = ["n0", "n8"]
        file[0]["mapping"]["n0"]["parent"] = "n8"
        return json.dumps(file).encode()
    file = claude(9)
    for at, said in enumerate(file[0]["chat_messages"]):
        said["parent_message_uuid"] = f"u{(at + 1) % 9}"
    return json.dumps(file).encode()


def long_branches(random):
    """Very long chats, and ones in which every message has one parent."""
    count = random.choice([9_000, 30_000])
    way = random.randrange(4)
    if way == 0:
        return json.dumps(ours([message(at, f"m{at - 1}" if at else None) for at in range(count)])).encode()
    if way == 1:
        return json.dumps(ours([message(at, "m0" if at else None) for at in range(count)])).encode()
    if way == 2:
        return json.dumps(chatgpt(count)).encode()
    return json.dumps(claude(2) * 400 + claude(count)).encode()


def long_texts(random):
    text = random.choice(["a", "\u0000", "🐱", "\u202e", "<|im_end|>", "\n", "`", "[", "a\u0300", "| a "])
    text *= random.choice([2, 12]) * MEGABYTE // len(text.encode())
    way = random.randrange(4)
    if way == 0:
        return json.dumps(ours([message(0, None, parts=[{"kind": "text", "text": text, "started_at": 0, "ended_at": 0}])])).encode()
    if way == 1:
        return json.dumps(chatgpt(2, title=text)).encode()
    if way == 2:
        return json.dumps(ours([message(0, None, id=text[: MEGABYTE], model=text)], settings={"system_prompt": text, "stop": [text[:99]] * 9000})).encode()
    return json.dumps(lm_studio(2) | {"systemPrompt": text, "name": text}).encode()


def pictures(random):
    """An image in an export of ours is what the file says; here it is a bomb."""
    write = random.choice([svgs.masks, svgs.chain, svgs.filters, svgs.nested, images.png_header, images.gif, images.webp, images.heic, images.polyglot])
    data = base64.b64encode(write(random)[: 8 * MEGABYTE]).decode()
    kind = random.choice(["image/svg+xml", "image/png", "text/html", "", "a" * 9000])
    side = random.choice([1, 0, 4_294_967_295])
    part = {"kind": "image", "attachment": "../../x", "media_type": kind, "width": side, "height": side, "alt": "", "started_at": 0, "ended_at": 0}
    attachments = {"../../x": {"media_type": kind, "base64": data}}
    return json.dumps(ours([message(0, None, parts=[part] * random.choice([1, 900]))], attachments=attachments)).encode()


def projects(random):
    project = {"id": random.choice(["p", "../p", ""]), "name": "x" * random.choice([1, 9000]), "instructions": "", "settings": {}, "files": [], "created_at": TIME, "updated_at": TIME, "attachments": {}}
    key = random.choice(["projects", "folders"])
    return json.dumps({"format": "ponder-chats", "chats": [ours([message(0, None)])], key: [project] * random.choice([1, 5000])}).encode()


def texts(random):
    """Bytes that are no text, numbers that are none, keys many times."""
    piece = random.choice(
        [b'"\\ud800"', b"1e999999", b"-", b"0x9", b"\xff\xfe[\x00", b'{"a":1,"a":2}', b"NaN", b'"\x00"', b"1" * 900_000, b'"' + b"\\u0000" * 200_000 + b'"', b'{"format":"ponder-chat"}', b"{} {}", b"[", b'{"mapping":{}}']
    )
    return random.choice([b"", b"\xef\xbb\xbf", b"\xff\xfe", b" " * MEGABYTE]) + piece


def damaged(random):
    return random.choice([cut, spoiled])(random, json.dumps(some(random)).encode())


PATTERNS = patterns(
    ("import, nested", "a.json", nested),
    ("import, values by the million", "a.ponderchat", much),
    ("import, an archive that unfolds", "a.zip", archive_bomb),
    ("import, names in an archive", "a.zip", archive_names),
    ("import, wrong kinds", "a.json", wrong),
    ("import, cycles", "a.json", cycles),
    ("import, long chats", "a.json", long_branches),
    ("import, long texts", "a.json", long_texts),
    ("import, images that are bombs", "a.ponderchat", pictures),
    ("import, projects", "a.ponderchat", projects),
    ("import, no text", "a.json", texts),
    ("import, damaged", "a.json", damaged),
)
