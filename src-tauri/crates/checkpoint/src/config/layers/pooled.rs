//! Attention of many heads to one key, which is their value too: to those of a window, and before it to pooled ones,
//! each made of some positions, of which an index may choose (DeepSeek V4).

use crate::config::limits::{check_head, check_nonzero, check_range, check_width};
use crate::config::rope::RopeConfig;
use crate::error::{unusable, Error};
use crate::memory::{CacheFormat, MixerCost, Part, Prefill, ScoreShape};

/// The attention of one layer, `self_attn`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PooledAttentionConfig {
    /// Query heads.
    pub heads: u32,
    /// Width of a head and of the key.
    pub head_dim: u32,
    /// Width of the short vector that queries are made of.
    pub q_rank: u32,
    /// Groups of heads, each of which becomes a short vector of what it found.
    pub groups: u32,
    /// Width of that vector.
    pub o_rank: u32,
    /// True if the last projection must have a bias.
    pub o_bias: bool,
    /// Positions that a query sees as they are, itself included.
    pub window: u32,
    /// Index of the rope; the next one turns back what heads found.
    pub rope: usize,
    /// The pooled keys, if there are any.
    pub pool: Option<PoolConfig>,
}

/// Keys that are each made of some positions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PoolConfig {
    /// Positions of one.
    pub ratio: u32,
    /// True if those before it count, too.
    pub overlaps: bool,
    /// Index of the rope that turns pooled keys by their number.
    pub rope: usize,
    /// The index that chooses of them.
    pub index: Option<PoolIndexConfig>,
}

/// An index of pooled keys.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PoolIndexConfig {
    /// Its heads.
    pub heads: u32,
    /// Width of a head and of its key.
    pub head_dim: u32,
    /// Pooled keys that a query looks at.
    pub top_k: u32,
    /// Index of the rope of its queries.
    pub rope: usize,
    /// Index of the rope that turns its pooled keys by their number.
    pub pool_rope: usize,
}

impl PooledAttentionConfig {
    /// Refuses shapes that no model has.
    pub(crate) fn check(&self, ropes: &[RopeConfig]) -> Result<(), Error> {
        check_range("num_attention_heads", self.heads, 1..=4096)?;
        check_head("head_dim", self.head_dim)?;
        let all = u64::from(self.heads) * u64::from(self.head_dim);
        check_width("head_dim", all)?;
        for (field, number) in [
            ("q_lora_rank", self.q_rank),
            ("o_lora_rank", self.o_rank),
            ("o_groups", self.groups),
            ("sliding_window", self.window),
        ] {
            check_nonzero(field, number)?;
            check_width(field, number.into())?;
        }
        if !self.heads.is_multiple_of(self.groups) {
            let reason = format!("{} heads have no {} groups of one size", self.heads, self.groups);
            return unusable("o_groups", reason);
        }
        check_width("o_lora_rank", u64::from(self.groups) * u64::from(self.o_rank))?;
        check_turns(ropes, &[self.rope, self.rope + 1], self.head_dim)?;
        let Some(pool) = self.pool else { return Ok(()) };
        check_range("compress_ratios", pool.ratio, 2..=1024)?;
        check_turns(ropes, &[pool.rope], self.head_dim)?;
        let Some(index) = pool.index else { return Ok(()) };
        check_range("index_n_heads", index.heads, 1..=4096)?;
        check_head("index_head_dim", index.head_dim)?;
        check_width("index_head_dim", u64::from(index.heads) * u64::from(index.head_dim))?;
        check_nonzero("index_topk", index.top_k)?;
        check_width("index_topk", index.top_k.into())?;
        check_turns(ropes, &[index.rope, index.pool_rope], index.head_dim)
    }
}

/// Refuses ropes of heads of another width.
fn check_turns(ropes: &[RopeConfig], places: &[usize], head_dim: u32) -> Result<(), Error> {
    match places.iter().all(|place| {
        ropes
            .get(*place)
            .is_some_and(|rope| rope.dims == head_dim && 2 * rope.periods.len() == head_dim as usize)
    }) {
        true => Ok(()),
        false => unusable("qk_rope_head_dim", "a rope is for heads of another width"),
    }
}

