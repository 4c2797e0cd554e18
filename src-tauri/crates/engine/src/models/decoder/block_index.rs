//! The index that chooses the blocks of positions that softmax attention looks at (MiniMax M3): a head for each group of
//! key heads scores every position by a key that all heads share, and a block counts as its best position. The last
//! blocks up to a query's own are always among them.

use checkpoint::config::decoder::BlockIndexConfig;
use mlx::ops::{concatenate, Mask};
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::cache::{seen, Cache, KvView, PlainCache};
use crate::error;
use crate::layers::{norm_weight, scaled_dot_product_attention, top_k_indices, RmsNorm};
use crate::models::decoder::by_head::by_head;
use crate::models::decoder::load_context::LoadContext;
use crate::models::decoder::step::Step;

/// The index of one layer.
#[derive(Parameters)]
pub(super) struct BlockIndex {
    heads: i32,
    width: i32,
    block: i32,
    top_k: i32,
    local: i32,
    rope: usize,
    /// Factors of each head's query and of the key, `[heads + 1, width]`.
    norm: RmsNorm,
    zero: Tensor,
    one: Tensor,
    /// The score of a position that is not seen, and that of a block that is looked at in any case.
    nothing: Tensor,
    always: Tensor,
}

/// The queries and keys of the rows of a step.
pub(super) struct BlockQuery {
    /// `[1, heads, length, width]`, or `[sequences, heads, 1, width]`.
    pub(super) queries: Tensor,
    /// The keys of these positions, the same with one head.
    pub(super) keys: Tensor,
}

/// The positions that queries of one sequence look at.
enum Chosen {
    /// All that they see.
    All,
    /// Those of these numbers for each head, `[heads, positions]`, and all from this one on, for one query.
    Of(Tensor, i32),
    /// Those marked true, `[heads, length, positions]`.
    Marked(Tensor),
}

impl BlockIndex {
    /// Loads `index_q_norm` and `index_k_norm` below `path`; the projections stand beside those of the attention.
    pub(super) fn load(
        config: &BlockIndexConfig,
        path: &str,
        loading: &mut LoadContext<'_, '_>,
    ) -> error::Result<Self> {
        let (heads, width) = (config.heads as i32, config.head_dim as i32);
        let norm = loading.config.norm;
        let mut factors = |name: &str| -> error::Result<Tensor> {
            let factors = norm_weight(loading.weights, &format!("{path}.{name}"), width, norm)?;
            Ok(factors.reshape(&[1, width])?)
        };
        let (queries, key) = (factors("index_q_norm")?, factors("index_k_norm")?);
        let rows = [vec![&queries; heads as usize], vec![&key]].concat();
        let scalar = |number: f32| Tensor::scalar(number, Dtype::Float32);
        let index = Self {
            heads,
            width,
            block: config.block as i32,
            top_k: config.top_k as i32,
            local: config.local as i32,
            rope: config.rope,
            norm: RmsNorm::new(concatenate(&rows, 0)?, norm.eps),
            zero: scalar(0.0)?,
            one: scalar(1.0)?,
            nothing: scalar(f32::NEG_INFINITY)?,
            always: scalar(f32::INFINITY)?,
        };
        loading.weights.materialize(index.tensors())?;
        Ok(index)
    }

    /// Its empty cache.
    pub(super) fn cache() -> Cache {
        Cache::Mla(PlainCache::default())
    }

    /// Numbers that it reads of each row.
    pub(super) fn projected(&self) -> i32 {
        (self.heads + 1) * self.width
    }

    /// The queries and keys of rows by their projections `[rows, (heads + 1) · width]`.
    pub(super) fn read(&self, projected: &Tensor, step: &Step<'_>) -> Result<BlockQuery> {
        let (rows, all) = (projected.dim(0), self.heads + 1);
        let normed = self.norm.forward(&projected.reshape(&[rows, all, self.width])?)?;
        let heads = by_head(&normed.reshape(&[rows, all * self.width])?, all, step.sequences as i32)?;
        let turned = step.ropes[self.rope].forward(&heads, &step.rotations[self.rope])?;
        Ok(BlockQuery {
            queries: turned.slice(1, 0, self.heads)?,
            keys: turned.slice(1, self.heads, all)?,
        })
    }

