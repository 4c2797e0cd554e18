"""Places where mlx-lm computes otherwise than transformers does and the models were trained: each function changes its
classes in this process."""
import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models import falcon_h1, gemma, gemma2, jamba
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


FALCON_H1_ATTENTION = falcon_h1.FalconH1Attention.__init__


def falcon_h1_keys():
    """The factor of keys, which mlx-lm's conversions leave out, as transformers' `FalconH1Attention` has it."""

    def init(self, args):
        # Not what this function left here for another model.
        FALCON_H1_ATTENTION(self, args)
        self.scale *= args.key_multiplier

    falcon_h1.FalconH1Attention.__init__ = init


def jamba_shares():
    """The shares of all experts, which those of the chosen are left as, as transformers' `JambaTopKRouter` has it."""

    def forward(self, x):
        shares = mx.softmax(self.router(x), axis=-1, precise=True)
        chosen = mx.argpartition(-shares, kth=self.num_experts_per_tok - 1, axis=-1)[..., : self.num_experts_per_tok]
        counted = mx.take_along_axis(shares, chosen, axis=-1)
        return (self.switch_mlp(x, chosen) * counted[..., None]).sum(axis=-2)

    jamba.JambaSparseMoeBlock.__call__ = forward
