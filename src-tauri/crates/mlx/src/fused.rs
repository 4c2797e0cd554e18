//! Operations that kernels may do in one launch where MLX takes several. [`FusedKernels`] is implemented by
//! `mlx-kernels`; a caller that gets `None` computes the same with MLX's own operations.

use std::path::Path;

use mlx_rs::Dtype;

use crate::error::Result;
use crate::ops::Mask;
use crate::quantized::QuantizedTensor;
use crate::recording::{CachedAttention, RecordedStep, StepRows};
use crate::tensor::Tensor;

/// A norm by its factors `[width]` and epsilon.
pub type Norm<'a> = (&'a Tensor, f32);

/// Queries, and keys with values if the layer has its own, `[1, heads, length, width]`.
pub type Split = (Tensor, Option<(Tensor, Tensor)>);

/// A matrix `[outputs, inputs]`, or a stack of such, with the numbers as they are stored.
#[derive(Clone, Copy)]
pub enum Rows<'a> {
    /// Floats of 16 or 32 bits.
    Plain(&'a Tensor),
    /// Quantized ones.
    Quantized(&'a QuantizedTensor),
}

/// The activation of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GateActivation {
    /// `x · sigmoid(x)`.
    Silu,
    /// The tanh approximation of GELU.
    Gelu,
    /// That of gpt-oss: `(u + 1) · g · sigmoid(1.702 · g)` of what it gates `u` and the gate `g`, which are clipped at 7
    /// before.
    ClippedSilu,
}

/// An activation of single numbers, which gates nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PointwiseActivation {
    /// GELU by the error function.
    Gelu,
    /// GELU by its tanh approximation.
    GeluTanh,
    /// `x · sigmoid(1.702 · x)`.
    QuickGelu,
    /// `max(x, 0)`.
    Relu,
    /// `x · sigmoid(x)`.
    Silu,
}

/// The row `(h + norm(x)) · factor`, and its norm.
#[derive(Clone, Copy)]
pub struct ResidualInput<'a> {
    /// The stream, `[1, inputs]`.
    pub h: &'a Tensor,
    /// The summand.
    pub x: &'a Tensor,
    /// The norm of what is added.
    pub inner: Option<Norm<'a>>,
    /// The sum's factor, `[1]`.
    pub factor: Option<&'a Tensor>,
    /// The norm of what is read.
    pub outer: Option<Norm<'a>>,
}

/// A router of experts, whose scores of a row are its products with the weights, and a bias, if there is one.
#[derive(Clone, Copy)]
pub struct Router<'a> {
    /// `[experts, width]`.
    pub weight: &'a Tensor,
    /// `[1, experts]`.
    pub bias: Option<&'a Tensor>,
    /// Experts of a token.
    pub chosen: i32,
}

/// Rows of the stream with the experts that they go to.
pub struct Routed {
    /// The stream, `[rows, width]`.
    pub sum: Tensor,
    /// The stream, normed.
    pub normed: Tensor,
    /// The experts of each row, `[rows, chosen]`, as unsigned 32 bit integers.
    pub experts: Tensor,
    /// The softmax of their scores.
    pub shares: Tensor,
}

/// The treatment of the outputs of a projection.
#[derive(Clone, Copy)]
pub enum Epilogue<'a> {
    /// Nothing.
    Plain,
    /// The activation of the first half times the second half.
    Gated(GateActivation),
    /// The activation of all times these, `[1, outputs]`.
    Times(GateActivation, &'a Tensor),
}

/// How the heads of a layer lie and what is done to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HeadShape {
    /// Query heads.
    pub heads: i32,
    /// Key heads, and as many value heads; 0 if the layer has only queries.
    pub key_heads: i32,
    /// Width of a head.
    pub width: i32,
    /// How many heads, from the first query head, are normed.
    pub normed: i32,
    /// Bits of the epsilon of the norms.
    pub eps: u32,
    /// How many elements of a head turn.
    pub rotated: i32,
    /// True if neighbors rotate against each other, instead of halves.
    pub traditional: bool,
}

/// A tensor in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileTensor {
    /// Its first byte in the file.
    pub offset: u64,
    /// The type of its numbers.
    pub dtype: Dtype,
    /// Its shape.
    pub shape: Vec<i32>,
}

/// How the processor computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Processor {
    /// The instructions, as their maker calls them.
    pub instructions: &'static str,
    /// How many threads take part.
    pub threads: usize,
    /// Bits of the rows that quantized matrices are multiplied with.
    pub activation_bits: u8,
}

