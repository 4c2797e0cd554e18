//! An index that chooses blocks of positions for softmax attention, `self_attn.index_*`: a small head for each group of
//! key heads scores all positions by keys of its own, and a block counts as its best position (MiniMax M3).

use crate::config::limits::{check_head, check_key_heads, check_nonzero, check_rotation, check_width};
use crate::config::rope::RopeConfig;
use crate::error::{unusable, Error};
use crate::memory::IndexCost;

/// The index of one layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockIndexConfig {
    /// Heads that score, each for as many key heads (`sparse_num_index_heads`).
    pub heads: u32,
    /// Width of one of them, and of the key that they share (`sparse_index_dim`).
    pub head_dim: u32,
    /// Positions of a block (`sparse_block_size`).
    pub block: u32,
    /// Blocks that a query looks at; all if there are no more (`sparse_topk_blocks`).
    pub top_k: u32,
    /// How many of these are the last ones up to its own (`sparse_local_block`).
    pub local: u32,
    /// Index into [`DecoderConfig::ropes`](crate::DecoderConfig::ropes).
    pub rope: usize,
}

impl BlockIndexConfig {
    pub(crate) fn check(&self, key_heads: u32, ropes: &[RopeConfig]) -> Result<(), Error> {
        check_key_heads("sparse_num_index_heads", key_heads, self.heads)?;
        check_head("sparse_index_dim", self.head_dim)?;
        check_width(
            "sparse_num_index_heads",
            u64::from(self.heads) * u64::from(self.head_dim),
        )?;
        check_nonzero("sparse_block_size", self.block)?;
        check_width("sparse_block_size", self.block.into())?;
        check_width("sparse_topk_blocks", self.top_k.into())?;
        if self.local == 0 || self.local >= self.top_k {
            let reason = format!("{} of {} blocks cannot be the last ones", self.local, self.top_k);
            return unusable("sparse_local_block", reason);
        }
        match ropes.get(self.rope) {
            Some(rope) => check_rotation("sparse_index_dim", rope.dims, self.head_dim),
            None => Ok(()),
        }
    }

    pub(crate) fn cost(&self) -> IndexCost {
        IndexCost {
            heads: self.heads.into(),
            width: self.head_dim.into(),
            block: 1,
            seen: u64::from(self.block) * u64::from(self.top_k),
        }
    }
}
