//! KV caches: keys and values of the positions that were read, `[1, key heads, positions, width]`. A sequence owns one
//! per layer that has keys of its own, and two of one that carries a state beside them. A cache can be
//! [frozen](Cache::freeze), and another sequence can continue from the copy.

mod block;
mod cross;
mod frozen;
pub mod kv_buffer;
mod plain;
mod quantized;
mod recurrent;
mod rotating;

pub use block::{Block, ByteCounter};
pub use cross::CrossCache;
pub use frozen::FrozenCache;
pub use plain::PlainCache;
use protocol::KvBits;
pub use quantized::QuantizedCache;
pub use recurrent::RecurrentCache;
pub use rotating::RotatingCache;

use std::ops::Range;

use crate::kernels::kernels;
use mlx::device::{device, Device};
use mlx::ops::Mask;
use mlx::parameters::Parameters;
use mlx::quantized::QuantizedTensor;
use mlx::recording::{CachePlace, CacheShape};
use mlx::tensor::Tensor;
use mlx::Result;

/// The keys and values that a query may attend to, as their cache stores them.
#[derive(Clone)]
pub enum KvView {
    /// As they were computed, `[1, key heads, positions, width]` each.
    Plain {
        /// Keys, positions turned into them.
        keys: Tensor,
        /// Values.
        values: Tensor,
    },
    /// In few bits, the same axes.
    Quantized {
        /// Keys, positions turned into them.
        keys: QuantizedTensor,
        /// Values.
        values: QuantizedTensor,
    },
}

impl KvView {
    /// The same without the positions before `start`.
    pub fn since(self, start: i32) -> Result<Self> {
        match start {
            0 => Ok(self),
            _ => self.map(|x| x.slice(2, start, x.dim(2))),
        }
    }

    /// A part of the heads or of the positions of each tensor.
    pub fn map(&self, part: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Self> {
        Ok(match self {
            Self::Plain { keys, values } => Self::Plain {
                keys: part(keys)?,
                values: part(values)?,
            },
            Self::Quantized { keys, values } => Self::Quantized {
                keys: keys.map(&part)?,
                values: values.map(&part)?,
            },
        })
    }

    /// Keys and values as numbers, dequantized if they are stored in few bits.
    pub fn dequantized(&self) -> Result<(Tensor, Tensor)> {
        Ok(match self {
            Self::Plain { keys, values } => (keys.clone(), values.clone()),
            Self::Quantized { keys, values } => (keys.dequantize()?, values.dequantize()?),
        })
    }
}

/// The cache of one layer.
#[derive(Parameters)]
pub enum Cache {
    /// Keeps every position.
    Plain(PlainCache),
    /// Keeps every position of latents, the short vectors that keys and values are made of, or of the keys of an index.
    /// They are small as they are, and what few bits lose of them is lost in every head, so it stays plain.
    Mla(PlainCache),
    /// Keeps every position, in few bits.
    Quantized(QuantizedCache),
    /// Keeps the last positions.
    Rotating(RotatingCache),
    /// Keeps a state that sums up all positions, instead of the positions.
    Recurrent(RecurrentCache),
    /// Keeps images that are attended to next to the text.
    Cross(CrossCache),
}

impl Cache {
    /// The cache for keys and values of this many bits: an empty plain one becomes quantized, others stay.
    pub fn quantized(self, bits: Option<KvBits>) -> Self {
        match (self, bits) {
            (Self::Plain(_), Some(bits)) => Self::Quantized(QuantizedCache::new(bits)),
            (cache, _) => cache,
        }
    }

    /// The number of positions that have been read.
    pub fn offset(&self) -> usize {
        match self {
            Self::Plain(cache) | Self::Mla(cache) => cache.offset(),
            Self::Quantized(cache) => cache.offset(),
            Self::Rotating(cache) => cache.offset(),
            Self::Recurrent(cache) => cache.offset(),
            Self::Cross(cache) => cache.offset(),
        }
    }

