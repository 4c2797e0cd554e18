//! The tensors of frozen caches, and a count of their bytes.

use std::cell::Cell;
use std::rc::Rc;

use mlx::tensor::{eval, Tensor};

use crate::error::Result;

/// Counts the bytes of all living blocks that were created with it, each once, however many copies share it. Clones
/// count together.
#[derive(Clone, Default)]
pub struct ByteCounter(Rc<Cell<u64>>);

impl ByteCounter {
    /// The bytes that live.
    pub fn bytes(&self) -> u64 {
        self.0.get()
    }
}

/// Tensors that do not change any more. Each lies in memory of its own: a view would keep all that it looks into alive.
pub struct Block {
    tensors: Vec<Tensor>,
    computed: Cell<bool>,
    bytes: u64,
    counter: ByteCounter,
}

impl Block {
    /// Takes tensors in and counts them.
    pub fn new(tensors: Vec<Tensor>, counter: &ByteCounter) -> Self {
        let bytes = tensors.iter().map(|tensor| tensor.nbytes() as u64).sum();
        counter.0.set(counter.0.get() + bytes);
        Self {
            tensors,
            computed: Cell::new(false),
            bytes,
            counter: counter.clone(),
        }
    }

    /// Its tensors.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// Computes those that are not computed yet, in one go.
    pub fn materialize<'a>(blocks: impl Iterator<Item = &'a Rc<Self>>) -> Result<()> {
        let new: Vec<_> = blocks.filter(|block| !block.computed.get()).collect();
        eval(new.iter().flat_map(|block| &block.tensors))?;
        new.iter().for_each(|block| block.computed.set(true));
        Ok(())
    }

    /// How many bytes they take.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.counter.0.set(self.counter.0.get().saturating_sub(self.bytes));
    }
}
