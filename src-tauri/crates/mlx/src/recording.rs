//! Decode steps whose launches are recorded once and repeated: a step of a model is the same launches each time, so
//! that describing it again for every token, which MLX asks for, is most of a token's time on a fast card.
//!
//! While a step is recorded it is described as always. Kernels that take part write down their launches instead of
//! handing them to MLX, and each tensor knows the [`Origin`] of its numbers: a launch that would read what only MLX
//! computes cannot be recorded.

use std::cell::Cell;

use mlx_rs::Dtype;

use crate::error::Result;
use crate::tensor::Tensor;

/// An operation on single numbers that a recording repeats though MLX has it too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Elementwise {
    /// `a + b`.
    Add,
    /// `a - b`.
    Subtract,
    /// `a · b`.
    Multiply,
    /// `a / b`.
    Divide,
    /// `tanh(a)`.
    Tanh,
    /// `1 / (1 + e^-a)`.
    Sigmoid,
    /// `a²`.
    Square,
}

/// Records an operation on tensors that broadcast to one shape; `b` is `a` if it has one argument.
pub type RecordElementwise = fn(Elementwise, &Tensor, &Tensor) -> Result<Option<Tensor>>;

thread_local! {
    static RECORDING: Cell<Option<RecordElementwise>> = const { Cell::new(None) };
}

/// The most axes of a tensor that a launch writes.
pub const MAX_AXES: usize = 4;

/// Where the numbers of a tensor come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// MLX's memory, where they stay as long as the tensor lives.
    Memory,
    /// A recorded launch.
    Launch(Launched),
    /// An operation of MLX's during a recording, which is not repeated.
    Described,
}

/// A place in what a recorded launch writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launched {
    /// The number of the buffer.
    pub buffer: usize,
    /// Its first element.
    pub offset: usize,
    /// Elements from one place of each axis to the next.
    pub strides: [i64; MAX_AXES],
}

impl Launched {
    /// All of a buffer, as a tensor of this shape.
    pub fn new(buffer: usize, shape: &[i32]) -> Self {
        Self {
            buffer,
            offset: 0,
            strides: row_major(shape),
        }
    }

    /// The same numbers in another shape, if they lie without gaps.
    pub fn reshaped(self, shape: &[i32], to: &[i32]) -> Option<Self> {
        let dense = row_major(shape);
        let without_gaps = (0..shape.len()).all(|axis| shape[axis] == 1 || self.strides[axis] == dense[axis]);
        let fits = to.len() <= MAX_AXES && to.iter().all(|length| *length >= 0);
        (without_gaps && fits).then(|| Self {
            strides: row_major(to),
            ..self
        })
    }

    /// From `start` on along one axis.
    pub fn sliced(self, axis: usize, start: i32) -> Self {
        Self {
            offset: self.offset + start as usize * self.strides[axis] as usize,
            ..self
        }
    }
}

fn row_major(shape: &[i32]) -> [i64; MAX_AXES] {
    let mut strides = [0; MAX_AXES];
    let mut step = 1;
    for (axis, length) in shape.iter().enumerate().rev() {
        strides[axis] = step;
        step *= i64::from(*length);
    }
    strides
}

/// True while this thread records a step.
pub fn is_on() -> bool {
    RECORDING.get().is_some()
}

/// Runs `describe` while this thread records.
pub fn on<T>(elementwise: RecordElementwise, describe: impl FnOnce() -> T) -> T {
    within(Some(elementwise), describe)
}

/// Runs what is to be computed at once although this thread records.
pub fn paused<T>(compute: impl FnOnce() -> T) -> T {
    within(None, compute)
}

/// Records an operation, if this thread records and that operation can be.
pub(crate) fn elementwise(operation: Elementwise, a: &Tensor, b: &Tensor) -> Result<Option<Tensor>> {
    match RECORDING.get() {
        Some(record) => record(operation, a, b),
        None => Ok(None),
    }
}

fn within<T>(recording: Option<RecordElementwise>, run: impl FnOnce() -> T) -> T {
    /// Puts the state back, also after a panic.
    struct Restore(Option<RecordElementwise>);
    impl Drop for Restore {
        fn drop(&mut self) {
            RECORDING.set(self.0);
        }
    }
    let _restore = Restore(RECORDING.replace(recording));
    run()
}

