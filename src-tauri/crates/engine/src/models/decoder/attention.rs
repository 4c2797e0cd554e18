//! Softmax attention of the parametric decoder.

use checkpoint::config::decoder::{AttentionConfig, KeySource};
use mlx::device::{device, Device};
use mlx::ops::concatenate;
use mlx::parameters::Parameters;
use mlx::recording::{self, CacheOf, CachedAttention};
use mlx::tensor::Tensor;
use mlx::Result;

use crate::cache::{Cache, PlainCache, RecurrentCache, RotatingCache};
use crate::error;
use crate::kernels::kernels;
use crate::layers::{
    each_sequence, marked_attention, scaled_dot_product_attention, split_heads, CappedAttention, Heads, Linear,
    ResidualStream, RmsNorm, ShortConv,
};
use crate::models::decoder::attention_index::AttentionIndex;
use crate::models::decoder::attention_weights::{head_norms, key_conv, qkv_proj, HeadNorms};
use crate::models::decoder::load_context::LoadContext;
use crate::models::decoder::loop_attention::LoopAttention;
use crate::models::decoder::output_gate::OutputGate;
use crate::models::decoder::shared_keys::Rounding;
use crate::models::decoder::step::{QueryScale, Step};
use crate::models::decoder::stripes::Stripes;

/// Attention with heads `[1, heads, length, width]`, or `[sequences, heads, 1, width]`, that may share keys.
#[derive(Parameters)]
pub struct Attention {
    heads: i32,
    key_heads: i32,
    width: i32,
    /// Width of a value.
    value_width: i32,
    window: Option<u32>,
    /// True if a query sees its chunk alone.
    chunked: bool,
    /// True if queries grow with their position.
    scales_queries: bool,
    mask: usize,
    rope: Option<usize>,
    /// The factor of the scores.
    scale: f32,
    /// The factor of the values.
    value_scale: Option<Tensor>,
    /// The way of scores that are squeezed.
    capped: Option<CappedAttention>,
    /// The least and the greatest number of queries, keys and values.
    clip: Option<(Tensor, Tensor)>,
    /// The gate that the output of each head goes through.
    output_gate: Option<OutputGate>,
    /// The convolution of keys and values with those of the token before.
    conv: Option<ShortConv>,
    /// The projections of queries, keys and values side by side, and the gate before or after them.
    qkv_proj: Linear,
    norms: HeadNorms,
    /// True if query head `i` reads key head `i` modulo their number.
    tiled: bool,
    /// Its other way from the second loop on, if there is one.
    looped: Option<LoopAttention>,
    /// The norm of what all heads found.
    output_norm: Option<RmsNorm>,
    /// `[heads]`.
    sinks: Option<Tensor>,
    /// The index of what is looked at.
    index: Option<AttentionIndex>,
    /// The layer whose keys it reads.
    #[parameters(skip)]
    keys: KeySource,
    /// The rounding of keys and values.
    rounding: Option<Rounding>,
    /// The blocks that each head sees.
    stripes: Option<Stripes>,
    o_proj: Linear,
}

impl Attention {
    /// Loads what stands below `path`: `q_proj`, `k_proj`, `v_proj` or all in one `qkv_proj` (Phi 3), `o_proj` and
    /// norms.
    pub fn load(config: &AttentionConfig, path: &str, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let (heads, key_heads, width) = (config.heads as i32, config.key_heads as i32, config.head_dim as i32);
        let (value_width, hidden) = (config.value_dim as i32, loading.config.hidden_size as i32);
        let scale = config.scale * config.rope.map_or(1.0, |rope| loading.ropes[rope].score_factor());
        let norms = head_norms(config, path, loading)?;
        let qkv_proj = qkv_proj(config, path, loading)?;
        let loaded = norms.tensors().into_iter().chain(qkv_proj.tensors());
        loading.weights.materialize(loaded)?;
        if config.o_bias {
            loading.weights.require(&format!("{path}.o_proj.bias"))?;
        }
        let sinks = || loading.weights.take(&format!("{path}.sinks"), &[heads]);
        let sinks = config.sinks.then(sinks).transpose()?;
        loading.weights.materialize(&sinks)?;
        let capped = |cap| CappedAttention::new(cap, scale, loading.dtype);
        let capped = config.softcap.map(capped).transpose()?;
        loading.weights.materialize(capped.tensors())?;
        let index = AttentionIndex::load(config, path, loading)?;
        let rounding = Rounding::load(config, path, loading)?;
        let sub_norm = format!("{path}.attn_sub_norm");
        let eps = loading.config.norm.eps;
        let output_norm = || RmsNorm::load(loading.weights, &sub_norm, heads * width, eps);
        let output_norm = loading.config.inner_norms.then(output_norm).transpose()?;
        Ok(Self {
            heads,
            key_heads,
            width,
            value_width,
            window: config.window,
            chunked: config.chunk.is_some(),
            scales_queries: config.query_scaling.is_some(),
            value_scale: Tensor::optional_scalar(config.value_scale, loading.dtype)?,
            mask: loading.mask(config.window),
            rope: config.rope,
            scale,
            capped,
            clip: match config.clip {
                Some(bound) => Some((
                    Tensor::scalar(-bound, loading.dtype)?,
                    Tensor::scalar(bound, loading.dtype)?,
                )),
                None => None,
            },
            output_gate: OutputGate::new(config)?,
            conv: config.key_conv.then(|| key_conv(config, path, loading)).transpose()?,
            qkv_proj,
            norms,
            tiled: config.tiled,
            output_norm,
            looped: None,
            sinks,
            index,
            keys: config.keys,
            rounding,
            stripes: config.stripes.map(|stripes| Stripes::new(&stripes, config.heads)),
            o_proj: Linear::load(loading.weights, &format!("{path}.o_proj"), heads * value_width, hidden)?,
        })
    }

