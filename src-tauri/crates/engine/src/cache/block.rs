//! What frozen copies of caches are made of, and how many bytes of it live.

use std::cell::Cell;
use std::rc::Rc;

use crate::error::Result;
use crate::tensor::{eval, Tensor};

/// Counts the bytes of all living blocks that were made with it, each once, however many copies share it. Clones count
/// together.
#[derive(Clone, Default)]
pub struct Ledger(Rc<Cell<u64>>);

impl Ledger {
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
    ledger: Ledger,
}

impl Block {
    /// Takes tensors in and counts them.
    pub fn new(tensors: Vec<Tensor>, ledger: &Ledger) -> Self {
        let bytes = tensors.iter().map(|tensor| tensor.nbytes() as u64).sum();
        ledger.0.set(ledger.0.get() + bytes);
        Self {
            tensors,
            computed: Cell::new(false),
            bytes,
            ledger: ledger.clone(),
        }
    }

    /// Its tensors.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// Computes those that are not computed yet, in one go.
    pub fn settle<'a>(blocks: impl Iterator<Item = &'a Rc<Self>>) -> Result<()> {
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
        self.ledger.0.set(self.ledger.0.get().saturating_sub(self.bytes));
    }
}