impl PoolConfig {
    /// Numbers of a key, or of a weight, before it is pooled.
    fn stored(&self, width: u32) -> u64 {
        u64::from(width) * if self.overlaps { 2 } else { 1 }
    }

    /// Pooled keys of so many positions.
    fn count(&self, positions: u64) -> u64 {
        positions / u64::from(self.ratio)
    }
}

impl MixerCost for PooledAttentionConfig {
    fn weights(&self, hidden: u64) -> Vec<Part> {
        let [heads, width, rank, groups, made] =
            [self.heads, self.head_dim, self.q_rank, self.groups, self.o_rank].map(u64::from);
        let mut parts = vec![
            Part::matrix(rank + width, hidden),
            Part::matrix(heads * width, rank),
            Part::by_head(groups * made, heads * width / groups),
            Part::matrix(hidden, groups * made),
        ];
        let Some(pool) = self.pool else { return parts };
        parts.push(Part::matrix(2 * pool.stored(self.head_dim), hidden));
        if let Some(index) = pool.index {
            let (heads, width) = (u64::from(index.heads), u64::from(index.head_dim));
            parts.push(Part::matrix(2 * pool.stored(index.head_dim) + heads, hidden));
            parts.push(Part::matrix(heads * width, rank));
        }
        parts
    }

    fn cache(&self, format: &CacheFormat, positions: u64) -> u64 {
        let kept = positions.min(u64::from(self.window) + format.chunk);
        let window = kept * 2 * format.row(self.head_dim.into());
        let pooled = self.pool.map_or(0, |pool| {
            let index = pool.index.map_or(0, |index| index.head_dim);
            let raw = 2 * u64::from(pool.ratio) * 2 * (pool.stored(self.head_dim) + pool.stored(index));
            (pool.count(positions) * u64::from(self.head_dim + index) + raw) * format.element
        });
        window + pooled
    }

    fn prefill(&self, pass: &mut Prefill<'_>, keys_alone: bool) {
        let [heads, width, rank, groups, made] =
            [self.heads, self.head_dim, self.q_rank, self.groups, self.o_rank].map(u64::from);
        let hidden = pass.hidden;
        pass.product(hidden, rank + width);
        pass.norm(width, false);
        pass.turn(width);
        let pooled = self.pool.map_or(0, |pool| pool.count(pass.positions));
        if let Some(pool) = self.pool {
            pass.product(hidden, 2 * pool.stored(self.head_dim));
            pass.in_place(8);
            pass.make(2 * pool.stored(self.head_dim));
        }
        if keys_alone {
            return;
        }
        pass.norm(rank, false);
        pass.product(rank, heads * width);
        pass.norm(heads * width, false);
        pass.turn(heads * width);
        if let Some((pool, index)) = self.pool.and_then(|pool| Some((pool, pool.index?))) {
            let (heads, width) = (u64::from(index.heads), u64::from(index.head_dim));
            pass.product(hidden, 2 * pool.stored(index.head_dim) + heads);
            pass.product(rank, heads * width);
            pass.turn(heads * width);
            if pooled > index.top_k.into() {
                let all = pass.rows.saturating_mul(pooled);
                pass.hold_in_one_layer(
                    heads
                        .saturating_mul(all)
                        .saturating_mul(4)
                        .saturating_add(all.saturating_mul(16)),
                );
            }
            pass.in_place(12);
        }
        let window = pass.seen(self.window.into());
        pass.attend(&ScoreShape {
            heads,
            width,
            value_width: width,
            seen: window + pooled,
            sinks: true,
            capped: false,
            striped: false,
            masked: true,
        });
        pass.turn(heads * width);
        pass.make(heads * width);
        pass.make(groups * made);
        pass.product(groups * made, hidden);
    }
}
