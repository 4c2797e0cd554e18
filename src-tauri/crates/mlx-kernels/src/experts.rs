//! A few rows times the matrices of a stack that indices choose, as experts in decoding: MLX multiplies them in tiles of
//! 16 rows, of which one is used.

use mlx::fused::GateActivation;
use mlx::quantized::QuantizedTensor;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::compare::{difference, noise};
use crate::gate::{compose, number};
use crate::kernel::{find, Kernel, Key};
use crate::program::Program;

const THREADS: i32 = 256;
/// Rows of a matrix that a warp multiplies.
const ROWS: i32 = 4;
/// From more rows on, they are sorted by expert, so that each is read once.
const MAX_ROWS: i32 = 32;
/// Experts of a token at most: a block has a warp for each.
const MAX_CHOSEN: i32 = 16;

/// A stack of matrices `[count, outputs, inputs]`, and `[count, outputs]` biases, if it has any.
#[derive(Clone, Copy)]
pub struct Stack<'a> {
    /// The matrices.
    pub matrices: &'a QuantizedTensor,
    /// The biases.
    pub bias: Option<&'a Tensor>,
}

/// The work of a launch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Product,
    Gated(GateActivation),
    Sum,
}

impl Work {
    fn numbers(self) -> (i32, i32) {
        match self {
            Self::Product => (0, 0),
            Self::Gated(curve) => (1, number(curve)),
            Self::Sum => (2, 0),
        }
    }
}

/// `x` `[…, 1, inputs]` times the matrices that `experts` `[tokens, chosen]` choose, `[…, 1, outputs]`; with `gated`, the
/// activation of the first half of that with the second half. `None` if no kernel can be used.
pub fn gathered_linear(
    x: &Tensor,
    stack: Stack<'_>,
    experts: &Tensor,
    gated: Option<GateActivation>,
) -> Result<Option<Tensor>> {
    let (&[tokens, of_token, 1, inputs], &[rows, chosen]) = (x.shape(), experts.shape()) else {
        return Ok(None);
    };
    if tokens != rows || (of_token != 1 && of_token != chosen) {
        return Ok(None);
    }
    let x = x.reshape(&[tokens * of_token, inputs])?;
    let work = gated.map_or(Work::Product, Work::Gated);
    let Some(made) = launch_checked(&x, stack, experts, None, work)? else {
        return Ok(None);
    };
    let outputs = made.dim(1);
    made.reshape(&[tokens, chosen, 1, outputs]).map(Some)
}

/// `x` `[tokens, chosen, 1, inputs]` times the matrices that `experts` `[tokens, chosen]` choose, summed by `shares` of the
/// same shape: `[tokens, outputs]`. `None` if no kernel can be used.
pub fn gathered_sum(x: &Tensor, stack: Stack<'_>, experts: &Tensor, shares: &Tensor) -> Result<Option<Tensor>> {
    let (&[tokens, chosen, 1, inputs], true) = (x.shape(), shares.shape() == experts.shape()) else {
        return Ok(None);
    };
    if experts.shape() != [tokens, chosen] || shares.dtype() != x.dtype() {
        return Ok(None);
    }
    let x = x.reshape(&[tokens * chosen, inputs])?;
    launch_checked(&x, stack, experts, Some(shares), Work::Sum)
}

/// The code of a stack's numbers in the kernels; `None` if there is none.
fn code(matrices: &QuantizedTensor, dtype: Dtype) -> Option<i32> {
    let format = &matrices.format;
    let own_types = || {
        let biases = matrices.biases.as_ref();
        matrices.scales.dtype() == dtype && biases.is_some_and(|biases| biases.dtype() == dtype)
    };
    match (format.mode.to_bytes(), format.bits, format.group_size) {
        (b"affine", 4, 32 | 64 | 128) if own_types() => Some(0),
        (b"affine", 8, 32 | 64 | 128) if own_types() => Some(1),
        (b"mxfp4", 4, 32) if matrices.scales.dtype() == Dtype::Uint8 => Some(2),
        _ => None,
    }
}

