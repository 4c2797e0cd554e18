//! The steps that a GPU takes before the first answer, so that none waits for kernels: they are compiled, or those that
//! are kept are fetched, when they first run.

use std::collections::VecDeque;

use mlx::device::{device, on_cpu, Device};
use mlx::tensor::eval;

use crate::error::Result;
use crate::models::{Input, Model};
use crate::sequence::SequenceState;

/// Tokens of a draft that is verified.
const DRAFT: usize = 4;

/// A step of a warm-up.
#[derive(Clone, Copy)]
enum Piece {
    /// Reads a prompt of so many tokens.
    Read(usize),
    /// Decodes one token of so many sequences.
    Decode(usize),
    /// Verifies a draft.
    Verify,
}

/// A warm-up, as far as it has come. CUDA has other kernels for chunks of few, some and many tokens, for a draft, for
/// answers that decode together and for caches that grow, as the first one does here; Metal would only compute longer.
pub struct WarmUp {
    left: VecDeque<Piece>,
    states: Vec<SequenceState>,
}

impl WarmUp {
    /// All of it.
    pub fn new() -> Self {
        // A test's pretended card has nothing to compile.
        let pieces: &[Piece] = match device() == Device::Cuda && !on_cpu() {
            true => &[
                Piece::Read(255),
                Piece::Read(24),
                Piece::Read(64),
                Piece::Read(300),
                Piece::Decode(1),
                Piece::Decode(1),
                Piece::Decode(2),
                Piece::Decode(3),
                Piece::Decode(4),
                Piece::Verify,
            ],
            false => &[Piece::Read(8), Piece::Decode(1), Piece::Decode(1)],
        };
        Self {
            left: pieces.iter().copied().collect(),
            states: Vec::new(),
        }
    }

    /// Takes the next step; returns false if there is none.
    ///
    /// # Errors
    /// If the device fails.
    pub fn advance(&mut self, model: &Model) -> Result<bool> {
        let Some(piece) = self.left.pop_front() else {
            return Ok(false);
        };
        match piece {
            Piece::Read(tokens) => {
                let mut state = SequenceState::new(model, None);
                state.prefill(model, &vec![0; tokens])?;
                self.states.push(state);
            }
            Piece::Decode(sequences) => self.step(model, sequences, sequences)?,
            Piece::Verify => self.step(model, DRAFT, 1)?,
        }
        Ok(true)
    }

    /// Reads so many tokens into the caches of as many sequences, or of one.
    fn step(&mut self, model: &Model, tokens: usize, sequences: usize) -> Result<()> {
        let states = self.states.iter_mut().take(sequences);
        let mut caches: Vec<_> = states.map(SequenceState::caches).collect();
        let made = model.forward(&Input::text(&model.ids(&vec![0; tokens])?), &mut caches)?;
        Ok(eval([&model.logits(&made)?])?)
    }
}
