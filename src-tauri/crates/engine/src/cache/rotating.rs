//! The cache of sliding attention.

use std::rc::Rc;

use mlx::ops::{concatenate, Mask};
use mlx::parameters::Parameters;
use mlx::recording::{CachePlace, CacheShape};
use mlx::tensor::Tensor;
use mlx::Result;

use crate::cache::{composes, Block, ByteCounter};

/// Places that are added to a ring at once.
const STEP: i32 = checkpoint::memory::CACHE_STEP as i32;

/// Keeps the last `window` positions: single ones are written into a ring, several at once are appended in order, with
/// as much before them as the first of them may see.
#[derive(Clone, Parameters)]
pub struct RotatingCache {
    window: i32,
    offset: i32,
    buffers: Option<Buffers>,
}

/// Keys and values, and how they lie.
#[derive(Clone, Parameters)]
struct Buffers {
    keys: Tensor,
    values: Tensor,
    #[parameters(skip)]
    layout: Layout,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// Oldest first, nothing else.
    Ordered,
    /// Up to `window` places; position p lies at p modulo `window`.
    Ring,
}

impl RotatingCache {
    /// An empty cache.
    pub fn new(window: u32) -> Self {
        Self {
            window: window as i32,
            offset: 0,
            buffers: None,
        }
    }

    /// The number of positions that have been read.
    pub fn offset(&self) -> usize {
        self.offset as usize
    }

    /// Adds positions and returns the keys and values that they may attend to.
    pub fn update(&mut self, keys: &Tensor, values: &Tensor) -> Result<(Tensor, Tensor)> {
        match keys.dim(2) {
            1 => self.write(keys, values),
            _ => self.append(keys, values),
        }
    }

    /// The keys and values of the window, oldest first; `None` before the first position.
    pub fn seen(&self) -> Result<Option<(Tensor, Tensor)>> {
        let Some(Buffers { keys, values, layout }) = &self.buffers else {
            return Ok(None);
        };
        let kept = self.offset.min(self.window);
        Ok(Some((
            self.last(keys, *layout, kept)?,
            self.last(values, *layout, kept)?,
        )))
    }

    /// Which of the keys each of the next `length` positions may see, as [`Cache::mask`](super::Cache::mask).
    pub fn mask(&self, length: usize, last: Option<&[i32]>) -> Result<Mask> {
        let (length, window) = (length as i32, self.window);
        let before = self.offset.min(window - 1);
        if last.is_none() && before + length <= window && !composes(length as usize, (before + length) as usize) {
            return Ok(Mask::Causal);
        }
        super::seen(before, length, Some(window), last).map(Mask::Array)
    }

    fn append(&mut self, keys: &Tensor, values: &Tensor) -> Result<(Tensor, Tensor)> {
        let before = self.offset.min(self.window - 1);
        let (all_keys, all_values) = match self.buffers.take() {
            None => (keys.clone(), values.clone()),
            Some(old) => (
                concatenate(&[&self.last(&old.keys, old.layout, before)?, keys], 2)?,
                concatenate(&[&self.last(&old.values, old.layout, before)?, values], 2)?,
            ),
        };
        self.offset += keys.dim(2);
        self.buffers = Some(Buffers {
            keys: all_keys.clone(),
            values: all_values.clone(),
            layout: Layout::Ordered,
        });
        Ok((all_keys, all_values))
    }

    /// Takes back the last `count` of several positions that were just appended, of which one at least stays. Before
    /// them lies as much as the first of them saw, so that the rest is a full window.
    pub fn drop_last(&mut self, count: usize) -> Result<()> {
        let count = count as i32;
        if let Some(Buffers { keys, values, layout }) = &mut self.buffers {
            debug_assert!(*layout == Layout::Ordered);
            let rest = keys.dim(2) - count;
            (*keys, *values) = (keys.slice(2, 0, rest)?, values.slice(2, 0, rest)?);
        }
        self.offset -= count;
        Ok(())
    }

