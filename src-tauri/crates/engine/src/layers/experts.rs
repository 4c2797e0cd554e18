//! A feed-forward of many experts, of which each token uses a few (Shazeer et al. 2017, arXiv:1701.06538). Which ones,
//! and how much each counts, is the router's matter.

use std::rc::Rc;

use checkpoint::memory::dequantises_experts;
use mlx::device::{device, on_cpu, Device};
use mlx::fused::Rows;
use mlx::ops::join;
use mlx::parameters::Parameters;
use mlx::quantized::QuantizedTensor;
use mlx::tensor::{eval, Tensor};
use mlx::{Dtype, Result};

use crate::error;
use crate::kernels::kernels;
use crate::layers::product::{Form, Product};
use crate::layers::Activation;
use crate::products::packed_product::{gathered_product, run_ahead};
use crate::products::product_check::Layout;
use crate::weights::{AdapterPart, AdapterPlace, ExpertShape, LowRank, PlaceKind, Weights};

/// From this many pairs of a token and its expert on, they are sorted by expert, so that a device reads the weights of
/// each expert once.
const MIN_SORTED_PAIRS: i32 = 64;

/// From this many on, the memory of what they give is counted.
const MIN_COUNTED_PAIRS: usize = 1024;

/// The experts of one layer.
#[derive(Parameters)]
pub struct Experts {
    /// gate_proj, if there is one, and up_proj of each expert side by side.
    gate_up_proj: SwitchLinear,
    down_proj: SwitchLinear,
    activation: Activation,
    /// Experts per token, as an unsigned 32 bit integer.
    chosen: Tensor,
}

/// One projection of every expert.
#[derive(Parameters)]
struct SwitchLinear {
    product: Product,
    /// `[experts, outputs]`.
    bias: Option<Tensor>,
    /// The place at which adapters add to it.
    #[parameters(skip)]
    adapters: Option<Rc<AdapterPlace>>,
}

/// How stacks of experts `[experts, outputs, inputs]` are joined and turned.
const STACKS: Form = Form {
    layout: Layout::Experts,
    outputs: 1,
    turn: |parts| join(parts.iter().copied(), 1)?.swapaxes(1, 2),
};

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
        let matrices = weights.take_experts(path, shape)?;
        let (rising, falling): (&[&str], &str) = match shape.gated {
            true => (&["gate_proj", "up_proj"], "down_proj"),
            false => (&["fc1"], "fc2"),
        };
        let kind = PlaceKind::Experts(shape.experts);
        let rising = rising
            .iter()
            .map(|name| AdapterPart::of_experts(path, name, shape.width));
        let falling = AdapterPart::of_experts(path, falling, shape.hidden);
        let gate_up_proj = SwitchLinear {
            product: Product::join(matrices.gate_up, STACKS)?.checked(STACKS, weights)?,
            bias: matrices.gate_up_bias,
            adapters: weights.adapter_place(kind, rising.collect(), shape.hidden),
        };
        weights.materialize(gate_up_proj.tensors())?;
        let experts = Self {
            gate_up_proj,
            down_proj: SwitchLinear {
                product: Product::join(vec![matrices.down], STACKS)?.checked(STACKS, weights)?,
                bias: matrices.down_bias,
                adapters: weights.adapter_place(kind, vec![falling], shape.width),
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
        let rows = x.reshape(&[length, 1, 1, hidden])?;
        let fed = match self.gate_up_proj.gated(&rows, indices, &self.activation)? {
            Some(gated) => {
                let down = self.down_proj.stack();
                let summed = down.map(|down| kernels().gathered_sum(&gated, down, indices, weights));
                if let Some(summed) = summed.transpose()?.flatten() {
                    // Of a step's few rows nothing is worth a wait.
                    if device() == Device::Cuda && length as usize * chosen as usize >= MIN_COUNTED_PAIRS {
                        run_ahead(&summed, (gated.nbytes() + chosen as usize * summed.nbytes()) as u64)?;
                    }
                    return Ok(summed);
                }
                self.down_proj.forward(&gated, indices, false)?
            }
            // Kernels for the processor sort by themselves.
            None if length * chosen < MIN_SORTED_PAIRS || device() == Device::Cpu => {
                self.feed(&rows, indices, false)?
            }
            None => {
                let indices = indices.reshape(&[length * chosen])?;
                let order = indices.argsort(0)?;
                let rows = x.take(&order.floor_divide(&self.chosen)?, 0)?;
                let rows = rows.reshape(&[length * chosen, 1, hidden])?;
                let fed = self.feed(&rows, &indices.take(&order, 0)?, true)?;
                fed.take(&order.argsort(0)?, 0)?
            }
        };
        let fed = fed.reshape(&[length, chosen, hidden])?;
        let counted = weights.reshape(&[length, 1, chosen])?.matmul(&fed)?;
        counted.reshape(&[length, hidden])
    }

    fn feed(&self, rows: &Tensor, indices: &Tensor, sorted: bool) -> Result<Tensor> {
        let gated = self
            .activation
            .gated(&self.gate_up_proj.forward(rows, indices, sorted)?)?;
        self.down_proj.forward(&gated, indices, sorted)
    }
}

impl SwitchLinear {
    /// The matrices as they are stored, with their biases, if they are all there is to the products.
    fn stack(&self) -> Option<(Rows<'_>, Option<&Tensor>)> {
        let rows = self.product.rows().filter(|_| self.addition().is_none());
        rows.map(|rows| (rows, self.bias.as_ref()))
    }

    /// The addition of the active adapter.
    fn addition(&self) -> Option<Rc<LowRank>> {
        self.adapters.as_ref()?.addition()
    }

    /// `activation(gate) · up` of the experts of `indices` in one operation, if a kernel does it.
    fn gated(&self, rows: &Tensor, indices: &Tensor, activation: &Activation) -> Result<Option<Tensor>> {
        match (self.stack(), activation.fusible()) {
            (Some(stack), Some(activation)) => kernels().gathered_linear(rows, stack, indices, Some(activation)),
            _ => Ok(None),
        }
    }

    /// `rows` `[…, 1, inputs]` times the experts of `indices`.
    fn forward(&self, rows: &Tensor, indices: &Tensor, sorted: bool) -> Result<Tensor> {
        let gathered = |stack: &Tensor| rows.gather_mm(stack, indices, sorted);
        let product = self.product.forward(&gathered, &|stack| {
            let stack = match stack {
                Rows::Quantized(packed) if sorted && dequantises(packed, rows) => packed,
                stack => return gathered_product(rows, stack, indices, sorted),
            };
            let product = gathered(&stack.dequantize()?.swapaxes(1, 2)?)?;
            // One stack of numbers lives at a time.
            eval([&product])?;
            Ok(product)
        })?;
        let product = match self.addition() {
            Some(addition) => addition.add_gathered(rows, &product, indices, sorted)?,
            None => product,
        };
        match &self.bias {
            Some(bias) => product.add(&bias.take(indices, 0)?.reshape(product.shape())?),
            None => Ok(product),
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

#[cfg(test)]
#[path = "experts_tests.rs"]
mod tests;
