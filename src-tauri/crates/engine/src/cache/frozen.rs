//! Frozen copies of caches, from which a sequence can continue.

use mlx::Result;
use std::rc::Rc;

use protocol::KvBits;

use crate::cache::cross::FrozenCross;
use crate::cache::kv_buffer::KvBlocks;
use crate::cache::{Block, ByteCounter, Cache, PlainCache, QuantizedCache, RecurrentCache, RotatingCache};

/// A copy of one layer's cache that does not change.
pub enum FrozenCache {
    /// Of a plain one.
    Plain(KvBlocks),
    /// Of one that keeps latents.
    Mla(KvBlocks),
    /// Of a quantized one.
    Quantized(KvBlocks, KvBits),
    /// Of a rotating one.
    Rotating {
        /// Its last keys and values in order, as many as it keeps.
        last: Rc<Block>,
        /// How many positions it has read.
        offset: i32,
        /// How many it keeps.
        window: i32,
    },
    /// Of a recurrent one.
    Recurrent {
        /// The carried state.
        state: Rc<Block>,
        /// How many positions it has read.
        offset: usize,
    },
    /// Of one that keeps images.
    Cross(FrozenCross),
}

impl FrozenCache {
    /// True if a sequence can continue after exactly this many positions.
    pub fn can_trim_to(&self, positions: usize) -> bool {
        let exactly = positions;
        let positions = positions as i64;
        match self {
            Self::Plain(blocks) | Self::Mla(blocks) | Self::Quantized(blocks, _) => positions <= blocks.offset().into(),
            // Once it has turned, what lay before the window is gone.
            Self::Rotating { offset, window, .. } => {
                positions == i64::from(*offset) || (positions <= i64::from(*offset) && offset <= window)
            }
            // A state cannot be taken back.
            Self::Recurrent { offset, .. } => exactly == *offset,
            Self::Cross(images) => images.can_trim_to(exactly),
        }
    }

    /// A cache that has read this many positions, which are [reached](Self::can_trim_to).
    pub fn thaw(&self, positions: usize) -> Result<Cache> {
        let exactly = positions;
        let positions = positions as i32;
        Ok(match self {
            Self::Cross(images) => Cache::Cross(images.thaw(exactly)?),
            Self::Recurrent { state, offset } => Cache::Recurrent(RecurrentCache::thaw(state, *offset)),
            Self::Plain(blocks) => Cache::Plain(PlainCache::thaw(blocks, positions)?),
            Self::Mla(blocks) => Cache::Mla(PlainCache::thaw(blocks, positions)?),
            Self::Quantized(blocks, bits) => Cache::Quantized(QuantizedCache::thaw(blocks, *bits, positions)?),
            Self::Rotating { last, window, .. } => Cache::Rotating(RotatingCache::thaw(last, *window, positions)?),
        })
    }

    /// Keeps only the full blocks of the first `positions`; returns whether that is possible, as it is for full
    /// attention.
    pub fn trim(&mut self, positions: usize) -> bool {
        match self {
            Self::Plain(blocks) | Self::Mla(blocks) | Self::Quantized(blocks, _) => {
                blocks.trim(positions as i32);
                true
            }
            Self::Cross(images) => images.trim(positions),
            Self::Rotating { .. } | Self::Recurrent { .. } => false,
        }
    }

    /// Its tensors.
    pub fn blocks(&self) -> &[Rc<Block>] {
        match self {
            Self::Plain(blocks) | Self::Mla(blocks) | Self::Quantized(blocks, _) => blocks.blocks(),
            Self::Cross(images) => images.blocks(),
            Self::Rotating { last: block, .. } | Self::Recurrent { state: block, .. } => std::slice::from_ref(block),
        }
    }
}

impl Cache {
    /// A copy that does not change, in which only what is new since the last copy is new. Its tensors are still to be
    /// computed.
    pub fn freeze(&mut self, counter: &ByteCounter) -> Result<FrozenCache> {
        Ok(match self {
            Self::Plain(cache) => FrozenCache::Plain(cache.freeze(counter)?),
            Self::Mla(cache) => FrozenCache::Mla(cache.freeze(counter)?),
            Self::Quantized(cache) => FrozenCache::Quantized(cache.freeze(counter)?, cache.bits()),
            Self::Rotating(cache) => {
                let (last, offset, window) = cache.freeze(counter)?;
                FrozenCache::Rotating { last, offset, window }
            }
            Self::Cross(cache) => FrozenCache::Cross(cache.freeze(counter)),
            Self::Recurrent(cache) => FrozenCache::Recurrent {
                state: cache.freeze(counter)?,
                offset: cache.offset(),
            },
        })
    }
}
