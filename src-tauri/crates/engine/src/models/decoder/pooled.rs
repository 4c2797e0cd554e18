//! Attention of many heads to one key, which is their value too: to the last positions as they are, and to pooled ones
//! before them (DeepSeek V4). What heads found is turned back by the position of the query.

use checkpoint::config::decoder::PooledAttentionConfig;
use mlx::ops::{concatenate, Mask};
use mlx::parameters::Parameters;
use mlx::recording;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::cache::{seen, Cache, KvView, RecurrentCache, RotatingCache};
use crate::error;
use crate::layers::{each_sequence, scaled_dot_product_attention, Linear, RmsNorm};
use crate::models::decoder::by_head::by_head;
use crate::models::decoder::load_context::LoadContext;
use crate::models::decoder::mla::HeadProjection;
use crate::models::decoder::pool::{visible, Pool, PoolIndex};
use crate::models::decoder::step::{Chosen, Step};

/// The attention of one layer.
#[derive(Parameters)]
pub struct PooledAttention {
    heads: i32,
    width: i32,
    rank: i32,
    groups: i32,
    made: i32,
    window: u32,
    mask: usize,
    rope: usize,
    scale: f32,
    eps: f32,
    /// wq_a and wkv side by side.
    down_proj: Linear,
    q_norm: RmsNorm,
    q_proj: Linear,
    kv_norm: RmsNorm,
    /// `[heads]`.
    sinks: Tensor,
    pool: Option<Pool>,
    index: Option<PoolIndex>,
    /// From what each group of heads found to a short vector.
    groups_proj: HeadProjection,
    o_proj: Linear,
}

impl PooledAttention {
    /// Loads what stands below `path`: `wq_a`, `q_norm`, `wq_b`, `wkv`, `kv_norm`, `sinks`, `compressor`, `indexer`,
    /// `wo_a` and `wo_b`.
    pub fn load(config: &PooledAttentionConfig, path: &str, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let name = |part: &str| format!("{path}.{part}");
        let (hidden, eps) = (loading.config.hidden_size as i32, loading.config.norm.eps);
        let [heads, width, rank, groups, made] = [
            config.heads,
            config.head_dim,
            config.q_rank,
            config.groups,
            config.o_rank,
        ]
        .map(|number| number as i32);
        if config.o_bias {
            loading.weights.require(&name("wo_b.bias"))?;
        }
        let index = config.pool.and_then(|pool| Some((pool, pool.index?)));
        let index = index.map(|(pool, index)| PoolIndex::load(pool, index, rank, &name("indexer"), loading));
        let pool = config.pool;
        let pool = pool.map(|pool| Pool::load(pool, pool.rope, width, &name("compressor"), loading));
        let (pool, index) = (pool.transpose()?, index.transpose()?);
        let mask = loading.mask(Some(config.window));
        let weights = &mut *loading.weights;
        let down = [(name("wq_a"), rank), (name("wkv"), width)];
        let attention = Self {
            heads,
            width,
            rank,
            groups,
            made,
            window: config.window,
            mask,
            rope: config.rope,
            scale: (width as f32).powf(-0.5),
            eps,
            down_proj: Linear::load_joined(weights, &down, hidden)?,
            q_norm: RmsNorm::load(weights, &name("q_norm"), rank, eps)?,
            q_proj: Linear::load(weights, &name("wq_b"), rank, heads * width)?,
            kv_norm: RmsNorm::load(weights, &name("kv_norm"), width, eps)?,
            sinks: weights.take(&name("sinks"), &[heads])?.astype(loading.dtype)?,
            pool,
            index,
            groups_proj: HeadProjection::take(weights, &name("wo_a"), [groups, made, heads * width / groups])?,
            o_proj: Linear::load(weights, &name("wo_b"), groups * made, hidden)?,
        };
        weights.materialize(attention.tensors())?;
        Ok(attention)
    }

    /// Its empty caches: of the window, of what is pooled, and of what is pooled for the index.
    pub fn caches(&self) -> Vec<Cache> {
        let pools = usize::from(self.pool.is_some()) + usize::from(self.index.is_some());
        let pools = (0..pools).map(|_| Cache::Recurrent(RecurrentCache::default()));
        [Cache::Rotating(RotatingCache::new(self.window))]
            .into_iter()
            .chain(pools)
            .collect()
    }

    /// The index of its mask in a step.
    pub fn mask(&self) -> usize {
        self.mask
    }

