//! Pooled keys (DeepSeek V4): each is a sum of the positions of its window, and of those of the window before, by
//! weights that every number of a position has for itself. An index of small heads chooses of them.

use checkpoint::config::decoder::{PoolConfig, PoolIndexConfig};
use mlx::ops::concatenate;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::cache::RecurrentCache;
use crate::error;
use crate::layers::{top_k_indices, Linear, RmsNorm};
use crate::models::decoder::by_head::by_head;
use crate::models::decoder::load_context::LoadContext;
use crate::models::decoder::step::{Chosen, Step};

/// The pool of one layer, or of its index.
#[derive(Parameters)]
pub(super) struct Pool {
    ratio: i32,
    width: i32,
    overlaps: bool,
    rope: usize,
    /// wkv and wgate side by side: what is summed, and the logarithms of its weights.
    projection: Linear,
    /// Summands of these logarithms at each place of a window, `[1, ratio, numbers]`, in 32 bits.
    places: Tensor,
    norm: RmsNorm,
}

impl Pool {
    /// Loads `wkv`, `wgate`, `ape` and `norm` below `path`, for keys of this width.
    pub(super) fn load(
        config: PoolConfig,
        rope: usize,
        width: i32,
        path: &str,
        loading: &mut LoadContext<'_, '_>,
    ) -> error::Result<Self> {
        let name = |part: &str| format!("{path}.{part}");
        let (ratio, numbers) = (config.ratio as i32, if config.overlaps { 2 * width } else { width });
        let (hidden, eps) = (loading.config.hidden_size as i32, loading.config.norm.eps);
        let places = loading.weights.take(&name("ape"), &[ratio, numbers])?;
        let parts = ["wkv", "wgate"].map(|part| (name(part), numbers));
        let pool = Self {
            ratio,
            width,
            overlaps: config.overlaps,
            rope,
            projection: Linear::load_joined(loading.weights, &parts, hidden)?,
            places: places.astype(Dtype::Float32)?.reshape(&[1, ratio, numbers])?,
            norm: RmsNorm::load(loading.weights, &name("norm"), width, eps)?,
        };
        loading.weights.materialize(pool.tensors())?;
        Ok(pool)
    }

    /// Positions of a pooled key.
    pub(super) fn ratio(&self) -> i32 {
        self.ratio
    }

    /// The numbers that it keeps of rows `x` `[rows, hidden]` until they are pooled.
    pub(super) fn read(&self, x: &Tensor) -> Result<Tensor> {
        self.projection.forward(x)
    }

    /// Takes in the next rows of one sequence, which has read `before` positions, and gives all its pooled keys,
    /// `[1, 1, count, width]`; `None` if there are none yet. The cache keeps the rows of the last window that was not
    /// pooled, and of the one before it.
    pub(super) fn update(
        &self,
        raw: &Tensor,
        before: usize,
        cache: &mut RecurrentCache,
        step: &Step<'_>,
    ) -> Result<Option<Tensor>> {
        let length = raw.dim(0);
        cache.advance(length as usize);
        let rows = match cache.conv.take() {
            Some(kept) => concatenate(&[&kept, raw], 0)?,
            None => raw.clone(),
        };
        let known = cache.state.as_ref().map_or(0, |pooled| pooled.dim(2));
        let first = (before as i32 + length - rows.dim(0)) / self.ratio;
        let (pooled, complete) = (known - first, rows.dim(0) / self.ratio);
        if complete > pooled {
            let count = complete - pooled;
            let new = self.norm.forward(&self.pooled(&rows, pooled, complete)?)?;
            let rope = &step.ropes[self.rope];
            let new = rope.forward(
                &new.reshape(&[1, 1, count, self.width])?,
                &rope.at(known as usize, count as usize),
            )?;
            cache.state = Some(match cache.state.take() {
                Some(pooled) => concatenate(&[&pooled, &new], 2)?,
                None => new,
            });
        }
        let kept = match self.overlaps {
            true => (complete - 1).max(0),
            false => complete,
        };
        if kept * self.ratio < rows.dim(0) {
            let rest = rows.slice(0, kept * self.ratio, rows.dim(0))?;
            // A slice keeps the complete tensor that it was cut from alive.
            cache.conv = Some(if length == 1 { rest } else { rest.contiguous()? });
        }
        Ok(cache.state.clone())
    }

    /// The sums `[count, width]` of windows from number `first` to `end` of these rows.
    fn pooled(&self, rows: &Tensor, first: i32, end: i32) -> Result<Tensor> {
        let numbers = self.places.dim(2);
        let windows = |from: i32| {
            let part = rows.slice(0, 0, end * self.ratio)?.slice(1, from, from + numbers)?;
            part.reshape(&[end, self.ratio, numbers])
        };
        let (keys, weights) = (
            windows(0)?,
            windows(numbers)?.astype(Dtype::Float32)?.add(&self.places)?,
        );
        let (keys, weights) = match self.overlaps {
            true => (
                self.overlapped(&keys, (first, end), 0.0)?,
                self.overlapped(&weights, (first, end), f32::NEG_INFINITY)?,
            ),
            false => (keys.slice(0, first, end)?, weights.slice(0, first, end)?),
        };
        keys.mul(&weights.softmax(1, true)?.astype(keys.dtype())?)?
            .sum(1, false)
    }