    /// Keys and values as a ring with room for `more` positions; `None` if several would go around it, where the first
    /// of them still sees what the last overwrites.
    pub fn place(&mut self, shape: CacheShape, more: i32) -> Result<Option<CachePlace<'_>>> {
        if more > 1 && self.offset + more > self.window {
            return Ok(None);
        }
        let last = (self.offset + more - 1) % self.window;
        let (keys, values) = match &self.buffers {
            None => {
                let new = || Tensor::zeros(&[1, shape.heads, self.places(last), shape.width], shape.dtype);
                (new()?, new()?)
            }
            Some(old) => self.with_room(old.clone(), last)?,
        };
        let ring = self.buffers.insert(Buffers {
            keys,
            values,
            layout: Layout::Ring,
        });
        Ok(Some(CachePlace {
            keys: &ring.keys,
            values: &ring.values,
        }))
    }

    /// Counts positions that were written there.
    pub fn count_written(&mut self, count: i32) {
        self.offset += count;
    }

    /// Buffers as a ring with room for a place; the same ones if they are.
    fn with_room(&self, buffers: Buffers, place: i32) -> Result<(Tensor, Tensor)> {
        let Buffers { keys, values, layout } = buffers;
        match layout {
            Layout::Ring => Ok((self.grown(keys, place)?, self.grown(values, place)?)),
            Layout::Ordered => {
                let (keys, values) = (self.ring(&keys)?, self.ring(&values)?);
                Ok((self.grown(keys, place)?, self.grown(values, place)?))
            }
        }
    }

    fn write(&mut self, keys: &Tensor, values: &Tensor) -> Result<(Tensor, Tensor)> {
        let place = self.offset % self.window;
        let (old_keys, old_values) = match self.buffers.take() {
            Some(old) => self.with_room(old, place)?,
            None => (self.space(keys, self.places(0))?, self.space(values, self.places(0))?),
        };
        let all_keys = old_keys.slice_update(keys, 2, place)?;
        let all_values = old_values.slice_update(values, 2, place)?;
        self.offset += 1;
        let used = self.offset.min(self.window);
        let seen = if used == self.window {
            // The order inside the ring does not matter: positions are turned into the keys, and one query sees them
            // all.
            (all_keys.clone(), all_values.clone())
        } else {
            (all_keys.slice(2, 0, used)?, all_values.slice(2, 0, used)?)
        };
        self.buffers = Some(Buffers {
            keys: all_keys,
            values: all_values,
            layout: Layout::Ring,
        });
        Ok(seen)
    }

    /// A copy that does not change: the last positions in order, how many were read and how many are kept. The cache
    /// goes on from these: they may be its own memory, in which a recorded step would write over them.
    pub fn freeze(&mut self, counter: &ByteCounter) -> Result<(Rc<Block>, i32, i32)> {
        let kept = self.offset.min(self.window);
        let Some(Buffers { keys, values, layout }) = &self.buffers else {
            return Ok((Rc::new(Block::new(Vec::new(), counter)), self.offset, self.window));
        };
        let copy = |buffer: &Tensor| self.last(buffer, *layout, kept)?.contiguous();
        let (keys, values) = (copy(keys)?, copy(values)?);
        self.buffers = Some(Buffers {
            keys: keys.clone(),
            values: values.clone(),
            layout: Layout::Ordered,
        });
        Ok((
            Rc::new(Block::new(vec![keys, values], counter)),
            self.offset,
            self.window,
        ))
    }

    /// A cache that has read `positions`: all of the copy, or fewer if its ring has not wrapped around.
    pub fn thaw(last: &Block, window: i32, positions: i32) -> Result<Self> {
        let buffers = match last.tensors() {
            [keys, values] if positions > 0 => {
                let kept = positions.min(window);
                Some(Buffers {
                    keys: keys.slice(2, 0, kept)?,
                    values: values.slice(2, 0, kept)?,
                    layout: Layout::Ordered,
                })
            }
            _ => None,
        };
        Ok(Self {
            window,
            offset: positions,
            buffers,
        })
    }

    /// The last `count` positions, oldest first.
    fn last(&self, buffer: &Tensor, layout: Layout, count: i32) -> Result<Tensor> {
        let place = self.offset % self.window;
        match layout {
            Layout::Ordered => buffer.slice(2, buffer.dim(2) - count, buffer.dim(2)),
            Layout::Ring if place == 0 => buffer.slice(2, self.window - count, self.window),
            Layout::Ring if count <= place => buffer.slice(2, place - count, place),
            Layout::Ring => {
                let older = buffer.slice(2, self.window - (count - place), self.window)?;
                concatenate(&[&older, &buffer.slice(2, 0, place)?], 2)
            }
        }
    }

    /// An ordered buffer as a ring.
    fn ring(&self, buffer: &Tensor) -> Result<Tensor> {
        let kept = self.offset.min(self.window);
        let last = self.last(buffer, Layout::Ordered, kept)?;
        if kept < self.window {
            return concatenate(&[&last, &self.space(buffer, self.places(kept) - kept)?], 2);
        }
        let place = self.offset % self.window;
        concatenate(
            &[&last.slice(2, kept - place, kept)?, &last.slice(2, 0, kept - place)?],
            2,
        )
    }

    /// How many places a ring has whose first `used` are taken: it grows up to the window, so that a short text takes
    /// little.
    fn places(&self, used: i32) -> i32 {
        (used / STEP + 1).saturating_mul(STEP).min(self.window)
    }

    /// A ring with room for a place.
    fn grown(&self, ring: Tensor, place: i32) -> Result<Tensor> {
        if place < ring.dim(2) {
            return Ok(ring);
        }
        concatenate(&[&ring, &self.space(&ring, self.places(place) - ring.dim(2))?], 2)
    }

    fn space(&self, like: &Tensor, positions: i32) -> Result<Tensor> {
        Tensor::zeros(&[1, like.dim(1), positions, like.dim(3)], like.dtype())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use mlx::device::connect;

    use super::*;

    /// Which positions are seen when these come next, each position being its own key.
    fn seen(cache: &mut RotatingCache, length: i32) -> Vec<i32> {
        let start = cache.offset() as i32;
        let positions: Vec<f32> = (start..start + length).map(|position| position as f32).collect();
        let keys = Tensor::from_f32(&positions, &[1, 1, length, 1]);
        let (keys, values) = cache.update(&keys, &keys.negative().unwrap()).unwrap();
        let (keys, values) = (keys.to_f32().unwrap(), values.to_f32().unwrap());
        assert!(keys.iter().zip(&values).all(|(key, value)| *key == -value));
        let mut positions: Vec<i32> = keys.iter().map(|key| *key as i32).collect();
        positions.sort_unstable();
        positions
    }

    #[test]
    fn a_ring_grows_up_to_the_window_and_turns_there() {
        connect().unwrap();
        for window in [1, 7, STEP, STEP + 44, 2 * STEP] {
            for first in [1, 10, STEP - 1, STEP, STEP + 50] {
                let mut cache = RotatingCache::new(window as u32);
                seen(&mut cache, first);
                for last in first..first + 2 * window + 3 {
                    let expected: Vec<i32> = ((last + 1 - window).max(0)..=last).collect();
                    assert_eq!(seen(&mut cache, 1), expected, "window {window}, {first} at first");
                    let places = cache.buffers.as_ref().map(|buffers| buffers.keys.dim(2));
                    assert!(places.is_some_and(|places| places <= window && places <= expected.len() as i32 + STEP));
                }
            }
        }
    }
}
