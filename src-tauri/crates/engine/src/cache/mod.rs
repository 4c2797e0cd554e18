//! KV caches: keys and values of the positions that were read, `[1, key heads, positions, width]`. A sequence owns one per
//! layer that has keys of its own.

mod plain;
mod rotating;

pub use plain::PlainCache;
pub use rotating::RotatingCache;

use crate::error::Result;
use crate::layers::Parameters;
use crate::ops::Mask;
use crate::tensor::Tensor;

/// The keys and values that a query may look at, as their cache keeps them.
#[derive(Clone)]
pub enum Seen {
    /// As they were computed, `[1, key heads, positions, width]` each.
    Plain {
        /// Keys, positions turned into them.
        keys: Tensor,
        /// Values.
        values: Tensor,
    },
}

/// The cache of one layer.
pub enum Cache {
    /// Keeps every position.
    Plain(PlainCache),
    /// Keeps the last positions.
    Rotating(RotatingCache),
}

impl Cache {
    /// How many positions have been read.
    pub fn offset(&self) -> usize {
        match self {
            Self::Plain(cache) => cache.offset(),
            Self::Rotating(cache) => cache.offset(),
        }
    }

    /// Adds the keys and values of the next positions and returns those that these positions may look at.
    pub fn update(&mut self, keys: &Tensor, values: &Tensor) -> Result<Seen> {
        let (keys, values) = match self {
            Self::Plain(cache) => cache.update(keys, values)?,
            Self::Rotating(cache) => cache.update(keys, values)?,
        };
        Ok(Seen::Plain { keys, values })
    }

    /// Which of the keys that the next [`Cache::update`] returns each of the next `length` positions may see.
    pub fn mask(&self, length: usize) -> Mask {
        match self {
            _ if length == 1 => Mask::None,
            Self::Plain(_) => Mask::Causal,
            Self::Rotating(cache) => cache.mask(length),
        }
    }
}

impl Parameters for Cache {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        match self {
            Self::Plain(cache) => cache.visit(visitor),
            Self::Rotating(cache) => cache.visit(visitor),
        }
    }
}