    /// Adds the keys and values of the next positions and returns those that these positions may attend to.
    pub fn update(&mut self, keys: &Tensor, values: &Tensor) -> Result<KvView> {
        let kept = match self {
            Self::Mla(_) => (None, None),
            _ => (kernels().to_kv_dtype(keys)?, kernels().to_kv_dtype(values)?),
        };
        let (keys, values) = (kept.0.as_ref().unwrap_or(keys), kept.1.as_ref().unwrap_or(values));
        if let Self::Quantized(cache) = self {
            if QuantizedCache::supports(keys.dim(3)) && QuantizedCache::supports(values.dim(3)) {
                let (keys, values) = cache.update(keys, values)?;
                return Ok(KvView::Quantized { keys, values });
            }
            // Only the first keys tell the width, so nothing was stored yet if it cannot be quantized.
            *self = Self::Plain(PlainCache::default());
        }
        let (keys, values) = match self {
            Self::Plain(cache) | Self::Mla(cache) => cache.update(keys, values)?,
            Self::Rotating(cache) => cache.update(keys, values)?,
            Self::Quantized(_) => unreachable!("it has just returned or become plain"),
            Self::Recurrent(_) | Self::Cross(_) => unreachable!("attention made its own cache"),
        };
        Ok(KvView::Plain { keys, values })
    }

    /// The keys and values that the next position may attend to beside its own; `None` if there are none.
    pub fn seen(&self) -> Result<Option<KvView>> {
        if let Self::Quantized(cache) = self {
            let seen = cache.seen()?;
            return Ok(seen.map(|(keys, values)| KvView::Quantized { keys, values }));
        }
        let seen = match self {
            Self::Plain(cache) => cache.seen()?,
            Self::Rotating(cache) => cache.seen()?,
            Self::Mla(_) | Self::Quantized(_) | Self::Recurrent(_) | Self::Cross(_) => None,
        };
        Ok(seen.map(|(keys, values)| KvView::Plain { keys, values }))
    }

    /// Adds the keys that an index has for the next positions and returns all.
    pub fn update_index(&mut self, keys: &Tensor) -> Result<Tensor> {
        match self {
            Self::Mla(cache) => cache.update_keys(keys),
            _ => unreachable!("an index made its own cache"),
        }
    }

    /// Keys and values with room for `more` positions, for a recorded step to write. `None` if they are kept in another
    /// way, or it cannot write so many at once.
    pub fn place(&mut self, shape: CacheShape, more: i32) -> Result<Option<CachePlace<'_>>> {
        match self {
            Self::Plain(cache) => cache.place(shape, more),
            Self::Rotating(cache) => cache.place(shape, more),
            Self::Mla(_) | Self::Quantized(_) | Self::Recurrent(_) | Self::Cross(_) => Ok(None),
        }
    }

    /// Counts positions that a recorded step writes.
    pub fn count_written(&mut self, count: i32) {
        match self {
            Self::Plain(cache) => cache.count_written(count),
            Self::Rotating(cache) => cache.count_written(count),
            Self::Mla(_) | Self::Quantized(_) | Self::Recurrent(_) | Self::Cross(_) => {
                unreachable!("a recorded step has no place in it")
            }
        }
    }

    /// True if a state sums up all positions, so that none of them can be taken back.
    pub fn is_recurrent(&self) -> bool {
        matches!(self, Self::Recurrent(_))
    }

    /// Takes back the last `count` of several positions that were just read at once, of which one at least stays.
    pub fn drop_last(&mut self, count: usize) -> Result<()> {
        match self {
            Self::Plain(cache) | Self::Mla(cache) => cache.drop_last(count),
            Self::Quantized(cache) => cache.drop_last(count),
            Self::Rotating(cache) => return cache.drop_last(count),
            Self::Cross(cache) => cache.drop_last(count),
            Self::Recurrent(_) => unreachable!("a state cannot be taken back"),
        }
        Ok(())
    }

    /// The same positions once more, if it takes only a few handles: for windows and states.
    pub fn snapshot(&self) -> Option<Self> {
        match self {
            Self::Plain(_) | Self::Mla(_) | Self::Quantized(_) | Self::Cross(_) => None,
            Self::Rotating(cache) => Some(Self::Rotating(cache.clone())),
            Self::Recurrent(cache) => Some(Self::Recurrent(cache.clone())),
        }
    }

