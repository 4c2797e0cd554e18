"""Places where mlx-lm computes otherwise than transformers does and the models were trained: each function changes its
classes in this process."""
import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models import gemma, gemma2, hunyuan
from mlx_lm.models.base import create_causal_mask

from shapes import WINDOW


def gemma_gelu():
    """The approximation of GELU, as transformers' `GemmaConfig` has it."""
    gemma.MLP.__call__ = lambda self, x: self.down_proj(nn.gelu_approx(self.gate_proj(x)) * self.up_proj(x))


def gemma2_windows():
    """A window in every other layer from the first on, as transformers' `Gemma2Config` has it."""

    def forward(self, inputs, cache=None):
        h = self.embed_tokens(inputs) * self.args.hidden_size**0.5
        cache = cache or [None] * len(self.layers)
        offset = cache[0].offset if cache[0] else 0
        masks = [create_causal_mask(h.shape[1], offset, window_size=window) for window in (WINDOW, None)]
        for index, (layer, kept) in enumerate(zip(self.layers, cache)):
            h = layer(h, masks[index % 2], kept)
        return self.norm(h)

    gemma2.GemmaModel.__call__ = forward


def hunyuan_shares():
    """Shares of several experts that sum to 1, as transformers' `HunYuanMoEV1Gate` has it."""

    def forward(self, x):
        gates = mx.softmax(self.gate(x), axis=-1, precise=True)
        chosen = mx.argpartition(-gates, kth=self.top_k - 1, axis=-1)[..., : self.top_k]
        shares = mx.take_along_axis(gates, chosen, axis=-1)
        if self.top_k > 1:
            shares = shares / shares.sum(axis=-1, keepdims=True)
        fed = (self.switch_mlp(x, chosen) * shares[..., None]).sum(axis=-2).astype(x.dtype)
        return fed + self.shared_mlp(x)

    hunyuan.MoeBlock.__call__ = forward
