//! The index that chooses blocks of positions by the mean of their keys (Qwen 4): a block is scored by all of its heads
//! together once it is complete, and the positions after the last complete one are looked at in any case.

use checkpoint::config::decoder::MeanIndexConfig;
use mlx::ops::{concatenate, Mask};
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::cache::{seen, Cache, KvView, RecurrentCache};
use crate::error;
use crate::layers::{norm_weight, scaled_dot_product_attention, top_k_indices, RmsNorm, Rotation, SequenceRows};
use crate::models::decoder::by_head::by_head;
use crate::models::decoder::load_context::LoadContext;
use crate::models::decoder::step::{Chosen, Step};

/// The index of one layer.
#[derive(Parameters)]
pub(super) struct MeanIndex {
    heads: i32,
    width: i32,
    block: i32,
    top_k: i32,
    rope: usize,
    q_norm: RmsNorm,
    k_norm: RmsNorm,
    share: Tensor,
    zero: Tensor,
    one: Tensor,
    /// The score of a block that is not seen.
    nothing: Tensor,
}

/// The queries and keys of the rows of a step.
pub(super) struct MeanQuery {
    /// `[1, heads, length, width]`, or `[sequences, heads, 1, width]`.
    queries: Tensor,
    /// The keys as they were projected, `[rows, width]`.
    keys: Tensor,
}

impl MeanIndex {
    /// Loads `indexer.q_layernorm` and `indexer.k_layernorm` below `path`; the projection stands beside those of the
    /// attention.
    pub(super) fn load(config: &MeanIndexConfig, path: &str, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let (width, norm) = (config.head_dim as i32, loading.config.norm);
        let mut factors = |name: &str| norm_weight(loading.weights, &format!("{path}.indexer.{name}"), width, norm);
        let scalar = |number: f32| Tensor::scalar(number, Dtype::Float32);
        let index = Self {
            heads: config.heads as i32,
            width,
            block: config.block as i32,
            top_k: config.top_k as i32,
            rope: config.rope,
            q_norm: RmsNorm::new(factors("q_layernorm")?, norm.eps),
            k_norm: RmsNorm::new(factors("k_layernorm")?, norm.eps),
            share: scalar(1.0 / config.block as f32)?,
            zero: scalar(0.0)?,
            one: scalar(1.0)?,
            nothing: scalar(f32::NEG_INFINITY)?,
        };
        loading.weights.materialize(index.tensors())?;
        Ok(index)
    }

    /// Its empty cache.
    pub(super) fn cache() -> Cache {
        Cache::Recurrent(RecurrentCache::default())
    }

    /// Numbers that it reads of each row.
    pub(super) fn projected(&self) -> i32 {
        (self.heads + 1) * self.width
    }

    /// The queries and keys of rows by their projections `[rows, (heads + 1) · width]`.
    pub(super) fn read(&self, projected: &Tensor, step: &Step<'_>) -> Result<MeanQuery> {
        let (rows, end) = (projected.dim(0), self.heads * self.width);
        let queries = projected.slice(1, 0, end)?.reshape(&[rows, self.heads, self.width])?;
        let queries = self.q_norm.forward(&queries)?.reshape(&[rows, end])?;
        let queries = by_head(&queries, self.heads, step.sequences as i32)?;
        Ok(MeanQuery {
            queries: step.ropes[self.rope].forward(&queries, &step.rotations[self.rope])?,
            keys: projected.slice(1, end, end + self.width)?,
        })
    }