    /// `[rows, hidden]` to the same.
    pub(super) fn forward(&self, x: &Tensor, step: &Step<'_>, caches: &mut [&mut Cache]) -> Result<Tensor> {
        if recording::is_on() {
            return Err(mlx::Error::Unsupported("a recorded step with pooled positions".into()));
        }
        let (sequences, rows) = (step.sequences as i32, x.dim(0));
        let turned = |heads: &Tensor, rope: usize| step.ropes[rope].forward(heads, &step.rotations[rope]);
        let both = self.down_proj.forward(x)?;
        let squeezed = self.q_norm.forward(&both.slice(1, 0, self.rank)?)?;
        let queries = by_head(&self.q_proj.forward(&squeezed)?, self.heads, sequences)?;
        let queries = turned(&queries.fast_rms_norm(None, self.eps)?, self.rope)?;
        let key = self.kv_norm.forward(&both.slice(1, self.rank, both.dim(1))?)?;
        let key = turned(&by_head(&key, 1, sequences)?, self.rope)?;
        let raw = self.pool.as_ref().map(|pool| pool.read(x)).transpose()?;
        let query = match &self.index {
            Some(index) => Some((index, index.read(x, &squeezed, step)?)),
            None => None,
        };
        let (windows, pools) = caches.split_at_mut(step.sequences);
        let (pools, indexes) = pools.split_at_mut(step.sequences.min(pools.len()));
        let attended = each_sequence(windows, |rows, cache| {
            let (queries, key, before) = (rows.of(&queries)?, rows.of(&key)?, cache.offset());
            let seen = cache.update(&key, &key)?;
            let mask = &step.masks[self.mask];
            let (Some(pool), Some(raw)) = (&self.pool, &raw) else {
                return scaled_dot_product_attention(&queries, &seen, self.scale, mask, Some(&self.sinks));
            };
            let pooled = pool.update(&rows.of(raw)?, before, pools[rows.index()].recurrent(), step)?;
            let chosen = match &query {
                Some((index, query)) => {
                    let cache = indexes[rows.index()].recurrent();
                    let keys = index.pool().update(&rows.of(&query.raw)?, before, cache, step)?;
                    let asked = (&rows.of(&query.queries)?, &rows.of(&query.weights)?);
                    keys.map_or(Ok(Chosen::All), |keys| index.choose(asked, &keys, before))?
                }
                None => Chosen::All,
            };
            match pooled {
                Some(pooled) => self.attend(&queries, &seen, (&pooled, &chosen, pool.ratio()), mask, before),
                None => scaled_dot_product_attention(&queries, &seen, self.scale, mask, Some(&self.sinks)),
            }
        })?;
        let back = turned(&by_head(&attended, self.heads, sequences)?, self.rope + 1)?;
        let found = match rows == sequences {
            true => back,
            false => back.transpose(&[0, 2, 1, 3])?,
        };
        let by_group = found.reshape(&[1, rows, self.groups, -1])?.swapaxes(1, 2)?;
        let made = self.groups_proj.expand(&by_group)?.swapaxes(1, 2)?;
        self.o_proj.forward(&made.reshape(&[rows, self.groups * self.made])?)
    }

    /// Attention of the queries of one sequence to its window and to pooled keys `[1, 1, count, width]`.
    fn attend(
        &self,
        queries: &Tensor,
        window: &KvView,
        (pooled, chosen, ratio): (&Tensor, &Chosen, i32),
        mask: &Mask,
        before: usize,
    ) -> Result<Tensor> {
        let (near, _) = window.dequantized()?;
        let (length, count) = (queries.dim(2), pooled.dim(2));
        let pooled = pooled.astype(near.dtype())?;
        let (far, mask) = match (length, chosen) {
            (1, Chosen::Of(numbers)) => (pooled.take(numbers, 2)?, Mask::None),
            (1, _) => (pooled, Mask::None),
            (_, chosen) => {
                let earlier = near.dim(2) - length;
                let near = match mask {
                    Mask::Array(seen) => seen.clone(),
                    Mask::Causal | Mask::None => seen(earlier, length, None, None)?,
                };
                let far = match chosen {
                    Chosen::Marked(marks) => marks.clone(),
                    Chosen::All | Chosen::Of(_) => visible(before, length, count, ratio)?,
                };
                (pooled, Mask::Array(concatenate(&[&near, &far], 1)?))
            }
        };
        let keys = concatenate(&[&near, &far], 2)?;
        let view = KvView::Plain {
            values: keys.clone(),
            keys,
        };
        scaled_dot_product_attention(queries, &view, self.scale, &mask, Some(&self.sinks))
    }
}
