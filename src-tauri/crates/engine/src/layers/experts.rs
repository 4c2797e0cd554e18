//! A feed-forward of many experts, of which each token uses a few (Shazeer et al. 2017, arXiv:1701.06538). Which ones,
//! and how much each counts, is the router's matter.

use checkpoint::memory::{dequantises_experts, MAX_DEQUANTIZED_EXPERTS};
use mlx::device::{device, on_cpu, Device};
use mlx::ops::{concatenate, join};
use mlx::parameters::{parameters, Parameters};
use mlx::quantized::QuantizedTensor;
use mlx::tensor::{eval, Tensor};
use mlx::{Dtype, Result};

use crate::error;
use crate::layers::Activation;
use crate::products::product_check::Layout;
use crate::weights::{join_quantized, ExpertShape, Matrix, Storage, Weights};

/// From this many pairs of a token and its expert on, they are sorted by expert, so that a device reads the weights of
/// each expert once.
const MIN_SORTED_PAIRS: i32 = 64;

/// The experts of one layer.
pub struct Experts {
    /// gate_proj and up_proj of each expert side by side.
    gate_up_proj: SwitchLinear,
    down_proj: SwitchLinear,
    activation: Activation,
    /// Experts per token, as an unsigned 32 bit integer.
    chosen: Tensor,
}

/// One projection of every expert.
struct SwitchLinear {
    product: ExpertsWeight,
    /// `[experts, outputs]`.
    bias: Option<Tensor>,
}

enum ExpertsWeight {
    /// Plain numbers, turned to `[experts, inputs, outputs]`.
    Plain(Tensor),
    /// Quantized rows `[experts, outputs, words]`.
    Quantized(QuantizedTensor),
    /// Projections of one input in different number formats, which cannot become one stack.
    Split(Vec<ExpertsWeight>),
}

/// The places of the `k` greatest numbers of each row of `scores` `[length, count]`, in no order, `[length, k]`.
pub fn top_k_indices(scores: &Tensor, k: i32) -> Result<Tensor> {
    let count = scores.dim(1);
    scores.argpartition(-k, 1)?.slice(1, count - k, count)
}

impl Experts {
    /// Loads the experts of the feed-forward at `path`, of which each token uses `chosen`.
    pub fn load(
        weights: &mut Weights<'_>,
        path: &str,
        shape: ExpertShape,
        chosen: i32,
        activation: Activation,
    ) -> error::Result<Self> {
        let matrices = weights.take_experts(path, shape, MAX_DEQUANTIZED_EXPERTS)?;
        let gate_up_proj = SwitchLinear {
            product: ExpertsWeight::join(matrices.gate_up)?.checked(weights)?,
            bias: matrices.gate_up_bias,
        };
        weights.materialize(gate_up_proj.tensors())?;
        let experts = Self {
            gate_up_proj,
            down_proj: SwitchLinear {
                product: ExpertsWeight::join(vec![matrices.down])?.checked(weights)?,
                bias: matrices.down_bias,
            },
            activation,
            chosen: Tensor::from_i32(&[chosen], &[]).astype(Dtype::Uint32)?,
        };
        weights.materialize(experts.tensors())?;
        Ok(experts)
    }

    /// `x` `[length, hidden]` through the experts `indices` `[length, chosen]`, each counted by `weights` `[length,
    /// chosen]` in the type of `x`; the result is `[length, hidden]`.
    pub fn forward(&self, x: &Tensor, indices: &Tensor, weights: &Tensor) -> Result<Tensor> {
        let &[length, hidden] = x.shape() else {
            unreachable!("activations have two axes")
        };
        let chosen = indices.dim(1);
        let fed = if length * chosen < MIN_SORTED_PAIRS {
            self.feed(&x.reshape(&[length, 1, 1, hidden])?, indices, false)?
        } else {
            let indices = indices.reshape(&[length * chosen])?;
            let order = indices.argsort(0)?;
            let rows = x.take(&order.floor_divide(&self.chosen)?, 0)?;
            let fed = self.feed(
                &rows.reshape(&[length * chosen, 1, hidden])?,
                &indices.take(&order, 0)?,
                true,
            )?;
            fed.take(&order.argsort(0)?, 0)?
        };
        let fed = fed.reshape(&[length, chosen, hidden])?;
        weights
            .reshape(&[length, 1, chosen])?
            .matmul(&fed)?
            .reshape(&[length, hidden])
    }

