//! The cache of layers that attend to images next to the text (Llama 3.2 Vision): keys and values of complete images,
//! which grow with no token.

use std::rc::Rc;

use mlx::ops::concatenate;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::cache::{Block, ByteCounter};

/// An image whose keys and values are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CachedImage {
    /// The position of its token.
    at: usize,
    /// How many keys it has.
    states: i32,
}

/// Images whose tokens follow each other without text between.
#[derive(Parameters)]
struct Group {
    #[parameters(skip)]
    images: Vec<CachedImage>,
    /// Of all of them, `[1, key heads, states, width]`.
    keys: Tensor,
    values: Tensor,
    /// Both, once a copy of the cache holds them.
    #[parameters(skip)]
    frozen: Option<Rc<Block>>,
}

/// The images that one layer sees: the last group before a token or with it, and none that is older.
#[derive(Default, Parameters)]
pub struct CrossCache {
    seen: Option<Group>,
    /// The position of the first image of all, which may be seen no longer.
    first: Option<usize>,
    offset: usize,
}

impl CrossCache {
    /// The number of positions that have been read.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Counts positions that were read.
    pub fn advance(&mut self, length: usize) {
        self.offset += length;
    }

    /// Takes the last positions back, among which is no image.
    pub fn drop_last(&mut self, count: usize) {
        self.offset -= count;
    }

    /// The keys and values `[1, key heads, states, width]` that the next token sees.
    pub fn seen(&self) -> Option<(&Tensor, &Tensor)> {
        self.seen.as_ref().map(|group| (&group.keys, &group.values))
    }

    /// From the token at position `at` on this image is seen, together with those right before it, and no older one.
    pub fn update(&mut self, at: usize, keys: Tensor, values: Tensor) -> Result<()> {
        let image = CachedImage {
            at,
            states: keys.dim(2),
        };
        self.first.get_or_insert(at);
        let beside = self
            .seen
            .take()
            .filter(|group| group.images.last().is_some_and(|last| last.at + 1 == at));
        self.seen = Some(match beside {
            None => Group {
                images: vec![image],
                keys,
                values,
                frozen: None,
            },
            Some(group) => Group {
                images: [&group.images[..], &[image]].concat(),
                keys: concatenate(&[&group.keys, &keys], 2)?,
                values: concatenate(&[&group.values, &values], 2)?,
                frozen: None,
            },
        });
        Ok(())
    }

    /// A copy that does not change.
    pub fn freeze(&mut self, counter: &ByteCounter) -> FrozenCross {
        let (images, block) = match &mut self.seen {
            None => (Vec::new(), None),
            Some(group) => {
                let block = || Rc::new(Block::new(vec![group.keys.clone(), group.values.clone()], counter));
                (
                    group.images.clone(),
                    Some(group.frozen.get_or_insert_with(block).clone()),
                )
            }
        };
        FrozenCross {
            images,
            block,
            first: self.first,
            offset: self.offset,
        }
    }
}

/// A copy of such a cache.
pub struct FrozenCross {
    images: Vec<CachedImage>,
    /// Keys and values.
    block: Option<Rc<Block>>,
    first: Option<usize>,
    offset: usize,
}

impl FrozenCross {
    /// True if a sequence can continue after exactly this many positions: before all images, or while the group seen
    /// there is still held.
    pub fn can_trim_to(&self, positions: usize) -> bool {
        let before_all = self.first.is_none_or(|first| positions <= first);
        positions <= self.offset && (before_all || self.images.first().is_some_and(|image| positions > image.at))
    }

