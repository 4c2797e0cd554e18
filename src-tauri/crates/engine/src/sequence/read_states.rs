//! The states of what a model read last, for a head that drafts from them.

use mlx::ops::join;
use mlx::tensor::Tensor;
use mlx::Result;

/// Rows that are kept while nobody takes them, as when answers decode side by side; older ones are forgotten.
const MOST: usize = 512;

/// The states that a model gave for the last positions that it read and that nobody has taken.
pub struct ReadStates {
    /// Positions that were read.
    end: usize,
    /// `[rows, width]` each, one after another.
    parts: Vec<Tensor>,
}

impl ReadStates {
    /// Those from this position on.
    pub fn from(position: usize) -> Self {
        Self {
            end: position,
            parts: Vec::new(),
        }
    }

    fn rows(&self) -> usize {
        self.parts.iter().map(|part| part.dim(0) as usize).sum()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Their tensors.
    pub fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.parts.iter()
    }

    /// Takes note of those `[rows, width]` of the next positions.
    pub fn push(&mut self, states: Tensor) {
        self.end += states.dim(0) as usize;
        self.parts.push(states);
        while self.parts.len() > 1 && self.rows() > MOST {
            self.parts.remove(0);
        }
    }

    /// Forgets those of the last `count` positions, which are read anew or not at all.
    ///
    /// # Errors
    /// If MLX fails.
    pub fn take_back(&mut self, count: usize) -> Result<()> {
        self.end -= count;
        let mut left = count as i32;
        while let Some(last) = self.parts.pop() {
            let rows = last.dim(0);
            if rows > left {
                self.parts.push(last.slice(0, 0, rows - left)?);
                break;
            }
            left -= rows;
        }
        Ok(())
    }

    /// Takes all of them: the first position, and `[rows, width]`; `None` if there are none.
    ///
    /// # Errors
    /// If MLX fails.
    pub fn take(&mut self) -> Result<Option<(usize, Tensor)>> {
        if self.is_empty() {
            return Ok(None);
        }
        let first = self.end - self.rows();
        Ok(Some((first, join(&std::mem::take(&mut self.parts), 0)?)))
    }
}
