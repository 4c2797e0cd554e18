//! The tokens that a step chose, wherever they are.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use mlx::ops::ids_tensor;
use mlx::recording::RecordedStep;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

/// A recorded step, shared by its tokens.
pub type SharedStep = Rc<RefCell<Box<dyn RecordedStep>>>;

/// Tokens `[sequences]`, which may still be computed.
#[derive(Clone)]
pub enum Tokens {
    /// By MLX.
    Computed(Tensor),
    /// By a recorded step.
    Recorded(RecordedTokens),
}

/// The tokens of a recorded step.
#[derive(Clone)]
pub struct RecordedTokens {
    step: SharedStep,
    number: u64,
    known: Rc<OnceCell<Vec<u32>>>,
}

impl RecordedTokens {
    /// Those of the step of this number.
    pub fn new(step: SharedStep, number: u64) -> Self {
        Self {
            step,
            number,
            known: Rc::default(),
        }
    }

    /// True if these are the same ones.
    pub fn are_same(&self, others: &Self) -> bool {
        Rc::ptr_eq(&self.known, &others.known)
    }

    /// Waits for them.
    pub fn wait(&self) -> Result<&[u32]> {
        if let Some(known) = self.known.get() {
            return Ok(known);
        }
        let tokens = self.step.borrow_mut().tokens(self.number)?;
        Ok(self.known.get_or_init(|| tokens))
    }
}

impl Tokens {
    /// Waits for them.
    pub fn to_u32(&self) -> Result<Vec<u32>> {
        match self {
            // Ids of a prompt are signed.
            Self::Computed(tokens) => tokens.astype(Dtype::Uint32)?.to_u32(),
            Self::Recorded(tokens) => Ok(tokens.wait()?.to_vec()),
        }
    }

    /// As a tensor `[sequences]`; waits for them if a recorded step chooses them.
    pub fn tensor(&self) -> Result<Tensor> {
        match self {
            Self::Computed(tokens) => Ok(tokens.clone()),
            Self::Recorded(tokens) => ids_tensor(tokens.wait()?).astype(Dtype::Uint32),
        }
    }

    /// That of one sequence, `[1]`.
    pub fn row(&self, row: usize) -> Result<Tensor> {
        let row = row as i32;
        self.tensor()?.slice(0, row, row + 1)
    }

    /// The tensor, if MLX computes them.
    pub fn computed(&self) -> Option<&Tensor> {
        match self {
            Self::Computed(tokens) => Some(tokens),
            Self::Recorded(_) => None,
        }
    }
}