    fn feed(&self, rows: &Tensor, indices: &Tensor, sorted: bool) -> Result<Tensor> {
        let gated = self
            .activation
            .gated(&self.gate_up_proj.forward(rows, indices, sorted)?)?;
        self.down_proj.forward(&gated, indices, sorted)
    }
}

impl SwitchLinear {
    /// `rows` `[…, 1, inputs]` times the experts of `indices`.
    fn forward(&self, rows: &Tensor, indices: &Tensor, sorted: bool) -> Result<Tensor> {
        let product = self.product.forward(rows, indices, sorted)?;
        match &self.bias {
            Some(bias) => product.add(&bias.take(indices, 0)?.reshape(product.shape())?),
            None => Ok(product),
        }
    }
}

impl ExpertsWeight {
    /// The same weights, as numbers if this device multiplies them wrongly as they are.
    fn checked(self, weights: &mut Weights<'_>) -> error::Result<Self> {
        match self {
            Self::Plain(stack) => Ok(Self::Plain(stack)),
            Self::Quantized(stack) => match weights.replacement(&stack, Layout::Experts)? {
                Some(numbers) => Ok(Self::Plain(turn(&[&numbers])?)),
                None => Ok(Self::Quantized(stack)),
            },
            Self::Split(parts) => Ok(Self::Split(
                parts
                    .into_iter()
                    .map(|part| part.checked(weights))
                    .collect::<error::Result<_>>()?,
            )),
        }
    }

    /// Joins stacks of one input along their outputs if their formats agree.
    fn join(matrices: Vec<Matrix>) -> Result<Self> {
        match Storage::of(&matrices) {
            Storage::Plain(parts) => return Ok(Self::Plain(turn(&parts)?)),
            Storage::Quantized(parts) => return Ok(Self::Quantized(join_quantized(&parts, 1)?)),
            Storage::Mixed => {}
        }
        let parts = matrices
            .into_iter()
            .map(|matrix| Self::join(vec![matrix]))
            .collect::<Result<_>>()?;
        Ok(Self::Split(parts))
    }

    fn forward(&self, rows: &Tensor, indices: &Tensor, sorted: bool) -> Result<Tensor> {
        match self {
            Self::Plain(stack) => rows.gather_mm(stack, indices, sorted),
            Self::Quantized(stack) if sorted && dequantises(stack, rows) => {
                let product = rows.gather_mm(&stack.dequantize()?.swapaxes(1, 2)?, indices, sorted)?;
                // One stack of numbers lives at a time.
                eval([&product])?;
                Ok(product)
            }
            Self::Quantized(stack) => rows.gather_qmm(stack, indices, sorted),
            Self::Split(parts) => {
                let outputs = parts
                    .iter()
                    .map(|part| part.forward(rows, indices, sorted))
                    .collect::<Result<Vec<_>>>()?;
                concatenate(&outputs.iter().collect::<Vec<_>>(), -1)
            }
        }
    }
}

/// True if sorted rows are multiplied with the dequantized numbers of a stack of experts.
fn dequantises(stack: &QuantizedTensor, rows: &Tensor) -> bool {
    // MLX gathers matrices on the processor in 32 bit floats alone, where a test may choose the operations that GPUs
    // get.
    let gathers = !on_cpu() || rows.dtype() == Dtype::Float32;
    device() == Device::Cuda
        && gathers
        && dequantises_experts(stack.scales.dim(0) as u64, stack.numbers() as u64, rows.dim(0) as u64)
}

/// Plain stacks joined and turned to `[experts, inputs, outputs]`.
fn turn(parts: &[&Tensor]) -> Result<Tensor> {
    if device() != Device::Cpu {
        return join(parts.iter().copied(), 1)?.swapaxes(1, 2);
    }
    // As for plain projections, the CPU is faster on rows that lie in memory the way they are summed. Turning before
    // joining makes one copy of all experts instead of two.
    let turned = parts
        .iter()
        .map(|part| part.swapaxes(1, 2))
        .collect::<Result<Vec<_>>>()?;
    match &turned[..] {
        [one] => one.contiguous(),
        several => concatenate(&several.iter().collect::<Vec<_>>(), 2),
    }
}

impl Parameters for ExpertsWeight {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        match self {
            Self::Plain(stack) => visitor(stack),
            Self::Quantized(stack) => stack.visit(visitor),
            Self::Split(parts) => parts.visit(visitor),
        }
    }
}

parameters!(SwitchLinear { product, bias });

parameters!(Experts {
    gate_up_proj,
    down_proj,
    activation,
    chosen,
});

#[cfg(test)]
#[path = "experts_tests.rs"]
mod tests;