/// The caches that an attention reads, one of each sequence.
#[derive(Clone, Copy)]
pub enum CacheOf<'a> {
    /// Those of a layer that has its own, to which it adds keys and values of one position, `[sequences, key heads, 1,
    /// width]`. Layers come in the order of their caches.
    Own(&'a Tensor, &'a Tensor),
    /// Those that another layer has written before, by their number.
    Shared(usize),
}

/// Attention of one query of each sequence to what its cache holds.
#[derive(Clone, Copy)]
pub struct CachedAttention<'a> {
    /// `[sequences, heads, 1, width]`.
    pub queries: &'a Tensor,
    /// The caches.
    pub cache: CacheOf<'a>,
    /// The factor of the scores.
    pub scale: f32,
    /// Positions that a query sees, itself included; `None` for all.
    pub window: Option<u32>,
    /// `[heads]`.
    pub sinks: Option<&'a Tensor>,
}

/// Whose tokens the rows of a recorded step are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StepRows {
    /// The next one of each of so many sequences, whose next tokens are chosen.
    OfSequences(usize),
    /// So many of one sequence, one after another, that are read for the sake of its caches.
    OfOne(usize),
}

impl StepRows {
    /// How many there are.
    pub fn count(self) -> usize {
        match self {
            Self::OfSequences(count) | Self::OfOne(count) => count,
        }
    }
}

/// The caches of one layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheShape {
    /// The type of keys and values.
    pub dtype: Dtype,
    /// Key heads.
    pub heads: i32,
    /// Width of a head.
    pub width: i32,
}

/// Keys and values of a layer and a sequence `[1, key heads, places, width]`, with room for the positions of a step.
#[derive(Clone, Copy)]
pub struct CachePlace<'a> {
    /// The keys.
    pub keys: &'a Tensor,
    /// The values.
    pub values: &'a Tensor,
}

/// The input of a step for one of its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextToken {
    /// The token.
    pub token: u32,
    /// Tokens before it in its caches.
    pub offset: u32,
    /// Its position, by which heads turn.
    pub position: u32,
}

/// A step that was recorded.
pub trait RecordedStep {
    /// The caches that it reads and writes, in their order.
    fn cache_shapes(&self) -> &[CacheShape];

    /// Reads and writes these caches from now on: those of each row.
    ///
    /// # Errors
    /// If MLX or the card fails, or the caches are not as when the step was recorded.
    fn bind(&mut self, rows: &[Vec<CachePlace<'_>>]) -> Result<()>;

    /// Begins the step with these tokens, or with those that the step before chose, one position further. The result is
    /// the number of the step, by which [`RecordedStep::tokens`] knows it.
    ///
    /// # Errors
    /// If the card fails.
    fn begin(&mut self, tokens: Option<&[NextToken]>) -> Result<u64>;

    /// Waits for the likeliest tokens of one of the last two steps.
    ///
    /// # Errors
    /// If the card fails.
    fn tokens(&mut self, step: u64) -> Result<Vec<u32>>;

    /// The logits `[sequences, vocabulary]` of the last step, which the next one overwrites. Waits for them.
    ///
    /// # Errors
    /// If the card fails.
    fn logits(&mut self) -> Result<Tensor>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_found_in_what_was_launched() {
        let all = Launched::new(3, &[2, 5, 4]);
        assert_eq!(all.strides, [20, 4, 1, 0]);
        let row = all.sliced(1, 2);
        assert_eq!((row.offset, row.strides), (8, all.strides));
        // Rows of two tokens are apart, those of one are not.
        assert_eq!(row.reshaped(&[2, 1, 4], &[8]), None);
        let one = all.sliced(0, 1).sliced(1, 2).reshaped(&[1, 1, 4], &[4]);
        assert_eq!(one.map(|one| (one.offset, one.strides[0])), Some((28, 1)));
        assert_eq!(all.reshaped(&[2, 5, 4], &[1, 1, 1, 1, 40]), None);
    }

    #[test]
    fn recording_ends_with_what_is_described() {
        assert!(!is_on());
        on(
            |_, _, _| Ok(None),
            || {
                assert!(is_on());
                paused(|| assert!(!is_on()));
                assert!(is_on());
            },
        );
        assert!(!is_on());
    }
}
