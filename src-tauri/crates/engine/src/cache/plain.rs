//! The cache of full attention.

use mlx::parameters::Parameters;
use mlx::recording::{CachePlace, CacheShape};
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

    /// All keys and values; `None` before the first position.
    pub fn seen(&self) -> Result<Option<(Tensor, Tensor)>> {
        let mut seen = self.0.seen()?.into_iter();
        Ok(seen.next().zip(seen.next()))
    }

    /// The same for keys without values.
    pub fn update_keys(&mut self, keys: &Tensor) -> Result<Tensor> {
        match self.0.append(&[keys])?.pop() {
            Some(keys) => Ok(keys),
            None => unreachable!("a tensor was added"),
        }
    }

    /// Keys and values with room for `more` positions.
    pub fn place(&mut self, shape: CacheShape, more: i32) -> Result<Option<CachePlace<'_>>> {
        Ok(match self.0.place(shape, more)? {
            [keys, values] => Some(CachePlace { keys, values }),
            _ => None,
        })
    }

    /// Counts positions that were written there.
    pub fn count_written(&mut self, count: i32) {
        self.0.count_written(count);
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
