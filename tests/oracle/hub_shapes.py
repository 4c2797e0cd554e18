"""The view of huggingface_hub on the hub at HF_ENDPOINT, as JSON: it proves that the imitation has the real one's
shapes."""
import hashlib
import json
import os
from pathlib import Path

from huggingface_hub import HfApi, hf_hub_download, snapshot_download
from huggingface_hub.errors import EntryNotFoundError, GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError


def fails(error, call):
    try:
        call()
    except error as raised:
        return type(raised).__name__
    return "nothing raised"


def main():
    api = HfApi()
    info = api.model_info("ponder/pebble", files_metadata=True)
    folder = Path(snapshot_download("ponder/pebble"))
    again = Path(snapshot_download("ponder/pebble", local_files_only=True))
    print(json.dumps({
        "info": {
            "id": info.id, "author": info.author, "sha": info.sha, "tags": info.tags, "gated": info.gated, "downloads": info.downloads,
            "parameters": info.safetensors.total, "model_type": info.config["model_type"], "stored": info.used_storage,
            "modified": info.last_modified.isoformat(), "sizes": {file.rfilename: file.size for file in info.siblings},
            "large": {file.rfilename: file.lfs.sha256 for file in info.siblings if file.lfs},
        },
        "search": [model.id for model in api.list_models(search="many", sort="downloads", limit=None)],
        "search_two": [model.id for model in api.list_models(author="many", sort="downloads", limit=2)],
        "mlx": [model.id for model in api.list_models(filter="mlx", expand=["downloads", "safetensors"])],
        "tree": {file.path: [file.size, file.blob_id, file.lfs and file.lfs.sha256] for file in api.list_repo_tree("ponder/pebble", recursive=True)},
        "long_tree": sum(1 for _ in api.list_repo_tree("ponder/long", recursive=True)),
        "folders": sorted(entry.path for entry in api.list_repo_tree("ponder/long")),
        "files": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()},
        "blobs": {path.name: os.readlink(path).rsplit("/", 1)[-1] for path in folder.iterdir()},
        "again": again == folder,
        "old_name": Path(hf_hub_download("ponder/old-pebble", "config.json")).exists(),
        "gated": fails(GatedRepoError, lambda: hf_hub_download("ponder/gated", "config.json", token=False)),
        "not_let_in": fails(GatedRepoError, lambda: hf_hub_download("ponder/gated", "config.json", token="hf_other")),
        "let_in": Path(hf_hub_download("ponder/gated", "config.json", token="hf_good")).exists(),
        "private": fails(RepositoryNotFoundError, lambda: api.model_info("ponder/private", token=False)),
        "private_seen": api.model_info("ponder/private", token="hf_good").private,
        "no_repository": fails(RepositoryNotFoundError, lambda: api.model_info("ponder/nothing")),
        "no_file": fails(EntryNotFoundError, lambda: hf_hub_download("ponder/pebble", "nothing.json")),
        "no_revision": fails(RevisionNotFoundError, lambda: api.model_info("ponder/pebble", revision="nothing")),
    }))


main()