    /// Attention of queries `[1, query heads, length, …]` to the blocks that the index chooses by its own `asked` `[1,
    /// heads, length, width]` and the keys `[1, 1, positions, width]` of all positions; `[length, query heads · value
    /// width]`.
    pub(super) fn attend(
        &self,
        (asked, index_keys): (&Tensor, &Tensor),
        (queries, seen): (&Tensor, &KvView),
        scale: f32,
        mask: &Mask,
    ) -> Result<Tensor> {
        let chosen = self.choose(asked, index_keys)?;
        if matches!(chosen, Chosen::All) {
            return scaled_dot_product_attention(queries, seen, scale, mask, None);
        }
        let each = (0..self.heads).map(|head| {
            let own = |x: &Tensor| {
                let count = x.dim(1) / self.heads;
                x.slice(1, head * count, (head + 1) * count)
            };
            let of_head = |x: &Tensor| x.slice(0, head, head + 1)?.reshape(&x.shape()[1..]);
            let (view, mask) = match &chosen {
                Chosen::All => (seen.map(own)?, Mask::None),
                Chosen::Of(numbers, end) => {
                    let numbers = of_head(numbers)?;
                    let looked_at = |x: &Tensor| {
                        let x = own(x)?;
                        concatenate(&[&x.take(&numbers, 2)?, &x.slice(2, *end, x.dim(2))?], 2)
                    };
                    (seen.map(looked_at)?, Mask::None)
                }
                Chosen::Marked(marks) => (seen.map(own)?, Mask::Array(of_head(marks)?)),
            };
            scaled_dot_product_attention(&own(queries)?, &view, scale, &mask, None)
        });
        let each = each.collect::<Result<Vec<_>>>()?;
        concatenate(&each.iter().collect::<Vec<_>>(), 1)
    }

    /// The positions that queries look at, by the keys of all.
    fn choose(&self, queries: &Tensor, keys: &Tensor) -> Result<Chosen> {
        let (length, positions) = (queries.dim(2), keys.dim(2));
        let blocks = (positions + self.block - 1) / self.block;
        if blocks <= self.top_k {
            return Ok(Chosen::All);
        }
        let wide = |x: &Tensor| x.astype(Dtype::Float32);
        let scores = |keys: &Tensor| wide(queries)?.matmul(&wide(keys)?.swapaxes(2, 3)?);
        if length == 1 {
            // The last blocks are looked at in any case, and those before them are whole.
            let before = blocks - self.local;
            let whole = before * self.block;
            let scores = scores(&keys.slice(2, 0, whole)?)?.reshape(&[self.heads, before, self.block])?;
            let count = self.top_k - self.local;
            let chosen = top_k_indices(&scores.max(2, false)?, count)?.astype(Dtype::Int32)?;
            let first = chosen.mul(&Tensor::from_i32(&[self.block], &[1]))?;
            let within: Vec<i32> = (0..self.block).collect();
            let numbers = first
                .reshape(&[self.heads, count, 1])?
                .add(&Tensor::from_i32(&within, &[1, 1, self.block]))?;
            return Ok(Chosen::Of(numbers.reshape(&[self.heads, count * self.block])?, whole));
        }
        let rows = self.heads * length;
        let seen = seen(positions - length, length, None, None)?;
        let scores = seen.select(&scores(keys)?, &self.nothing)?;
        let scores = match blocks * self.block - positions {
            0 => scores,
            rest => {
                let rest = self.nothing.broadcast(&[1, self.heads, length, rest])?;
                concatenate(&[&scores, &rest], 3)?
            }
        };
        let best = scores
            .reshape(&[self.heads, length, blocks, self.block])?
            .max(3, false)?;
        let best = self
            .near(positions - length, length, blocks)?
            .select(&self.always, &best)?;
        let chosen = top_k_indices(&best.reshape(&[rows, blocks])?, self.top_k)?;
        let marks = Tensor::zeros(&[rows, blocks], Dtype::Float32)?.put_along(&chosen, &self.one, 1)?;
        let marks = marks.greater(&self.zero)?.reshape(&[self.heads, length, blocks, 1])?;
        let each = marks.broadcast(&[self.heads, length, blocks, self.block])?;
        let each = each.reshape(&[self.heads, length, blocks * self.block])?;
        Ok(Chosen::Marked(each.slice(2, 0, positions)?.mul(&seen)?))
    }

    /// Marks the last blocks up to that of each of `length` positions after `before` others, `[length, blocks]`.
    fn near(&self, before: i32, length: i32, blocks: i32) -> Result<Tensor> {
        let own: Vec<i32> = (before..before + length)
            .map(|position| position / self.block)
            .collect();
        let oldest: Vec<i32> = own.iter().map(|block| block - self.local).collect();
        let numbers = Tensor::from_i32(&(0..blocks).collect::<Vec<_>>(), &[1, blocks]);
        let past = Tensor::from_i32(&own, &[length, 1]).greater_equal(&numbers)?;
        past.mul(&numbers.greater(&Tensor::from_i32(&oldest, &[length, 1]))?)
    }
}
