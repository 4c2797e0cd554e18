//! The rows of a forward pass, split by the sequences they belong to.

use mlx::ops::join;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::cache::Cache;

/// The rows of one sequence: all of them if it is alone, else one.
#[derive(Debug, Clone, Copy)]
pub struct SequenceRows {
    index: usize,
    alone: bool,
}

impl SequenceRows {
    /// The sequence's index in the batch.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Its part of a tensor whose first axis counts rows, or sequences. Costs no operation if it is alone.
    pub fn of(&self, x: &Tensor) -> Result<Tensor> {
        if self.alone {
            return Ok(x.clone());
        }
        let index = self.index as i32;
        x.slice(0, index, index + 1)
    }
}

/// The rows of each of `count` sequences.
pub fn sequence_rows(count: usize) -> impl Iterator<Item = SequenceRows> {
    (0..count).map(move |index| SequenceRows {
        index,
        alone: count == 1,
    })
}

/// Joins what each sequence gave for its rows, in order. Costs no operation if there is one.
pub fn join_sequences(parts: Vec<Tensor>) -> Result<Tensor> {
    join(&parts, 0)
}

/// Lets each sequence mix its own rows with what its cache holds, and joins what that gives.
pub fn each_sequence(
    caches: &mut [&mut Cache],
    mut mix: impl FnMut(SequenceRows, &mut Cache) -> Result<Tensor>,
) -> Result<Tensor> {
    let rows = sequence_rows(caches.len());
    join_sequences(
        rows.zip(caches)
            .map(|(rows, cache)| mix(rows, cache))
            .collect::<Result<_>>()?,
    )
}

/// The heads `[1, heads, length, width]` of one sequence side by side: `[length, heads · width]`.
pub fn merge_heads(heads: &Tensor) -> Result<Tensor> {
    let &[_, count, length, width] = heads.shape() else {
        unreachable!("heads have four axes")
    };
    if length == 1 {
        return heads.reshape(&[1, count * width]);
    }
    heads.transpose(&[0, 2, 1, 3])?.reshape(&[length, count * width])
}
