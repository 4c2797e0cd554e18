"""Fetches models with huggingface_hub: reads one JSON request per line, {"id", "endpoint", "repository", "cache"}, fetches it in a
thread of its own, and prints {"id", "error"} when it is done; the error is null where the model is said to be there.
With one request as its argument it fetches that and ends, with an error on the error output where there is one."""
import json
import sys
import threading

from huggingface_hub import snapshot_download

printing = threading.Lock()


def load(request):
    snapshot_download(request["repository"], endpoint=request["endpoint"], cache_dir=request["cache"], token=False)


def fetch(request):
    error = None
    try:
        load(request)
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}"
    with printing:
        print(json.dumps({"id": request["id"], "error": error}), flush=True)


def main():
    if len(sys.argv) > 1:
        return load(json.loads(sys.argv[1]))
    # Python's start does not count as waiting time.
    print(json.dumps({"id": None}), flush=True)
    for line in sys.stdin:
        threading.Thread(target=fetch, args=(json.loads(line),), daemon=True).start()


main()