fn launch_checked(
    x: &Tensor,
    stack: Stack<'_>,
    experts: &Tensor,
    shares: Option<&Tensor>,
    work: Work,
) -> Result<Option<Tensor>> {
    let (tokens, chosen) = (experts.dim(0), experts.dim(1));
    let bias_fits = stack.bias.is_none_or(|bias| bias.dtype() == x.dtype());
    let fits = tokens <= MAX_ROWS && chosen <= MAX_CHOSEN && x.dim(1) % 32 == 0 && experts.dtype() == Dtype::Uint32;
    let Some(code) = code(stack.matrices, x.dtype()).filter(|_| fits && bias_fits) else {
        return Ok(None);
    };
    let (kind, curve) = work.numbers();
    let shared = work != Work::Sum && x.dim(0) == tokens && chosen > 1;
    let numbers = [kind, code, curve, i32::from(stack.bias.is_some()), i32::from(shared)];
    let kernel = find(Key::new(Program::Experts, x.dtype(), numbers), |kernel| {
        compare(kernel, stack, x.dtype(), work, shared)
    });
    let launched = kernel.map(|kernel| launch(&kernel, x, stack, experts, shares, work));
    launched.transpose()
}

fn launch(
    kernel: &Kernel,
    x: &Tensor,
    stack: Stack<'_>,
    experts: &Tensor,
    shares: Option<&Tensor>,
    work: Work,
) -> Result<Tensor> {
    let QuantizedTensor {
        weight, scales, biases, ..
    } = stack.matrices;
    let (all, tokens, chosen) = (scales.dim(1), experts.dim(0), experts.dim(1));
    let inputs = [
        x,
        weight,
        scales,
        biases.as_ref().unwrap_or(scales),
        stack.bias.unwrap_or(x),
        experts,
        shares.unwrap_or(x),
    ];
    let block = THREADS / 32 * ROWS;
    let pairs = tokens * chosen;
    let (shape, blocks, threads) = match work {
        Work::Product => ([pairs, all], ((all + block - 1) / block, pairs), THREADS),
        Work::Gated(_) => ([pairs, all / 2], ((all + block - 1) / block, pairs), THREADS),
        Work::Sum => ([tokens, all], ((all + ROWS - 1) / ROWS, tokens), 32 * chosen),
    };
    let [made] = kernel.launch(inputs, [(&shape, x.dtype())], blocks, threads)?;
    Ok(made)
}

fn compare(kernel: &Kernel, like: Stack<'_>, dtype: Dtype, work: Work, shared: bool) -> Result<f32> {
    let mut apart: f32 = 0.0;
    let format = like.matrices.format;
    // Outputs that leave a block unfilled, and inputs that leave lanes without work.
    for (inputs, outputs) in [(192, 44), (768, 140), (1152, 36)] {
        if inputs % format.group_size != 0 {
            continue;
        }
        let (count, tokens, chosen) = (5, 3, 2);
        let rows = if shared { tokens } else { tokens * chosen };
        let x = noise(&[rows, inputs], dtype, 51)?;
        let wide = noise(&[count, outputs, inputs], dtype, 52)?;
        let matrices = QuantizedTensor::quantize(&wide, format)?;
        let bias = noise(&[count, outputs], dtype, 53)?;
        let stack = Stack {
            matrices: &matrices,
            bias: like.bias.map(|_| &bias),
        };
        let experts = Tensor::from_i32(&[4, 0, 1, 3, 2, 4], &[tokens, chosen]).astype(Dtype::Uint32)?;
        let shares = noise(&[tokens, chosen], dtype, 54)?;
        let made = launch(kernel, &x, stack, &experts, Some(&shares), work)?;
        let flat = experts.reshape(&[tokens * chosen])?;
        let numbers = matrices.dequantize()?.astype(Dtype::Float32)?;
        let numbers = numbers.take(&flat, 0)?.swapaxes(1, 2)?;
        let rows = match shared {
            true => {
                let of = Tensor::from_i32(&[0, 0, 1, 1, 2, 2], &[tokens * chosen]).astype(Dtype::Uint32)?;
                x.take(&of, 0)?
            }
            false => x.clone(),
        };
        let rows = rows.astype(Dtype::Float32)?.reshape(&[tokens * chosen, 1, inputs])?;
        let mut wanted = rows.matmul(&numbers)?.reshape(&[tokens * chosen, outputs])?;
        if stack.bias.is_some() {
            wanted = wanted.add(&bias.astype(Dtype::Float32)?.take(&flat, 0)?)?;
        }
        let half = outputs / 2;
        let wanted = match work {
            Work::Product => wanted,
            Work::Gated(curve) => compose(curve, &wanted.slice(1, 0, half)?, &wanted.slice(1, half, outputs)?)?,
            Work::Sum => {
                let shares = shares.astype(Dtype::Float32)?.reshape(&[tokens, 1, chosen])?;
                let summed = shares.matmul(&wanted.reshape(&[tokens, chosen, outputs])?)?;
                summed.reshape(&[tokens, outputs])?
            }
        };
        apart = apart.max(difference(&made, &wanted)?);
    }
    Ok(apart)
}