/// Kernels that each do in one launch what takes several of MLX's: with small batches a token costs as much as it has
/// launches. Each returns `None` for what it cannot do, as those that are not implemented do for everything, and fails
/// only if MLX does.
#[allow(unused_variables)]
pub trait FusedKernels {
    /// Attention of queries `[1, heads, length, width]` to those of the keys and values `[1, key heads, positions,
    /// width]` that the mask shows them; the result is `[length, heads · value width]`. `sinks` `[heads]` are scores
    /// without a value.
    fn attend(
        &self,
        queries: &Tensor,
        keys_and_values: (&Tensor, &Tensor),
        scale: f32,
        mask: &Mask,
        sinks: Option<&Tensor>,
    ) -> Result<Option<Tensor>> {
        Ok(None)
    }

    /// `x` `[rows, inputs]` times the transpose of the matrix, `[rows, outputs]`; with `gated`, the activation of the
    /// first half of that times the second half.
    fn linear(&self, x: &Tensor, matrix: Rows<'_>, gated: Option<GateActivation>) -> Result<Option<Tensor>> {
        Ok(None)
    }

    /// `activation(x · matrixᵀ + bias)` of rows `[rows, inputs]`, `[rows, outputs]`. `bias` `[1, outputs]`.
    fn biased_linear(
        &self,
        x: &Tensor,
        matrix: Rows<'_>,
        bias: &Tensor,
        activation: Option<PointwiseActivation>,
    ) -> Result<Option<Tensor>> {
        Ok(None)
    }

    /// The activation of every number.
    fn pointwise(&self, activation: PointwiseActivation, x: &Tensor) -> Result<Option<Tensor>> {
        Ok(None)
    }

    /// `(sum - mean) / sqrt(variance + eps) · weight + bias` over the last axis of `sum = x + added`, with `weight` and
    /// `bias` `[width]`.
    fn layer_norm(
        &self,
        x: &Tensor,
        added: Option<&Tensor>,
        weight_and_bias: (&Tensor, &Tensor),
        eps: f32,
    ) -> Result<Option<Tensor>> {
        Ok(None)
    }

