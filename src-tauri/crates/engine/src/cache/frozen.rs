//! Frozen copies of caches, from which a sequence can go on.

use std::rc::Rc;

use protocol::KvBits;

use crate::cache::growing::Pages;
use crate::cache::{Block, Cache, Ledger, PlainCache, QuantizedCache, RecurrentCache, RotatingCache};
use crate::error::Result;

/// A copy of one layer's cache that does not change.
pub enum Frozen {
    /// Of a plain one.
    Plain(Pages),
    /// Of a quantised one.
    Quantized(Pages, KvBits),
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
        /// What it carried on.
        state: Rc<Block>,
        /// How many positions it has read.
        offset: usize,
    },
}

impl Frozen {
    /// Whether a sequence can go on after exactly this many positions.
    pub fn reaches(&self, positions: usize) -> bool {
        let exactly = positions;
        let positions = positions as i64;
        match self {
            Self::Plain(pages) | Self::Quantized(pages, _) => positions <= pages.offset().into(),
            // Once it has turned, what lay before the window is gone.
            Self::Rotating { offset, window, .. } => {
                positions == i64::from(*offset) || (positions <= i64::from(*offset) && offset <= window)
            }
            // A state cannot be taken back.
            Self::Recurrent { offset, .. } => exactly == *offset,
        }
    }

    /// A cache that has read this many positions, which are [reached](Self::reaches).
    pub fn thaw(&self, positions: usize) -> Result<Cache> {
        let positions = positions as i32;
        Ok(match self {
            Self::Recurrent { state, offset } => Cache::Recurrent(RecurrentCache::thaw(state, *offset)),
            Self::Plain(pages) => Cache::Plain(PlainCache::thaw(pages, positions)?),
            Self::Quantized(pages, bits) => Cache::Quantized(QuantizedCache::thaw(pages, *bits, positions)?),
            Self::Rotating { last, window, .. } => Cache::Rotating(RotatingCache::thaw(last, *window, positions)?),
        })
    }

    /// Drops what lies behind a multiple of [`BLOCK`] positions, where nothing but rows is kept; the result is whether it is
    /// so short now.
    pub fn shorten(&mut self, positions: usize) -> bool {
        match self {
            Self::Plain(pages) | Self::Quantized(pages, _) => {
                pages.shorten(positions as i32);
                true
            }
            Self::Rotating { .. } | Self::Recurrent { .. } => false,
        }
    }

    /// What it is made of.
    pub fn blocks(&self) -> &[Rc<Block>] {
        match self {
            Self::Plain(pages) | Self::Quantized(pages, _) => pages.blocks(),
            Self::Rotating { last: block, .. } | Self::Recurrent { state: block, .. } => std::slice::from_ref(block),
        }
    }
}

impl Cache {
    /// A copy that does not change, in which only what is new since the last copy is new. Its tensors are still to be
    /// computed.
    pub fn freeze(&mut self, ledger: &Ledger) -> Result<Frozen> {
        Ok(match self {
            // Nothing that has read a position becomes packed, so that it need not be told apart any longer.
            Self::Plain(cache) | Self::Latent(cache) => Frozen::Plain(cache.freeze(ledger)?),
            Self::Quantized(cache) => Frozen::Quantized(cache.freeze(ledger)?, cache.bits()),
            Self::Rotating(cache) => {
                let (last, offset, window) = cache.freeze(ledger)?;
                Frozen::Rotating { last, offset, window }
            }
            Self::Recurrent(cache) => Frozen::Recurrent {
                state: cache.freeze(ledger)?,
                offset: cache.offset(),
            },
        })
    }
}