    /// The state of a recurrent layer.
    pub fn recurrent(&mut self) -> &mut RecurrentCache {
        match self {
            Self::Recurrent(cache) => cache,
            _ => unreachable!("a recurrent layer made its own cache"),
        }
    }

    /// The images that a cross-attention layer sees.
    pub fn cross(&mut self) -> &mut CrossCache {
        match self {
            Self::Cross(cache) => cache,
            _ => unreachable!("a layer that looks at images made its own cache"),
        }
    }

    /// Which of the keys that the next [`Cache::update`] returns each of the next `length` positions may see. `last`
    /// says for each the last of them that it sees, if that is not itself for all.
    pub fn mask(&self, length: usize, last: Option<&[i32]>) -> Result<Mask> {
        match self {
            _ if length == 1 => Ok(Mask::None),
            Self::Plain(_) | Self::Mla(_) | Self::Quantized(_) => {
                let before = self.offset();
                match last.is_some() || composes(length, before + length) {
                    true => seen(before as i32, length as i32, None, last).map(Mask::Array),
                    false => Ok(Mask::Causal),
                }
            }
            Self::Recurrent(_) | Self::Cross(_) => Ok(Mask::Causal),
            Self::Rotating(cache) => cache.mask(length, last),
        }
    }
}

/// Fewer queries have a kernel of MLX's own.
const MIN_COMPOSED: usize = 4;

/// For more queries cuDNN saves more than its plan costs.
const MAX_COMPOSED: usize = 256;

/// Scores that are written to memory for each head.
const MAX_SCORES: usize = 1 << 19;

/// True if `length` queries attend to `positions` positions by plain products: cuDNN plans a kernel for each new pair
/// of these numbers, which takes 55 ms on an H200 and would be the gap between two tokens of an answer that decodes
/// while a prompt is read.
pub fn composes(length: usize, positions: usize) -> bool {
    device() == Device::Cuda && (MIN_COMPOSED..=MAX_COMPOSED).contains(&length) && length * positions <= MAX_SCORES
}

/// The most tokens that may be read after `before` positions without a plan of cuDNN's.
pub fn max_composed(before: usize) -> usize {
    match device() {
        Device::Cuda => (MAX_SCORES / (before + MAX_COMPOSED)).clamp(MIN_COMPOSED, MAX_COMPOSED),
        Device::Cpu | Device::Metal => usize::MAX,
    }
}

/// Marks the positions that each of `length` positions sees after `before` others: those up to its own, or to the
/// `last` one of the `length` that it sees, and with a window only those less than `window` before its own; `[length,
/// before + length]`. Created on the device: for a chunk of 2,048 positions there are millions of marks.
pub fn seen(before: i32, length: i32, window: Option<i32>, last: Option<&[i32]>) -> Result<Tensor> {
    let positions: Vec<i32> = (0..before + length).collect();
    let keys = Tensor::from_i32(&positions, &[1, before + length]);
    let queries = Tensor::from_i32(&positions[before as usize..], &[length, 1]);
    let past = match last {
        None => queries.greater_equal(&keys)?,
        Some(last) => {
            let last: Vec<i32> = last.iter().map(|last| before + last).collect();
            Tensor::from_i32(&last, &[length, 1]).greater_equal(&keys)?
        }
    };
    let Some(window) = window else { return Ok(past) };
    let oldest = queries.sub(&Tensor::from_i32(&[window], &[1, 1]))?;
    past.mul(&keys.greater(&oldest)?)
}

/// The caches of one layer, which are these of each sequence: the first ones of all sequences, then the second ones.
pub fn of_layer<'a>(sequences: &'a mut [&mut [Cache]], places: Range<usize>) -> Vec<&'a mut Cache> {
    let parts = sequences.iter_mut().map(|caches| caches[places.clone()].iter_mut());
    let mut parts: Vec<_> = parts.collect();
    let each = |_| parts.iter_mut().filter_map(Iterator::next).collect::<Vec<_>>();
    places.clone().flat_map(each).collect()
}

#[cfg(test)]
mod place_tests;
#[cfg(test)]
pub(crate) mod tests;
