//! Decode steps whose launches are recorded once and repeated: a step of a model is the same launches each time, so
//! that describing it again for every token, which MLX asks for, is most of a token's time on a fast card.
//!
//! While a step is recorded it is described as always. Kernels that take part write down their launches instead of
//! handing them to MLX, and each tensor knows the [`Origin`] of its numbers: a launch that would read what only MLX
//! computes cannot be recorded.

use std::cell::Cell;

use mlx_rs::Dtype;

use crate::error::Result;
use crate::origin::{forget, is_recording, set_recording};
use crate::random::RandomKey;
use crate::tensor::Tensor;

pub use crate::origin::{Launched, Origin, MAX_AXES};

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
    static ELEMENTWISE: Cell<Option<RecordElementwise>> = const { Cell::new(None) };
}

/// True while this thread records a step.
pub fn is_on() -> bool {
    is_recording()
}

/// Runs `describe` while this thread records.
pub fn on<T>(elementwise: RecordElementwise, describe: impl FnOnce() -> T) -> T {
    forget();
    within(Some(elementwise), describe)
}

/// Runs what is to be computed at once although this thread records.
pub fn paused<T>(compute: impl FnOnce() -> T) -> T {
    within(None, compute)
}

/// Records an operation, if this thread records and that operation can be.
pub(crate) fn elementwise(operation: Elementwise, a: &Tensor, b: &Tensor) -> Result<Option<Tensor>> {
    match ELEMENTWISE.get() {
        Some(record) => record(operation, a, b),
        None => Ok(None),
    }
}

fn within<T>(recording: Option<RecordElementwise>, run: impl FnOnce() -> T) -> T {
    /// Puts the state back, also after a panic.
    struct Restore(Option<RecordElementwise>);
    impl Drop for Restore {
        fn drop(&mut self) {
            ELEMENTWISE.set(self.0);
            set_recording(self.0.is_some());
        }
    }
    let _restore = Restore(ELEMENTWISE.replace(recording));
    set_recording(recording.is_some());
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
    /// Some of one sequence, one after another, that are read for the sake of its caches.
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

/// How the next token of a row is chosen: mlx-lm's rules that need nothing but the logits, in its order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowSampler {
    /// 1 / temperature; 0 for the likeliest token.
    pub inverse_temperature: f32,
    /// The probability of the smallest set of tokens that is kept; 0 for all.
    pub top_p: f32,
    /// The logarithm of how likely a token is at least, as a part of the likeliest; `None` for all.
    pub log_min_p: Option<f32>,
    /// How many of the likeliest are kept; 0 for all.
    pub top_k: u32,
    /// The state of the random numbers: the key that is used comes of splitting it.
    pub key: RandomKey,
}

impl RowSampler {
    /// The likeliest token.
    pub const LIKELIEST: Self = Self {
        inverse_temperature: 0.0,
        top_p: 0.0,
        log_min_p: None,
        top_k: 0,
        key: RandomKey([0; 2]),
    };

    /// The sampler of the token after the next one.
    #[must_use]
    pub fn after(self) -> Self {
        match self.inverse_temperature > 0.0 {
            true => Self {
                key: self.key.split().0,
                ..self
            },
            false => self,
        }
    }
}

/// A step that was recorded.
pub trait RecordedStep {
    /// Names what it computes: steps of one name are the same launches with the same numbers, whatever the weights are.
    fn name(&self) -> &str;

    /// The caches that it reads and writes, in their order.
    fn cache_shapes(&self) -> &[CacheShape];

    /// Reads and writes these caches from now on: those of each row.
    ///
    /// # Errors
    /// If MLX or the card fails, or the caches are not as when the step was recorded.
    fn bind(&mut self, rows: &[Vec<CachePlace<'_>>]) -> Result<()>;

    /// Begins the step with these tokens, or with those that the step before chose, one position further; the next ones
    /// are chosen by these samplers, or by those that the step before left. The result is the number of the step, by
    /// which [`RecordedStep::tokens`] knows it.
    ///
    /// # Errors
    /// If the card fails.
    fn begin(&mut self, tokens: Option<&[NextToken]>, samplers: Option<&[RowSampler]>) -> Result<u64>;

    /// Waits for the tokens that were chosen in one of the last two steps.
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

    #[test]
    fn a_recording_tells_whose_numbers_are_whose() {
        crate::device::connect().unwrap();
        let weight = Tensor::from_i32(&[1, 2, 3, 4], &[2, 2]);
        let id = weight.id();
        assert_eq!(weight.clone().id(), id);
        on(
            |_, _, _| Ok(None),
            || {
                assert_eq!(weight.clone().origin(), Origin::Memory);
                assert_eq!(weight.swapaxes(0, 1).unwrap().origin(), Origin::Memory);
                assert_eq!(weight.add(&weight).unwrap().origin(), Origin::Described);
                let launched = Launched::new(7, &[2, 6]);
                let made = Tensor::from_i32(&[0; 12], &[2, 6]).from_launch(launched);
                assert_eq!(made.origin(), Origin::Launch(launched));
                let half = made.slice(1, 3, 6).unwrap();
                assert_eq!(half.strides(), [6, 1]);
                let Origin::Launch(part) = half.origin() else {
                    panic!("a part of what a launch writes is written by it")
                };
                assert_eq!((part.buffer, part.offset), (7, 3));
                // Rows that lie apart are copied to become one.
                assert_eq!(half.reshape(&[6]).unwrap().origin(), Origin::Described);
                assert!(matches!(made.reshape(&[3, -1]).unwrap().origin(), Origin::Launch(_)));
                assert!(matches!(made.astype(Dtype::Int32).unwrap().origin(), Origin::Launch(_)));
                assert_eq!(made.astype(Dtype::Float32).unwrap().origin(), Origin::Described);
            },
        );
    }
}