    /// A cache that has read this many positions, which are [reached](Self::can_trim_to).
    pub fn thaw(&self, positions: usize) -> Result<CrossCache> {
        let held: Vec<CachedImage> = self
            .images
            .iter()
            .copied()
            .filter(|image| image.at < positions)
            .collect();
        let seen = match self.block.as_ref().map(|block| (block, block.tensors())) {
            Some((block, [keys, values])) if !held.is_empty() => {
                let whole = held.len() == self.images.len();
                let states = held.iter().map(|image| image.states).sum();
                let part = |part: &Tensor| {
                    if whole {
                        Ok(part.clone())
                    } else {
                        part.slice(2, 0, states)?.contiguous()
                    }
                };
                Some(Group {
                    keys: part(keys)?,
                    values: part(values)?,
                    frozen: whole.then(|| block.clone()),
                    images: held,
                })
            }
            _ => None,
        };
        Ok(CrossCache {
            seen,
            first: self.first.filter(|first| *first < positions),
            offset: positions,
        })
    }

    /// Keeps only the first positions; returns whether that is possible, as it is if there is no image.
    pub fn trim(&mut self, positions: usize) -> bool {
        self.offset = self.offset.min(positions);
        self.first.is_none()
    }

    /// Its tensors.
    pub fn blocks(&self) -> &[Rc<Block>] {
        self.block.as_slice()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use mlx::device::connect;

    use super::*;

    fn read(cache: &mut CrossCache, images: &[usize], positions: usize) {
        for at in images {
            let number = |sign: f32| Tensor::from_f32(&[sign * *at as f32], &[1, 1, 1, 1]);
            cache.update(*at, number(1.0), number(-1.0)).unwrap();
        }
        cache.advance(positions - cache.offset());
    }

    fn seen(cache: &CrossCache) -> Vec<f32> {
        let (keys, values) = match cache.seen() {
            Some((keys, values)) => (keys.to_f32().unwrap(), values.to_f32().unwrap()),
            None => Default::default(),
        };
        assert!(keys.iter().zip(values).all(|(key, value)| *key == -value));
        keys
    }

    #[test]
    fn images_side_by_side_are_seen_together_and_hide_older_ones() {
        connect().unwrap();
        let mut cache = CrossCache::default();
        read(&mut cache, &[], 4);
        assert!(seen(&cache).is_empty());
        read(&mut cache, &[5], 8);
        assert_eq!(seen(&cache), [5.0]);
        read(&mut cache, &[10], 11);
        assert_eq!(seen(&cache), [10.0]);
        read(&mut cache, &[11], 20);
        assert_eq!((seen(&cache), cache.offset()), (vec![10.0, 11.0], 20));
    }

    #[test]
    fn a_copy_goes_on_wherever_it_knows_what_was_seen() {
        connect().unwrap();
        let (counter, mut cache) = (ByteCounter::default(), CrossCache::default());
        read(&mut cache, &[5], 8);
        let early = cache.freeze(&counter);
        read(&mut cache, &[10, 11], 20);
        let late = cache.freeze(&counter);
        assert_eq!(counter.bytes(), 3 * 8);
        // Again, and from a copy, nothing is held twice.
        cache.freeze(&counter);
        late.thaw(20).unwrap().freeze(&counter);
        assert_eq!(counter.bytes(), 3 * 8);
        let reached = |copy: &FrozenCross| {
            (0..22)
                .filter(|positions| copy.can_trim_to(*positions))
                .collect::<Vec<_>>()
        };
        assert_eq!(reached(&early), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
        // The group seen from 6 to 10 is not held any longer.
        assert_eq!(reached(&late), (0..6).chain(11..21).collect::<Vec<_>>());
        for (positions, expected) in [
            (3, vec![]),
            (5, vec![]),
            (11, vec![10.0]),
            (12, vec![10.0, 11.0]),
            (20, vec![10.0, 11.0]),
        ] {
            let mut cache = late.thaw(positions).unwrap();
            assert_eq!((seen(&cache), cache.offset()), (expected, positions));
            // Later tokens are distinguished from those before.
            read(&mut cache, &[30], 31);
            assert_eq!(seen(&cache), [30.0]);
        }
        // An image that comes right after one that is held is seen together with it, as it was the first time.
        let mut cache = late.thaw(11).unwrap();
        read(&mut cache, &[11], 12);
        assert_eq!(seen(&cache), [10.0, 11.0]);
    }
}
