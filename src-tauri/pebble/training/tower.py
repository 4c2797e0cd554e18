"""Pebble's eyes: a vision tower of Gemma 4's form (E2B and E4B, without clipped linears) before the frozen text part of `train.py`."""
import json
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors import safe_open

import train as T

HERE = os.path.dirname(os.path.abspath(__file__))
VISION = json.load(open(f"{HERE}/vision.json"))
CFG, IDS, BUDGET = VISION["vision_config"], VISION["ids"], VISION["max_soft_tokens"]
W, LAYERS, HEADS, D = CFG["hidden_size"], CFG["num_hidden_layers"], CFG["num_attention_heads"], CFG["head_dim"]
PATCH, POOL, EPS = CFG["patch_size"], CFG["pooling_kernel_size"], CFG["rms_norm_eps"]
#: Tokens whose per-layer inputs may learn: no text ever holds them, so no text answer can change. Image places look up that of padding, 0.
FREE_ROWS = [0, IDS["boi"], IDS["eoi"], *IDS["look"]]


def norm(x, weight=None):
    return F.rms_norm(x, x.shape[-1:], None if weight is None else weight.to(x.dtype), EPS)


class Linear(nn.Linear):
    """Weights stay in 32 bits and are computed with as their input is."""

    def forward(self, x):
        return F.linear(x, self.weight.to(x.dtype))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        m = CFG["intermediate_size"]
        for name, (i, o) in {"q_proj": (W, HEADS * D), "k_proj": (W, HEADS * D), "v_proj": (W, HEADS * D), "o_proj": (HEADS * D, W),
                             "gate_proj": (W, m), "up_proj": (W, m), "down_proj": (m, W)}.items():
            setattr(self, name, Linear(i, o, bias=False))
        for name, n in {"q_norm": D, "k_norm": D, "input_layernorm": W, "post_attention_layernorm": W, "pre_feedforward_layernorm": W,
                        "post_feedforward_layernorm": W}.items():
            setattr(self, name, nn.Parameter(torch.ones(n)))

    def forward(self, x, cos, sin):
        b, n, _ = x.shape
        y = norm(x, self.input_layernorm)
        q, k, v = (p(y).view(b, n, HEADS, D) for p in (self.q_proj, self.k_proj, self.v_proj))
        q, k, v = rotate(norm(q, self.q_norm), cos, sin), rotate(norm(k, self.k_norm), cos, sin), norm(v)
        o = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), scale=1.0)
        x = x + norm(self.o_proj(o.transpose(1, 2).reshape(b, n, HEADS * D)), self.post_attention_layernorm)
        y = norm(x, self.pre_feedforward_layernorm)
        y = self.down_proj(F.gelu(self.gate_proj(y), approximate="tanh") * self.up_proj(y))
        return x + norm(y, self.post_feedforward_layernorm)


