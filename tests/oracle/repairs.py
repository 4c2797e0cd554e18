"""Places where mlx-lm computes otherwise than transformers does and the models were trained: each function changes its
classes in this process."""
import sys
import types

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models import bitlinear_layers, falcon_h1, gemma, gemma2, glm, gpt_bigcode, hunyuan, jamba, plamo3
from mlx_lm.models.base import create_causal_mask, scaled_dot_product_attention
from mlx_lm.models.cache import KVCache, RotatingKVCache

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


def glm_half_turns():
    """Half of a head turns, as `partial_rotary_factor` says, which transformers' `GlmConfig` reads."""
    start = glm.GLMAttention.__init__
    if start.__name__ == "half":
        return

    def half(self, args):
        start(self, args)
        self.rope = nn.RoPE(args.head_dim // 2, traditional=True, base=args.rope_theta)

    glm.GLMAttention.__init__ = half


def bigcode_heads():
    """Without a shared key, each head's query, key and value lie together, as in transformers' `GPTBigCodeAttention`."""

    def forward(self, x, mask=None, cache=None):
        length, width = x.shape[1], self.head_dim
        joined = self.c_attn(x)
        if self.n_kv_heads == 1:
            queries, keys, values = mx.split(joined, [self.dim, self.dim + self.kv_dim], axis=-1)
        else:
            queries, keys, values = mx.split(joined.reshape(1, length, self.n_heads, 3 * width), 3, axis=-1)
        queries, keys, values = (part.reshape(1, length, -1, width).swapaxes(1, 2) for part in (queries, keys, values))
        keys, values = cache.update_and_fetch(keys, values)
        found = scaled_dot_product_attention(queries, keys, values, cache=cache, scale=self.scale, mask=mask)
        return self.c_proj(found.swapaxes(1, 2).reshape(1, length, -1))

    gpt_bigcode.Attention.__call__ = forward


def _olmo(clip):
    """Masks are no longer numbers to add, and the package that mlx-lm looks for holds nothing that it uses."""
    sys.modules.setdefault("hf_olmo", types.ModuleType("hf_olmo"))
    from mlx_lm.models import olmo

    def attend(self, x, mask=None, cache=None):
        length = x.shape[1]
        joined = self.att_proj(x)
        if clip:
            joined = mx.clip(joined, -clip, clip)
        parts = (part.reshape(1, length, self.n_heads, -1).swapaxes(1, 2) for part in mx.split(joined, 3, axis=-1))
        queries, keys, values = parts
        queries, keys = self.rope(queries, offset=cache.offset), self.rope(keys, offset=cache.offset)
        keys, values = cache.update_and_fetch(keys, values)
        found = scaled_dot_product_attention(queries, keys, values, cache=cache, scale=self.scale, mask=mask)
        return self.attn_out(found.swapaxes(1, 2).reshape(1, length, -1))

    olmo.TransformerBlock.attend = attend


def olmo1():
    """OLMo as mlx-lm wrote it, for its masks of today."""
    _olmo(None)


def olmo1_clipped():
    """The same with `clip_qkv`, as transformers' `OlmoAttention` has it."""
    _olmo(1.5)


def plamo3_windows():
    """As many positions before a query's own as `window_size` says, in steps too, where mlx-lm keeps one less."""
    if plamo3.Model.make_cache.__name__ == "wider":
        return

    def wider(self):
        rotating = lambda: RotatingKVCache(max_size=self.config.window_size + 1)
        return [KVCache() if layer.full_attn else rotating() for layer in self.layers]

    plamo3.Model.make_cache = wider


def ternary_products():
    """The product of mlx-lm's kernel for Metal in numbers; in 16 bits by MLX's product with weights of 2 bits, because a
    CPU rounds on the way, as for all other packed weights."""

    def multiply(self, x, packed):
        places = mx.array([1, 4, 16, 64], dtype=mx.uint8).reshape(4, 1, 1)
        rows = (packed[None] // places % 4).reshape(-1, packed.shape[1])
        if x.dtype == mx.float32:
            return x @ (rows.astype(mx.float32) - 1.0).T * self.weight_scale
        words = rows.astype(mx.uint32).reshape(len(rows), -1, 16) * mx.array([4**place for place in range(16)], dtype=mx.uint32)
        scales = mx.broadcast_to(self.weight_scale, (len(rows), rows.shape[1] // 32))
        return mx.quantized_matmul(x, words.sum(axis=-1), scales, -scales, group_size=32, bits=2)

    bitlinear_layers.BitLinear.execute_matmul_kernel = multiply


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


def _turns_last(dims, base):
    """The last numbers of a head turn, halves against each other."""

    def turn(x, offset):
        still, turning = x[..., :-dims], x[..., -dims:]
        return mx.concatenate([still, mx.fast.rope(turning, dims, traditional=False, base=base, scale=1.0, offset=offset)], axis=-1)

    return turn


def hy_v4():
    """Hunyuan 4 as transformers' `HYV4Attention`, `HYV4Indexer`, `HYV4Experts` and `HYV4HyperConnection` have it: halves of
    what turns turn against each other, in an index the last numbers of a head; gates of experts are clipped at
    `swiglu_limit`, here 1; the least share of a stream is `hc_eps`."""
    from mlx_vlm.models.hy_v4 import hyper_connection, language

    attention, layer, pre = language.HyV4Attention, language.HyV4DecoderLayer, hyper_connection.IdentityHyperConnectionPre
    if attention.__init__.__name__ == "halves":
        return
    start, start_layer, share = attention.__init__, layer.__init__, pre.__call__

    def halves(self, config, layer_idx):
        start(self, config, layer_idx)
        dims, base = config.qk_rope_head_dim, config.rope_theta
        self.rope = nn.RoPE(dims, traditional=False, base=base)
        if self.indexer is not None:
            self.indexer.rope = _turns_last(dims, base)
            self.indexer.k_norm.eps = config.rms_norm_eps

    def clip(x, gate):
        return nn.silu(mx.minimum(gate, 1.0)) * mx.clip(x, -1.0, 1.0)

    def clipped(self, config, layer_idx):
        start_layer(self, config, layer_idx)
        if hasattr(self.mlp, "switch_mlp"):
            self.mlp.switch_mlp.activation = clip

    def at_least(self, x):
        collapsed, post = share(self, x)
        return collapsed, post + self.hc_eps

    attention.__init__, layer.__init__, pre.__call__ = halves, clipped, at_least


def deepseek_v4():
    """DeepSeek V4 as transformers has it: a pooled key counts the window before it also where that was read earlier. Layers
    may pool other numbers of positions than 4 and 128, so that short prompts have some."""
    from mlx_vlm.models.deepseek_v4 import config, language

    compressor = language.Compressor
    if compressor.__call__.__name__ == "overlapped":
        return
    plain, start = compressor.__call__, config.ModelConfig.__post_init__

    def any_ratio(self):
        ratios = list(self.compress_ratios)
        self.compress_ratios = [ratio if ratio in (0, 4) else 128 for ratio in ratios]
        start(self)
        self.compress_ratios = ratios[: self.num_hidden_layers]

    def attention(config, layer_idx):
        kinds = {0: language.LocalAttention, 4: language.SparseCompressedAttention}
        return kinds.get(config.compress_ratios[layer_idx], language.CompressedAttention)(config, layer_idx)

    def overlapped(self, x, pool_cache, offset):
        if not self.overlap or pool_cache is None:
            return plain(self, x, pool_cache, offset)
        kv, gate, base = pool_cache.accumulate_windows(self.wkv(x), self.wgate(x), offset)
        if kv.size == 0:
            return pool_cache.update_and_fetch(mx.zeros((x.shape[0], 0, self.head_dim), dtype=x.dtype))
        kv, gate = (mx.unflatten(part, 1, (-1, self.compress_ratio)) for part in (kv, gate))
        gate, width = gate + self.ape.astype(gate.dtype), self.head_dim
        nothing = mx.zeros((x.shape[0], 1, self.compress_ratio, width), dtype=kv.dtype), mx.full((x.shape[0], 1, self.compress_ratio, width), -mx.inf, dtype=gate.dtype)
        last = getattr(pool_cache, "last", nothing)
        pool_cache.last = kv[:, -1:, :, :width], gate[:, -1:, :, :width]
        kv, gate = (
            mx.concatenate([mx.concatenate([before, part[:, :-1, :, :width]], axis=1), part[..., width:]], axis=2) for before, part in zip(last, (kv, gate))
        )
        pooled = self.norm((kv * mx.softmax(gate, axis=-2, precise=True)).sum(axis=-2))
        return pool_cache.update_and_fetch(self.rope(pooled[:, None], offset=base).squeeze(1))

    compressor.__call__, config.ModelConfig.__post_init__, language.v4_attention_factory = overlapped, any_ratio, attention


def hrm_text():
    """mlx-vlm's language part by itself, which reads the names of the original as the whole model does."""
    from mlx_vlm.models import hrm_text as module
    from mlx_vlm.models.hrm_text.language import LanguageModel

    def sanitize(self, weights):
        return {name.removeprefix("language_model."): value for name, value in module.Model.sanitize(self, weights).items()}

    LanguageModel.sanitize = sanitize


def phi3small():
    """Phi 3 small as its `modeling_phi3_small.py` has it: blocks of positions are counted from the first one, layers whose
    numbers from 1 divide see all, and the mask of mlx-lm's marks hides positions instead of being added. Tokens that stand
    for nothing are beyond a small vocabulary."""
    from mlx_lm.models import phi3small as module

    attention = module.Attention
    if attention.__init__.__name__ == "striped":
        return
    start = attention.__init__

    def striped(self, args, layer_idx):
        start(self, args, layer_idx)
        self.block_sparse = (layer_idx + 1) % args.dense_attention_every_n_layers != 0
        self.stripes = args.blocksparse_block_size, args.blocksparse_num_local_blocks, args.blocksparse_vert_stride

    def attend(self, queries, keys, values, scale, mask):
        size, local, stride = self.stripes
        length, total = queries.shape[2], keys.shape[2]
        own, others = mx.arange(total - length, total)[:, None] // size, mx.arange(total)[None] // size
        heads = mx.arange(1, self.n_heads + 1)[:, None, None]
        seen = (own - others < local) | ((others + heads) % stride == 0)
        seen = seen & (mx.arange(total)[None] <= mx.arange(total - length, total)[:, None])
        return mx.fast.scaled_dot_product_attention(queries, keys, values, scale=scale, mask=seen)

    def forward(self, inputs, cache=None):
        logits = self.model.embed_tokens.as_linear(self.model(inputs, cache))
        return logits / self.mup_width_multiplier if self.mup_width_multiplier else logits

    attention.__init__, attention._block_sparse_attention, module.Model.__call__ = striped, attend, forward


def longcat_runs():
    """Runs of tokens that end at the end of a text, as `_shift_right_ignore_eos` of the code beside the weights has it."""
    from mlx_lm.models import longcat_flash_ngram as module

    def forward(self, input_ids, cache=None):
        end, length = self.end, input_ids.shape[-1]
        known = input_ids.astype(mx.int64)
        if cache[0] is not None:
            known = mx.concatenate([cache[0], known], axis=-1)
        cache[0] = known
        shifted, ended = {}, mx.zeros(known.shape, dtype=mx.bool_)
        for place in range(1, self.n):
            moved = self._shift_right(known, place)
            ended = ended | (moved == end)
            shifted[place + 1] = mx.where(ended, 0, moved)
        sum_of_all = self.word_embeddings(input_ids)
        for (run, split), factors in self._vocab_mods.items():
            index = (run - 2) * self.k + split
            ids = self._get_ngram_ids(known, shifted, factors, ngram=run) % (self.m + index * 2 + 1)
            sum_of_all = sum_of_all + self.post_projs[index](self.embedders[index](ids[..., -length:]))
        return sum_of_all / (1 + self.k * (self.n - 1))

    if module.NgramEmbedding.__call__.__name__ == "forward":
        return
    read, start = module.ModelArgs.from_dict, module.NgramEmbedding.__init__

    def with_end(config):
        args = read(config)
        args.end = config["eos_token_id"]
        return args

    def init(self, args):
        start(self, args)
        self.end = args.end

    module.ModelArgs.from_dict = with_end
    module.NgramEmbedding.__init__, module.NgramEmbedding.__call__ = init, forward
