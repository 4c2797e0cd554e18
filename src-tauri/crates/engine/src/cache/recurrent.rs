//! The cache of layers that carry a state from token to token instead of keeping keys.

use std::rc::Rc;

use crate::cache::{Block, ByteCounter};
use crate::error::Result;
use crate::parameters::{parameters, Parameters};
use crate::tensor::Tensor;

/// What one recurrent layer carries on.
#[derive(Default, Clone)]
pub struct RecurrentCache {
    /// The last inputs of the layer's convolution, `[kernel - 1, channels]`; `None` before the first token.
    pub conv: Option<Tensor>,
    /// The state of the delta rule, `[key heads, value heads per key head, value width, key width]`; `None` before the first
    /// token and in layers that only convolve.
    pub state: Option<Tensor>,
    offset: usize,
}

impl RecurrentCache {
    /// How many positions have been read.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Counts positions whose states were written.
    pub fn advance(&mut self, length: usize) {
        self.offset += length;
    }

    /// A copy that does not change.
    pub fn freeze(&self, counter: &ByteCounter) -> Result<Rc<Block>> {
        let tensors = self.tensors().into_iter().map(Tensor::contiguous).collect::<Result<_>>()?;
        Ok(Rc::new(Block::new(tensors, counter)))
    }

    /// A cache that has read `offset` positions, as many as the copy.
    pub fn thaw(copy: &Block, offset: usize) -> Self {
        let mut tensors = copy.tensors().iter().cloned();
        Self {
            conv: tensors.next(),
            state: tensors.next(),
            offset,
        }
    }
}

parameters!(RecurrentCache { conv, state, offset: _ });

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::cache::Cache;
    use crate::layers::ShortConv;
    use crate::tensor::connect;

    #[test]
    fn a_copy_goes_on_where_it_was_made_and_nowhere_else() {
        connect().unwrap();
        let conv = ShortConv::new(&Tensor::from_f32(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3, 1]), None).unwrap();
        let read = |cache: &mut Cache, numbers: &[f32]| {
            let (x, cache) = (Tensor::from_f32(numbers, &[numbers.len() as i32 / 2, 2]), cache.recurrent());
            cache.advance(numbers.len() / 2);
            conv.forward(&x, &mut cache.conv).unwrap().to_f32().unwrap()
        };
        let (counter, mut cache) = (ByteCounter::default(), Cache::Recurrent(RecurrentCache::default()));
        read(&mut cache, &[0.5, -1.0, 2.0, 3.0, -4.0, 0.25]);
        let copy = cache.freeze(&counter).unwrap();
        assert_eq!(counter.bytes(), 16);
        let first = read(&mut cache, &[7.0, -2.0]);
        read(&mut cache, &[1.0, 1.0]);
        assert!(copy.can_trim_to(3) && !copy.can_trim_to(2) && !copy.can_trim_to(4));
        let mut resumed = copy.thaw(3).unwrap();
        assert_eq!((resumed.offset(), cache.offset()), (3, 5));
        assert_eq!(read(&mut resumed, &[7.0, -2.0]), first);
    }
}
