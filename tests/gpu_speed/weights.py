"""The bytes of weights that one token reads: the roofline of decoding is the memory's bandwidth divided by them."""
import json
import struct

# Tables of which a token reads one row, if another matrix makes the logits.
TABLES = ("embed_tokens", "token_embd")
OUTPUTS = ("lm_head", "output.weight")
# A table for each layer, of which a token reads one row, too.
ROWS = "embed_tokens_per_layer"
EXPERTS = ("_exps.", ".experts.", ".switch_mlp.", ".switch_glu.")


def bytes_a_token(sizes, config):
    """Sizes are bytes by the names of tensors, as MLX or llama.cpp has them. Of experts only the chosen ones count."""
    config = config.get("text_config", config)
    experts = config.get("num_experts") or config.get("num_local_experts") or 1
    share = (config.get("num_experts_per_tok") or config.get("top_k_experts") or 1) / experts
    own_output = any(name.startswith(OUTPUTS) or ".lm_head" in name for name in sizes)

    def read(name):
        if ROWS in name or own_output and any(table in name for table in TABLES):
            return 0
        return share if any(part in name for part in EXPERTS) else 1

    return sum(size * read(name) for name, size in sizes.items())


def sizes_of_folder(folder):
    """Bytes of the tensors in a folder's files of safetensors."""
    sizes = {}
    for path in sorted(folder.glob("*.safetensors")):
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(length))
        header.pop("__metadata__", None)
        sizes |= {name: entry["data_offsets"][1] - entry["data_offsets"][0] for name, entry in header.items()}
    return sizes


def of_folder(folder):
    return bytes_a_token(sizes_of_folder(folder), config_of(folder))


def of_gguf(folder):
    """Of the file that is written for a folder's config."""
    from random_gguf import Layout

    config = config_of(folder)
    return bytes_a_token({piece.name: piece.bytes() for piece in Layout(config).pieces}, config)


def config_of(folder):
    return json.loads((folder / "config.json").read_text())
