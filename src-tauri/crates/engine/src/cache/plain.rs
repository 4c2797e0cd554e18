//! The cache of full attention.

use mlx::parameters::Parameters;
use mlx::recording::CachePlace;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::cache::kv_buffer::{KvBlocks, KvBuffer};
use crate::cache::ByteCounter;

/// Keeps every position, as it was computed.
#[derive(Default, Parameters)]
pub struct PlainCache(KvBuffer);

impl PlainCache {
    /// The number of positions that have been read.
    pub fn offset(&self) -> usize {
        self.0.offset() as usize
    }

    /// Adds positions and returns all.
    pub fn update(&mut self, keys: &Tensor, values: &Tensor) -> Result<(Tensor, Tensor)> {
        let mut seen = self.0.append(&[keys, values])?.into_iter();
        match (seen.next(), seen.next()) {
            (Some(keys), Some(values)) => Ok((keys, values)),
            _ => unreachable!("two tensors were added"),
        }
    }

    /// Keys and values with room for one more position; `None` before the first.
    pub fn place(&mut self) -> Result<Option<CachePlace<'_>>> {
        Ok(match self.0.place()? {
            [keys, values] => Some(CachePlace { keys, values }),
            _ => None,
        })
    }

    /// Counts a position that was written there.
    pub fn count_written(&mut self) {
        self.0.count_written();
    }

    /// Takes back the last positions.
    pub fn drop_last(&mut self, count: usize) {
        self.0.drop_last(count as i32);
    }

    /// A copy that does not change.
    pub fn freeze(&mut self, counter: &ByteCounter) -> Result<KvBlocks> {
        self.0.freeze(counter)
    }

    /// A cache that begins with the first positions of a copy.
    pub fn thaw(blocks: &KvBlocks, positions: i32) -> Result<Self> {
        Ok(Self(blocks.thaw(positions)?))
    }
}