    /// Its empty caches for one sequence: keys and values, then the last of them as they were projected, if it
    /// convolves them, or the keys of an index.
    pub fn caches(&self, again: bool) -> Vec<Cache> {
        if self.keys == KeySource::Earlier {
            return Vec::new();
        }
        let conv = self.conv.as_ref().map(|_| Cache::Recurrent(RecurrentCache::default()));
        let index = self.index.as_ref().map(AttentionIndex::cache);
        [self.cache(again)].into_iter().chain(conv).chain(index).collect()
    }

    /// The same with what it does from the second loop on.
    pub(super) fn looped(self, looped: Option<LoopAttention>) -> Self {
        Self { looped, ..self }
    }

    /// An empty cache for its keys and values of the first loop, or of those after it.
    pub fn cache(&self, again: bool) -> Cache {
        let looped = self.looped.as_ref().filter(|_| again);
        match looped.map_or(self.window, |looped| Some(looped.window)) {
            Some(window) => Cache::Rotating(RotatingCache::new(window)),
            None => Cache::Plain(PlainCache::default()),
        }
    }

    /// The index of its mask in a step, in the first loop or in those after it.
    pub fn mask(&self, again: bool) -> usize {
        let looped = self.looped.as_ref().filter(|_| again);
        looped.map_or(self.mask, |looped| looped.mask)
    }

    /// The attention's output for the normed stream, `[length, hidden]`.
    pub(super) fn forward(
        &self,
        stream: &mut ResidualStream<'_>,
        norm: Option<&RmsNorm>,
        step: &Step<'_>,
        caches: &mut [&mut Cache],
    ) -> Result<Tensor> {
        let all = self.qkv_proj.forward_normed(stream, norm)?;
        if self.keys == KeySource::Earlier {
            let queries = self.rotate(&self.by_head(&all, self.heads, step)?, step)?;
            let queries = self.norms.of_queries(queries)?;
            let attended = step.attend_kept(&queries, self.scale, self.mask)?;
            return self.o_proj.forward(&attended);
        }
        let (caches, beside) = match self.conv.is_some() || self.index.is_some() {
            true => caches.split_at_mut(caches.len() / 2),
            false => (caches, &mut [][..]),
        };
        let (all, asked) = match &self.index {
            Some(index) => {
                let (rest, asked) = index.split(&all, step)?;
                (rest, Some((index, asked)))
            }
            None => (all, None),
        };
        let (gate, all) = match &self.output_gate {
            Some(gate) => {
                let (numbers, rest) = gate.split(&all)?;
                (Some((gate, numbers)), rest)
            }
            None => (None, all),
        };
        let all = match &self.clip {
            Some((least, greatest)) => all.clip(least, greatest)?,
            None => all,
        };
        let all = match &self.conv {
            Some(conv) => self.convolve(conv, &all, beside)?,
            None => all,
        };
        let (queries, keys, values) = match self.split_heads(&all, step)? {
            Some((queries, keys, values)) => self.norms.turned(queries, keys, values)?,
            None => self.compose(&all, step)?,
        };
        let (keys, values) = match &self.rounding {
            Some(rounding) => rounding.apply(&keys, &values)?,
            None => (keys, values),
        };
        let cached = CachedAttention {
            queries: &queries,
            cache: CacheOf::Own(&keys, &values),
            scale: self.scale,
            window: self.window,
            sinks: self.sinks.as_ref(),
        };
        let by_kernel = match self.capped.is_some() || self.is_uncommon() {
            false => kernels().attend_cached(cached)?,
            true => None,
        };
        let attended = match by_kernel {
            Some(attended) => attended,
            None => match &asked {
                Some(_) if recording::is_on() => {
                    return Err(mlx::Error::Unsupported("a recorded step with an index".into()));
                }
                Some((index, asked)) => {
                    let pass = (step, self.scale, self.mask);
                    index.attend(asked, (&queries, &keys, &values), pass, (caches, beside))?
                }
                None => self.attend(&queries, (&keys, &values), step, caches)?,
            },
        };
        // The output grows as the values do.
        let attended = match &self.value_scale {
            Some(factor) => attended.mul(factor)?,
            None => attended,
        };
        let attended = match self.tiled {
            true => self.untiled(&attended)?,
            false => attended,
        };
        let attended = match &self.output_norm {
            Some(norm) => norm.forward(&attended)?,
            None => attended,
        };
        match gate {
            Some((gate, numbers)) => self.o_proj.forward(&gate.apply(&attended, &numbers)?),
            None => self.o_proj.forward(&attended),
        }
    }

