//! The cache of layers that carry a state from token to token instead of keeping keys.

use std::rc::Rc;

use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::cache::{Block, ByteCounter};

/// The state that one recurrent layer carries from token to token.
#[derive(Default, Clone, Parameters)]
pub struct RecurrentCache {
    /// The last inputs of the layer's convolution, `[kernel - 1, channels]`; `None` before the first token and in
    /// layers that do not convolve.
    pub conv: Option<Tensor>,
    /// The state of the delta rule, `[key heads, value heads per key head, value width, key width]`, or of Mamba 2 and of
    /// lightning attention, `[groups, heads per group, head width, state width]`, or of Mamba, `[channels, state width]`,
    /// or of a recurrent unit, `[1, channels]`; `None` before the first token and in layers that only convolve.
    pub state: Option<Tensor>,
    offset: usize,
}

impl RecurrentCache {
    /// The number of positions that have been read.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Counts positions whose states were written.
    pub fn advance(&mut self, length: usize) {
        self.offset += length;
    }

    /// A copy that does not change.
    pub fn freeze(&self, counter: &ByteCounter) -> Result<Rc<Block>> {
        let tensors = self
            .tensors()
            .into_iter()
            .map(Tensor::contiguous)
            .collect::<Result<_>>()?;
        Ok(Rc::new(Block::new(tensors, counter)))
    }

    /// A cache that has read `offset` positions, as many as the copy.
    pub fn thaw(copy: &Block, offset: usize) -> Self {
        let mut tensors = copy.tensors().iter().cloned().peekable();
        Self {
            // A layer that does not convolve has a state alone, of more axes.
            conv: tensors.next_if(|tensor| tensor.shape().len() == 2),
            state: tensors.next(),
            offset,
        }
    }
}