    /// The same as [`FusedKernels::linear`] with the matrices of a stack `[count, outputs, inputs]` that `indices`
    /// choose: `x` `[…, 1, inputs]` gives `[…, 1, outputs]`. Axes of `x` that are 1 are stretched to those of `indices`.
    /// Biases `[count, outputs]` are added before the activation.
    fn gathered_linear(
        &self,
        x: &Tensor,
        stack_and_bias: (Rows<'_>, Option<&Tensor>),
        indices: &Tensor,
        gated: Option<GateActivation>,
    ) -> Result<Option<Tensor>> {
        Ok(None)
    }

    /// The sum by `shares` of what [`FusedKernels::gathered_linear`] makes of `x` `[tokens, chosen, 1, inputs]` without an
    /// activation, `[tokens, outputs]`. `indices` and `shares` are `[tokens, chosen]`.
    fn gathered_sum(
        &self,
        x: &Tensor,
        stack_and_bias: (Rows<'_>, Option<&Tensor>),
        indices: &Tensor,
        shares: &Tensor,
    ) -> Result<Option<Tensor>> {
        Ok(None)
    }

    /// The places of the `chosen` greatest of each row of `scores` `[rows, count]` and their softmax, both `[rows,
    /// chosen]`, in no order.
    fn route(&self, scores: &Tensor, chosen: i32) -> Result<Option<(Tensor, Tensor)>> {
        Ok(None)
    }

    /// `(h + inner(x)) · factor` of rows `[length, width]`, that normed by `outer`, and the experts that a router chooses by
    /// the normed rows.
    fn norm_route(&self, row: ResidualInput<'_>, router: Router<'_>) -> Result<Option<Routed>> {
        Ok(None)
    }

    /// The normed row times the transpose of the matrix, `[1, outputs]`, and the row before its norm.
    fn norm_linear(
        &self,
        row: ResidualInput<'_>,
        matrix: Rows<'_>,
        after: Epilogue<'_>,
    ) -> Result<Option<(Tensor, Tensor)>> {
        Ok(None)
    }

    /// `x / sqrt(mean(x²) + eps)` over the last axis, times factors `[width]`, or `[heads, width]` of the last two axes.
    fn rms_norm(&self, x: &Tensor, factors: Option<&Tensor>, eps: f32) -> Result<Option<Tensor>> {
        Ok(None)
    }

    /// `(h + inner(x)) · factor` of rows `[length, width]`, and that normed by `outer`, if it is given.
    fn add_norm(&self, row: ResidualInput<'_>) -> Result<Option<(Tensor, Option<Tensor>)>> {
        Ok(None)
    }

    /// `activation(gate) · up` of rows. Without `up` both stand side by side in `gate` `[…, 2 · width]`; else both are
    /// `[length, width]` and may be parts of wider rows.
    fn gate(&self, activation: GateActivation, gate: &Tensor, up: Option<&Tensor>) -> Result<Option<Tensor>> {
        Ok(None)
    }

    /// Queries, keys and values `[1, heads, length, width]` of `all` `[length, (heads + 2 · key heads) · width]`.
    /// `factors` `[normed, width]`; `periods` `[rotated / 2]` as 32 bit floats; `positions` as 32 bit integers: the
    /// first one `[1]`, or `[length]` of as many sequences, whose heads are `[length, heads, 1, width]`.
    fn heads(
        &self,
        shape: HeadShape,
        all: &Tensor,
        factors: Option<&Tensor>,
        periods: &Tensor,
        positions: &Tensor,
    ) -> Result<Option<Split>> {
        Ok(None)
    }

    /// Heads `[1, heads, length, width]`, or of several sequences `[sequences, heads, 1, width]`, with their first
    /// `rotated` elements turned: neighbors against each other, or halves. `periods` and `positions` as for
    /// [`FusedKernels::heads`].
    fn rotate(
        &self,
        x: &Tensor,
        rotated: i32,
        neighbors: bool,
        periods: &Tensor,
        positions: &Tensor,
    ) -> Result<Option<Tensor>> {
        Ok(None)
    }

    /// The rows of a table `[tokens, width]` by `ids` `[length]`, `[length, width]`.
    fn embedding(&self, table: Rows<'_>, ids: &Tensor) -> Result<Option<Tensor>> {
        Ok(None)
    }

    /// The tensors that a file has at these places, unread until they are computed; those that were joined by then are
    /// read into the memory of the whole.
    fn file_tensors(&self, path: &Path, tensors: &[FileTensor]) -> Result<Option<Vec<Tensor>>> {
        Ok(None)
    }

    /// The tensor that a file has at a place, which MLX would read as `described`, read now. `None` if MLX shall read it.
    fn read_tensor(&self, path: &Path, place: &FileTensor, described: &Tensor) -> Result<Option<Tensor>> {
        Ok(None)
    }

    /// Frees what reading tensors needed: a model is loaded.
    fn loaded(&self) {}

    /// Keys or values in the type in which caches keep them; `None` if that is the type they have.
    fn to_kv_dtype(&self, x: &Tensor) -> Result<Option<Tensor>> {
        Ok(None)
    }

    /// Records the step that `describe` describes: it gets the tokens `[rows]` and returns the logits, or states if no
    /// token is to be chosen. `None` if it has operations that cannot be recorded.
    fn record(
        &self,
        rows: StepRows,
        describe: &mut dyn FnMut(&Tensor) -> Result<Tensor>,
    ) -> Result<Option<Box<dyn RecordedStep>>> {
        Ok(None)
    }

    /// The positions `[rows]` of the tokens of a step that is being recorded; numbers would be recorded with it.
    fn recorded_positions(&self) -> Option<Tensor> {
        None
    }

    /// Attention by caches, `[rows, heads · width]`, if a step is being recorded.
    fn attend_cached(&self, attention: CachedAttention<'_>) -> Result<Option<Tensor>> {
        Ok(None)
    }

    /// Waits for recorded steps, which MLX does not know of.
    fn wait_for_recorded(&self) {}

    /// Makes one operation of those that follow each other and lead to these tensors, before they are computed.
    fn join(&self, tensors: &[&Tensor]) -> Result<()> {
        Ok(())
    }

    /// Loses nothing from now on in operations of this thread but the order of additions.
    fn compute_exactly(&self) {}

    /// How the processor computes, if these compute on it.
    fn processor(&self) -> Option<Processor> {
        None
    }

    /// True if there are any for the device of this thread.
    fn are_available(&self) -> bool {
        false
    }

    /// True if they are still to be compiled on this computer and for this card, so that a load will take longer.
    fn are_missing(&self) -> bool {
        false
    }

    /// Drops those of this thread.
    fn clear(&self) {}
}

/// None: everything is computed with MLX's own operations.
pub struct NoKernels;

impl FusedKernels for NoKernels {}