    /// Queries, keys and values side by side, with keys and values of two tokens each.
    fn convolve(&self, conv: &ShortConv, all: &Tensor, last: &mut [&mut Cache]) -> Result<Tensor> {
        let (queries, end) = (self.heads * self.width, all.dim(1));
        let projected = all.slice(1, queries, end)?;
        let mixed = each_sequence(last, |rows, cache| {
            let (projected, cache) = (rows.of(&projected)?, cache.recurrent());
            cache.advance(projected.dim(0) as usize);
            conv.forward(&projected, &mut cache.conv)
        })?;
        concatenate(&[&all.slice(1, 0, queries)?, &mixed], 1)
    }

    /// The output `[rows, heads · width]` of heads that lie by the keys they share, in the order of the checkpoint.
    fn untiled(&self, attended: &Tensor) -> Result<Tensor> {
        let (rows, sharing) = (attended.dim(0), self.heads / self.key_heads);
        let by_key = attended.reshape(&[rows, self.key_heads, sharing, self.width])?;
        by_key.swapaxes(1, 2)?.reshape(&[rows, self.heads * self.width])
    }

    /// True if a query sees its chunk alone, chosen blocks or two loops, keys are of two tokens or values have another
    /// width than keys, which no kernel for recorded steps does.
    fn is_uncommon(&self) -> bool {
        let rests = self.keys != KeySource::Own
            || self.chunked
            || self.stripes.is_some()
            || self.index.is_some()
            || self.looped.is_some();
        rests || self.conv.is_some() || self.value_width != self.width
    }

    /// Attention of each sequence by its own cache, `[rows, heads · width]`.
    fn attend(
        &self,
        queries: &Tensor,
        (keys, values): (&Tensor, &Tensor),
        step: &Step<'_>,
        caches: &mut [&mut Cache],
    ) -> Result<Tensor> {
        if self.is_uncommon() && recording::is_on() {
            return Err(mlx::Error::Unsupported(
                "a recorded step with chunks or values of another width".into(),
            ));
        }
        each_sequence(caches, |rows, cache| {
            let queries = rows.of(queries)?;
            let scaling = step.query_scaling[rows.index()].as_ref();
            let (queries, scale) = match scaling.filter(|_| self.scales_queries) {
                None => (queries, self.scale),
                Some(QueryScale::Single(factor)) => (queries, self.scale * factor),
                Some(scale @ QueryScale::PerPosition(_)) => (scale.apply(&queries)?, self.scale),
            };
            let seen = cache.update(&rows.of(keys)?, &rows.of(values)?)?;
            if self.keys == KeySource::Kept {
                step.keep_seen(rows.index(), &seen);
            }
            if let Some(stripes) = &self.stripes {
                let (length, positions) = (queries.dim(2), cache.offset() as i32);
                if let Some(marks) = stripes.seen(positions - length, length)? {
                    return marked_attention(&queries, &seen, scale, &marks);
                }
            }
            let (seen, mask) = match self.chunked {
                true => {
                    let chunk = &step.chunks[rows.index()];
                    (seen.since(chunk.start)?, &chunk.mask)
                }
                false => (seen, &step.masks[self.mask(step.again)]),
            };
            let near = match &self.capped {
                Some(capped) => capped.forward(&queries, &seen, mask)?,
                None => scaled_dot_product_attention(&queries, &seen, scale, mask, self.sinks.as_ref())?,
            };
            let Some(looped) = &self.looped else { return Ok(near) };
            if !step.again {
                looped.keep(step, seen);
                return Ok(near);
            }
            let (first, mask) = (looped.first(step, rows.index()), &step.masks[self.mask]);
            let far = scaled_dot_product_attention(&queries, &first, scale, mask, None)?;
            looped.mix(&queries, &far, &near)
        })
    }

