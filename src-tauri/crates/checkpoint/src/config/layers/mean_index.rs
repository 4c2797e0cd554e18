//! An index that chooses blocks of positions for softmax attention, `self_attn.indexer`, by the mean of the keys that
//! it has for a block: small heads score it together, and all heads of the attention look at what they chose (Qwen 4).

use crate::config::limits::{check_head, check_nonzero, check_rotation, check_width};
use crate::config::rope::RopeConfig;
use crate::error::{unusable, Error};
use crate::memory::IndexCost;

/// The index of one layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeanIndexConfig {
    /// Heads that score (`indexer_n_heads`).
    pub heads: u32,
    /// Width of one of them, and of the key that they share (`indexer_head_dim`).
    pub head_dim: u32,
    /// Positions of a block (`indexer_compress_ratio`).
    pub block: u32,
    /// Complete blocks that a query looks at beside the positions after them; all if there are no more
    /// (`indexer_budget` over `indexer_compress_ratio`).
    pub top_k: u32,
    /// Index into [`DecoderConfig::ropes`](crate::DecoderConfig::ropes).
    pub rope: usize,
}

impl MeanIndexConfig {
    pub(crate) fn check(&self, ropes: &[RopeConfig]) -> Result<(), Error> {
        check_nonzero("indexer_n_heads", self.heads)?;
        check_head("indexer_head_dim", self.head_dim)?;
        check_width(
            "indexer_n_heads",
            (u64::from(self.heads) + 1).saturating_mul(self.head_dim.into()),
        )?;
        check_nonzero("indexer_compress_ratio", self.block)?;
        check_width("indexer_compress_ratio", self.block.into())?;
        check_nonzero("indexer_budget", self.top_k)?;
        check_width("indexer_budget", self.top_k.into())?;
        let Some(rope) = ropes.get(self.rope) else {
            return Ok(());
        };
        if rope.dynamic.is_some() {
            return unusable("rope_parameters", "blocks of an index cannot turn by a base that grows");
        }
        check_rotation("indexer_head_dim", rope.dims, self.head_dim)
    }

    pub(crate) fn cost(&self) -> IndexCost {
        IndexCost {
            heads: self.heads.into(),
            width: self.head_dim.into(),
            block: self.block.into(),
            seen: u64::from(self.block) * u64::from(self.top_k),
        }
    }
}
