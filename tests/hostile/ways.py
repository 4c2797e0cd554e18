"""The ways in which a file reaches Ponder: commands of the program, and requests to its server."""
import base64
import os
import shutil
from pathlib import Path

from corpus.models import PEBBLE

# The name of a model in the hub's cache.
REFERENCE = "hostile/model"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
# One token shows that a prompt was made and computed.
ASK = ["--max-tokens", "1", "--temperature", "0", "--thinking", "off", "What is it?"]
# A body of a request may have so much.
LONGEST_BODY = 32 << 20
IMAGE_TYPES = {".svg": "image/svg+xml", ".svgz": "image/svg+xml", ".jpg": "image/jpeg"}
OF_THE_HUB = ["HF_ENDPOINT", "HF_TOKEN", "HF_TOKEN_PATH", "HF_HUB_CACHE", "TRANSFORMERS_OFFLINE"]


def environment(home):
    """The data of the program in a folder of its own, no models but Pebble, and nobody asked."""
    kept = {name: value for name, value in os.environ.items() if name not in OF_THE_HUB}
    return kept | {"PONDER_HOME": str(home), "HF_HOME": str(home / "hub"), "HF_HUB_OFFLINE": "1", "RUST_BACKTRACE": "0"}


def model_folder(hub, name, content):
    """Pebble's files in the hub's cache of a home, one of them replaced."""
    repository = hub / "hub" / f"models--{REFERENCE.replace('/', '--')}"
    snapshot = repository / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    for file in PEBBLE.iterdir():
        (snapshot / file.name).symlink_to(file)
    (snapshot / name).unlink()
    (snapshot / name).write_bytes(content)
    (repository / "refs").mkdir()
    (repository / "refs/main").write_text(COMMIT)
    return snapshot


class File:
    """A hostile file in a folder of its own, which is a program's home too."""

    def __init__(self, kind, pattern, content, home):
        self.kind, self.pattern, self.content, self.home = kind, pattern, content, home
        home.mkdir(parents=True)
        if kind in ("templates", "models"):
            self.path = model_folder(home / "hub", pattern.file, content)
        else:
            self.path = home / pattern.file
            self.path.write_bytes(content)

    def commands(self):
        """Arguments of each run of the program."""
        path = str(self.path)
        if self.kind == "documents":
            return [["ask", "--file", path, *ASK]]
        if self.kind == "images":
            return [["ask", "--image", path, "--image-detail", "low", *ASK]]
        if self.kind == "imports":
            # The second shows the imported chats, images included.
            return [["history", "import", path], ["history", "export", "--all", "--format", "html", "-o", str(self.home / "shown.html")]]
        looks = [["models"], ["ask", "-m", path, *ASK]]
        return looks + ([["fit", path], ["models", "verify", path], ["models", "import", path]] if self.kind == "models" else [])

    def ask(self, server, hub):
        """Sends the file to the server, in every form that its interfaces have for it."""
        data = self.content[: LONGEST_BODY * 2 // 3]
        if self.kind == "documents":
            source = {"type": "base64", "media_type": "application/pdf", "data": base64.b64encode(data).decode()}
            block = {"type": "document", "source": source}
            server.post("/v1/messages", messages([block]))
            server.post("/v1/messages/count_tokens", messages([{"type": "text", "text": data[: 4 << 20].decode("latin-1")}]))
        elif self.kind == "images":
            encoded = base64.b64encode(data).decode()
            kind = IMAGE_TYPES.get(Path(self.pattern.file).suffix, "image/png")
            url = {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{encoded}", "detail": "low"}}
            server.post("/v1/chat/completions", {"model": "pebble", "max_tokens": 1, "messages": [{"role": "user", "content": [url]}]})
            source = {"type": "base64", "media_type": kind, "data": encoded}
            server.post("/v1/messages/count_tokens", messages([{"type": "image", "source": source}]))
        elif self.kind == "imports":
            # No route imports chats; the same bytes are a stranger's body.
            server.post("/v1/chat/completions", data)
        else:
            self.ask_model(server, hub)

    def ask_model(self, server, hub):
        model_folder(hub, self.pattern.file, self.content)
        try:
            server.checked("GET", "/v1/models")
            body = {"model": REFERENCE, "max_tokens": 1, "messages": [{"role": "user", "content": "What is it?"}]}
            server.post("/v1/chat/completions", body)
            server.post("/v1/messages/count_tokens", messages([{"type": "text", "text": "What is it?"}]) | {"model": REFERENCE})
            server.post("/v1/models/unload", {"model": REFERENCE})
        finally:
            shutil.rmtree(hub / "hub")

    def remove(self):
        shutil.rmtree(self.home, ignore_errors=True)


def messages(blocks):
    return {"model": "pebble", "max_tokens": 1, "messages": [{"role": "user", "content": blocks}]}