    /// Queries, keys and values `[1, heads, length, width]`, or those of several sequences `[sequences, heads, 1,
    /// width]`, normed and turned.
    fn compose(&self, all: &Tensor, step: &Step<'_>) -> Result<(Tensor, Tensor, Tensor)> {
        if self.value_width != self.width {
            return self.compose_apart(all, step);
        }
        let (heads, turning, rows) = (self.heads, self.heads + self.key_heads, self.heads + 2 * self.key_heads);
        Ok(match &self.norms {
            HeadNorms::None | HeadNorms::Turned(_) => {
                let all = self.by_head(all, rows, step)?;
                let turned = self.rotate(&all.slice(1, 0, turning)?, step)?;
                let (queries, keys) = (turned.slice(1, 0, heads)?, turned.slice(1, heads, turning)?);
                self.norms.turned(queries, keys, all.slice(1, turning, rows)?)?
            }
            HeadNorms::PerHead(norm) => {
                let all = all.reshape(&[all.dim(0), rows, self.width])?;
                let turned = self.by_head(&norm.forward(&all.slice(1, 0, turning)?)?, turning, step)?;
                let turned = self.rotate(&turned, step)?;
                let values = self.by_head(&all.slice(1, turning, rows)?, self.key_heads, step)?;
                (turned.slice(1, 0, heads)?, turned.slice(1, heads, turning)?, values)
            }
            HeadNorms::WithValues(norm) => {
                let all = all.reshape(&[all.dim(0), rows, self.width])?;
                let all = self.by_head(&norm.forward(&all)?, rows, step)?;
                let turned = self.rotate(&all.slice(1, 0, turning)?, step)?;
                let values = all.slice(1, turning, rows)?;
                (turned.slice(1, 0, heads)?, turned.slice(1, heads, turning)?, values)
            }
            HeadNorms::Whole([queries, keys]) => {
                let part = |from: i32, to: i32| all.slice(1, from * self.width, to * self.width);
                let queries = self.by_head(&queries.forward(&part(0, heads)?)?, heads, step)?;
                let keys = self.by_head(&keys.forward(&part(heads, turning)?)?, self.key_heads, step)?;
                let values = self.by_head(&part(turning, rows)?, self.key_heads, step)?;
                (self.rotate(&queries, step)?, self.rotate(&keys, step)?, values)
            }
        })
    }

    /// The same for values of another width than keys, and heads without norms.
    fn compose_apart(&self, all: &Tensor, step: &Step<'_>) -> Result<(Tensor, Tensor, Tensor)> {
        let (heads, turning) = (self.heads, self.heads + self.key_heads);
        let split = turning * self.width;
        let turned = self.rotate(&self.by_head(&all.slice(1, 0, split)?, turning, step)?, step)?;
        let values = all.slice(1, split, all.dim(1))?;
        let values = match values.dim(0) {
            rows if rows as usize == step.sequences => values.reshape(&[rows, self.key_heads, 1, self.value_width])?,
            length => values
                .reshape(&[1, length, self.key_heads, self.value_width])?
                .swapaxes(1, 2)?,
        };
        Ok((turned.slice(1, 0, heads)?, turned.slice(1, heads, turning)?, values))
    }

    /// `[length, count · width]`, or with the last axis split, to `[1, count, length, width]`; the rows of several
    /// sequences to `[sequences, count, 1, width]`.
    fn by_head(&self, x: &Tensor, count: i32, step: &Step<'_>) -> Result<Tensor> {
        match x.dim(0) {
            rows if rows as usize == step.sequences => x.reshape(&[rows, count, 1, self.width]),
            length => x.reshape(&[1, length, count, self.width])?.swapaxes(1, 2),
        }
    }

    fn rotate(&self, heads: &Tensor, step: &Step<'_>) -> Result<Tensor> {
        match self.rope {
            Some(rope) => step.ropes[rope].forward(heads, &step.rotations[rope]),
            None => Ok(heads.clone()),
        }
    }

    /// The same of one sequence in one launch, normed before they turn; `None` if no kernel does it.
    fn split_heads(&self, all: &Tensor, step: &Step<'_>) -> Result<Option<(Tensor, Tensor, Tensor)>> {
        let norm = match &self.norms {
            HeadNorms::None | HeadNorms::Turned(_) => None,
            HeadNorms::PerHead(norm) | HeadNorms::WithValues(norm) => Some(norm),
            HeadNorms::Whole(_) => return Ok(None),
        };
        let Some(rope) = self.rope.filter(|_| self.value_width == self.width) else {
            return Ok(None);
        };
        // Rows that the gate's part was cut from are not contiguous.
        if (self.output_gate.is_some() || self.index.is_some()) && all.dim(0) > 1 && device() != Device::Cpu {
            return Ok(None);
        }
        let heads = Heads {
            queries: self.heads,
            keys: self.key_heads,
            width: self.width,
        };
        let split = split_heads(&heads, all, norm, &step.ropes[rope], &step.rotations[rope])?;
        Ok(split.and_then(|(queries, own)| own.map(|(keys, values)| (queries, keys, values))))
    }
}