def rotate(x, cos, sin):
    """The first half of a head turns with x, the second with y, each as two halves; cos, sin [patches, 2, D / 4]."""
    b, n, h, _ = x.shape
    a, c = x.view(b, n, h, 2, 2, D // 4).unbind(-2)
    cos, sin = (t[None, :, None].to(x.dtype) for t in (cos, sin))
    return torch.stack([a * cos - c * sin, c * cos + a * sin], -2).reshape(b, n, h, D)


class Tower(nn.Module):
    """Pictures [batch, 3, height, width], 0..1, sides multiples of 48, to features [batch, tokens, text width]."""

    def __init__(self):
        super().__init__()
        self.input_proj = Linear(3 * PATCH * PATCH, W, bias=False)
        self.position_embedding_table = nn.Parameter(torch.empty(2, CFG["position_embedding_size"], W))
        self.layers = nn.ModuleList(Block() for _ in range(LAYERS))
        self.embedding_projection = Linear(W, T.H, bias=False)
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=p.shape[1] ** -0.5)
        nn.init.normal_(self.position_embedding_table, std=.3)
        # Soft tokens start about as long as those of text, whose rows have a standard deviation near 1 after the scaling.
        self.per_layer_rows = nn.Parameter(torch.zeros(len(FREE_ROWS), T.L * T.P))

    def encode(self, pixels):
        """Pooled states [batch, rows / 3, columns / 3, W] before the projection, and those of each patch [batch, rows, columns, W]."""
        b, _, height, width = pixels.shape
        rows, cols = height // PATCH, width // PATCH
        x = pixels.view(b, 3, rows, PATCH, cols, PATCH).permute(0, 2, 4, 3, 5, 1).reshape(b, rows * cols, -1)
        y_at, x_at = (t.reshape(-1) for t in torch.meshgrid(torch.arange(rows, device=x.device), torch.arange(cols, device=x.device), indexing="ij"))
        table = self.position_embedding_table
        h = self.input_proj(2 * (x - .5))
        h = h + (table[0][x_at] + table[1][y_at]).to(h.dtype)
        inv = CFG["rope_parameters"]["rope_theta"] ** -(torch.arange(0, D // 2, 2, device=x.device).float() / (D // 2))
        angle = torch.stack([x_at, y_at], -1).float()[..., None] * inv
        cos, sin = angle.cos(), angle.sin()
        for layer in self.layers:
            h = layer(h, cos, sin)
        pooled = h.view(b, rows // POOL, POOL, cols // POOL, POOL, W).float().mean((2, 4))
        return (pooled * W ** .5).to(pixels.dtype), h.view(b, rows, cols, W)

    def forward(self, pixels):
        return self.project(self.encode(pixels)[0])

    def project(self, states):
        b, r, c, _ = states.shape
        return self.embedding_projection(norm(states)).view(b, r * c, T.H)


def dequantised(folder):
    """The text part's weights as they are computed with: 8 bits in groups of 64, `scale * q + bias` in bf16."""
    out = {}
    with safe_open(f"{folder}/model.safetensors", "pt") as f:
        names = set(f.keys())
        for name in names:
            if not name.startswith("language_model.model.") or name.endswith((".scales", ".biases")):
                continue
            w = f.get_tensor(name)
            if w.dtype in (torch.uint32, torch.int32):
                base = name.removesuffix(".weight")
                scales, biases = f.get_tensor(base + ".scales").float(), f.get_tensor(base + ".biases").float()
                q = torch.from_numpy(w.numpy().view(np.uint8).astype(np.float32)).view(*scales.shape, 64)
                w = (q * scales[..., None] + biases[..., None]).view(scales.shape[0], -1)
            out[name.removeprefix("language_model.model.")] = w.float()
    return out


class Seer(nn.Module):
    """The frozen text part and the tower."""

    def __init__(self, folder=f"{HERE}/../model"):
        super().__init__()
        self.text = T.Model()
        self.text.load_state_dict(dequantised(folder))
        self.text.requires_grad_(False)
        self.tower = Tower()
        with torch.no_grad():
            self.tower.per_layer_rows.copy_(self.text.embed_tokens_per_layer.weight[FREE_ROWS])
        # For each token its row among the free ones, counted from 1, or 0.
        place = torch.zeros(T.V, dtype=torch.long)
        place[FREE_ROWS] = torch.arange(len(FREE_ROWS)) + 1
        place[IDS["image"]] = 1
        self.register_buffer("place", place, persistent=False)

    def forward(self, ids, places, features, order, wanted=None):
        """`features` [pictures, tokens, H]; `order` says whose features stand at the image `places` of `ids`, run by run, row by row."""
        table = self.text.embed_tokens_per_layer.weight
        pick = F.one_hot(self.place[ids], len(FREE_ROWS) + 1).to(table.dtype)
        per_layer = F.embedding(ids, table) * pick[..., :1] + pick[..., 1:] @ self.tower.per_layer_rows.to(table.dtype)
        return self.text(ids, places, features[order].reshape(-1, T.H), per_layer, wanted)