    /// Attention of queries `[1, query heads, length, …]` of sequence `index` to the blocks that the index chooses by its
    /// own `asked` for these rows; `[length, query heads · value width]`.
    pub(super) fn attend(
        &self,
        (asked, cache): (&MeanQuery, &mut RecurrentCache),
        (queries, view): (&Tensor, &KvView),
        scale: f32,
        mask: &Mask,
        (step, rows): (&Step<'_>, SequenceRows),
    ) -> Result<Tensor> {
        let means = self.update(&rows.of(&asked.keys)?, cache, (step, rows.index()))?;
        let chosen = match &means {
            Some(means) => self.choose(&rows.of(&asked.queries)?, means, cache.offset() as i32)?,
            None => Chosen::All,
        };
        match chosen {
            Chosen::All => scaled_dot_product_attention(queries, view, scale, mask, None),
            Chosen::Of(numbers) => {
                let view = view.map(|x| x.take(&numbers, 2))?;
                scaled_dot_product_attention(queries, &view, scale, &Mask::None, None)
            }
            Chosen::Marked(marks) => scaled_dot_product_attention(queries, view, scale, &Mask::Array(marks), None),
        }
    }

    /// Takes in the keys `[length, width]` of the next positions of a sequence and gives those of all complete blocks,
    /// `[1, 1, blocks, width]`; `None` if there are none yet. The cache keeps the keys of the block that is not complete,
    /// each with the turn of its position, in 32 bits.
    fn update(
        &self,
        keys: &Tensor,
        cache: &mut RecurrentCache,
        (step, index): (&Step<'_>, usize),
    ) -> Result<Option<Tensor>> {
        let (length, dtype) = (keys.dim(0), keys.dtype());
        let rope = &step.ropes[self.rope];
        let Rotation::Table { cos, sin } = rope.at_positions(&step.positions(index, length as usize))? else {
            unreachable!("positions have a table")
        };
        cache.advance(length as usize);
        let pairs = cos.dim(3);
        let turns = |table: &Tensor| table.reshape(&[length, pairs]);
        let new = concatenate(&[&keys.astype(Dtype::Float32)?, &turns(&cos)?, &turns(&sin)?], 1)?;
        let all = match cache.conv.take() {
            Some(kept) => concatenate(&[&kept, &new], 0)?,
            None => new,
        };
        let (numbers, blocks) = (all.dim(1), all.dim(0) / self.block);
        let whole = blocks * self.block;
        if whole < all.dim(0) {
            // A slice keeps the complete tensor that it was cut from alive.
            cache.conv = Some(all.slice(0, whole, all.dim(0))?.contiguous()?);
        }
        if blocks > 0 {
            let each = all.slice(0, 0, whole)?.reshape(&[blocks, self.block, numbers])?;
            let sum = each.slice(2, 0, self.width)?.sum(1, false)?;
            let means = self.k_norm.forward(&sum.mul(&self.share)?.astype(dtype)?)?;
            let first = |from: i32| {
                let turns = each.slice(1, 0, 1)?.slice(2, from, from + pairs)?;
                turns.reshape(&[1, 1, blocks, pairs])
            };
            let turn = Rotation::Table {
                cos: first(self.width)?,
                sin: first(self.width + pairs)?,
            };
            let means = rope.forward(&means.reshape(&[1, 1, blocks, self.width])?, &turn)?;
            cache.state = Some(match cache.state.take() {
                Some(earlier) => concatenate(&[&earlier, &means], 2)?,
                None => means,
            });
        }
        Ok(cache.state.clone())
    }

    /// The positions that queries `[1, heads, length, width]`, the last of `positions`, look at by the keys of blocks.
    fn choose(&self, queries: &Tensor, means: &Tensor, positions: i32) -> Result<Chosen> {
        let (length, complete) = (queries.dim(2), means.dim(2));
        if complete <= self.top_k {
            return Ok(Chosen::All);
        }
        let wide = |x: &Tensor| x.astype(Dtype::Float32);
        let scores = wide(queries)?
            .matmul(&wide(means)?.swapaxes(2, 3)?)?
            .maximum(&self.zero)?;
        let scores = scores.sum(1, false)?.reshape(&[length, complete])?;
        if length == 1 {
            let chosen = top_k_indices(&scores, self.top_k)?.astype(Dtype::Int32)?;
            let first = chosen
                .reshape(&[self.top_k, 1])?
                .mul(&Tensor::from_i32(&[self.block], &[1]))?;
            let within: Vec<i32> = (0..self.block).collect();
            let numbers = first.add(&Tensor::from_i32(&within, &[1, self.block]))?;
            let numbers = numbers.reshape(&[self.top_k * self.block])?;
            let rest: Vec<i32> = (complete * self.block..positions).collect();
            return Ok(Chosen::Of(match rest.is_empty() {
                true => numbers,
                false => concatenate(&[&numbers, &Tensor::from_i32(&rest, &[rest.len() as i32])], 0)?,
            }));
        }
        let before = positions - length;
        let own: Vec<i32> = (1..=length).map(|row| (before + row) / self.block).collect();
        let own = Tensor::from_i32(&own, &[length, 1]);
        let numbers = |count: i32| Tensor::from_i32(&(0..count).collect::<Vec<_>>(), &[1, count]);
        let visible = own.greater(&numbers(complete))?;
        let chosen = top_k_indices(&visible.select(&scores, &self.nothing)?, self.top_k)?;
        let blocks = (positions + self.block - 1) / self.block;
        let marks = Tensor::zeros(&[length, blocks], Dtype::Float32)?.put_along(&chosen, &self.one, 1)?;
        // Blocks that are not complete for a query are looked at as far as it sees them.
        let marks = marks.maximum(&numbers(blocks).greater_equal(&own)?.astype(Dtype::Float32)?)?;
        let each = marks
            .reshape(&[length, blocks, 1])?
            .broadcast(&[length, blocks, self.block])?;
        let each = each.reshape(&[length, blocks * self.block])?.slice(1, 0, positions)?;
        Ok(Chosen::Marked(
            each.greater(&self.zero)?.mul(&seen(before, length, None, None)?)?,
        ))
    }
}