    /// The second halves of windows and, before them, the first halves of those before: `[count, 2 · ratio, width]`.
    /// The first window of a text has `nothing` before it.
    fn overlapped(&self, windows: &Tensor, (first, end): (i32, i32), nothing: f32) -> Result<Tensor> {
        let own = windows.slice(0, first, end)?.slice(2, self.width, 2 * self.width)?;
        let halves = windows.slice(2, 0, self.width)?;
        let earlier = match first {
            0 => {
                let nothing = Tensor::scalar(nothing, windows.dtype())?;
                let nothing = nothing.reshape(&[1, 1, 1])?.broadcast(&[1, self.ratio, self.width])?;
                match end {
                    1 => nothing,
                    _ => concatenate(&[&nothing, &halves.slice(0, 0, end - 1)?], 0)?,
                }
            }
            _ => halves.slice(0, first - 1, end - 1)?,
        };
        concatenate(&[&earlier, &own], 1)
    }
}

/// Marks the pooled keys of complete windows up to each of `length` positions after `before` others, `[length, count]`.
pub(super) fn visible(before: usize, length: i32, count: i32, ratio: i32) -> Result<Tensor> {
    let complete: Vec<i32> = (1..=length).map(|row| (before as i32 + row) / ratio).collect();
    let numbers = Tensor::from_i32(&(0..count).collect::<Vec<_>>(), &[1, count]);
    Tensor::from_i32(&complete, &[length, 1]).greater(&numbers)
}

/// The index of the pooled keys of one layer.
#[derive(Parameters)]
pub(super) struct PoolIndex {
    heads: i32,
    top_k: i32,
    rope: usize,
    pool: Pool,
    /// From the short vector of a query to the heads.
    wq_b: Linear,
    weights_proj: Linear,
    zero: Tensor,
    one: Tensor,
    /// The score of a key that is not seen.
    nothing: Tensor,
}

/// The rows of a step for an index.
pub(super) struct PoolQuery {
    /// The numbers that its pool keeps of them, `[rows, numbers]`.
    pub(super) raw: Tensor,
    /// `[1, heads, length, width]`, or `[sequences, heads, 1, width]`.
    pub(super) queries: Tensor,
    /// How much each head counts, the same with a width of 1.
    pub(super) weights: Tensor,
}

impl PoolIndex {
    /// Loads `compressor`, `wq_b` and `weights_proj` below `path`. `rank` is the width of a query's short vector.
    pub(super) fn load(
        pool: PoolConfig,
        config: PoolIndexConfig,
        rank: i32,
        path: &str,
        loading: &mut LoadContext<'_, '_>,
    ) -> error::Result<Self> {
        let name = |part: &str| format!("{path}.{part}");
        let (heads, width, hidden) = (
            config.heads as i32,
            config.head_dim as i32,
            loading.config.hidden_size as i32,
        );
        let scalar = |number: f32| Tensor::scalar(number, Dtype::Float32);
        Ok(Self {
            heads,
            top_k: config.top_k as i32,
            rope: config.rope,
            pool: Pool::load(pool, config.pool_rope, width, &name("compressor"), loading)?,
            wq_b: Linear::load(loading.weights, &name("wq_b"), rank, heads * width)?,
            weights_proj: Linear::load(loading.weights, &name("weights_proj"), hidden, heads)?,
            zero: scalar(0.0)?,
            one: scalar(1.0)?,
            nothing: scalar(f32::NEG_INFINITY)?,
        })
    }

    /// Its pool.
    pub(super) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The query of rows `x` `[rows, hidden]` and of the short vectors of their queries.
    pub(super) fn read(&self, x: &Tensor, squeezed: &Tensor, step: &Step<'_>) -> Result<PoolQuery> {
        let sequences = step.sequences as i32;
        let queries = by_head(&self.wq_b.forward(squeezed)?, self.heads, sequences)?;
        Ok(PoolQuery {
            raw: self.pool.read(x)?,
            queries: step.ropes[self.rope].forward(&queries, &step.rotations[self.rope])?,
            weights: by_head(&self.weights_proj.forward(x)?, self.heads, sequences)?,
        })
    }

    /// The pooled keys that queries of one sequence look at, by the keys `[1, 1, count, width]` of all.
    pub(super) fn choose(
        &self,
        (queries, weights): (&Tensor, &Tensor),
        keys: &Tensor,
        before: usize,
    ) -> Result<Chosen> {
        let (length, count) = (queries.dim(2), keys.dim(2));
        if count <= self.top_k {
            return Ok(Chosen::All);
        }
        let wide = |x: &Tensor| x.astype(Dtype::Float32);
        // A factor of all scores would choose the same.
        let scores = wide(queries)?
            .matmul(&wide(keys)?.swapaxes(2, 3)?)?
            .maximum(&self.zero)?;
        let scores = scores.mul(&wide(weights)?)?.sum(1, false)?.reshape(&[length, count])?;
        if length == 1 {
            let chosen = top_k_indices(&scores, self.top_k)?;
            return Ok(Chosen::Of(chosen.reshape(&[self.top_k])?));
        }
        let seen = visible(before, length, count, self.pool.ratio)?;
        let chosen = top_k_indices(&seen.select(&scores, &self.nothing)?, self.top_k)?;
        let marks = Tensor::zeros(&[length, count], Dtype::Float32)?.put_along(&chosen, &self.one, 1)?;
        Ok(Chosen::Marked(marks.greater(&self.zero)?.mul(&seen)?))
    }
}
