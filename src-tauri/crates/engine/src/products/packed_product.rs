//! Products of many rows with quantized matrices: our own kernel, MLX's, or the matrix as numbers.

use std::cell::RefCell;

use checkpoint::memory::{dequantises_rows, MAX_BYTES_AHEAD};
use mlx::device::{device, Device};
use mlx::fused::Rows;
use mlx::quantized::QuantizedTensor;
use mlx::tensor::{async_eval, eval, Tensor};
use mlx::Result;

use crate::kernels::kernels;

/// `x` `[rows, inputs]` times the rows of a matrix `[outputs, inputs]`: `[rows, outputs]`.
pub fn product(x: &Tensor, rows: Rows<'_>) -> Result<Tensor> {
    match rows {
        Rows::Quantized(matrix) => packed_product(x, matrix),
        Rows::Plain(matrix) => match kernels().linear(x, rows, None)? {
            Some(product) => Ok(product),
            None => x.matmul(&matrix.swapaxes(0, 1)?),
        },
    }
}

/// The same with a quantized matrix.
pub fn packed_product(x: &Tensor, matrix: &QuantizedTensor) -> Result<Tensor> {
    match kernels().linear(x, Rows::Quantized(matrix), None)? {
        Some(product) => Ok(product),
        None if device() == Device::Cuda && dequantises_rows(x.dim(0) as u64) => dequantized_product(x, matrix),
        None => x.quantized_matmul(matrix, true),
    }
}

/// Rows `[…, 1, inputs]` times the rows of the matrices that `indices` choose of a stack, `[…, 1, outputs]`. `sorted` says
/// that indices rise.
pub fn gathered_product(x: &Tensor, stack: Rows<'_>, indices: &Tensor, sorted: bool) -> Result<Tensor> {
    match (kernels().gathered_linear(x, (stack, None), indices, None)?, stack) {
        (Some(product), _) => Ok(product),
        (None, Rows::Plain(stack)) => x.gather_mm(&stack.swapaxes(1, 2)?, indices, sorted),
        (None, Rows::Quantized(stack)) => x.gather_qmm(stack, indices, sorted),
    }
}

/// Large results ahead of the device.
#[derive(Default)]
struct Ahead {
    /// Their bytes since `last`.
    bytes: u64,
    /// A product that the device was last asked for.
    last: Option<Tensor>,
}

thread_local! {
    static AHEAD: RefCell<Ahead> = RefCell::default();
}

/// Lets go of the product that would be waited for next. Called when a chunk has been read.
pub fn clear_ahead() {
    AHEAD.take();
}

/// Counts the bytes that live until `product` is there. The device is asked for what is described at each half of
/// [`MAX_BYTES_AHEAD`], and the half before is waited for, so that it always has something to do.
pub fn run_ahead(product: &Tensor, bytes: u64) -> Result<()> {
    let mut ahead = AHEAD.take();
    ahead.bytes += bytes;
    if ahead.bytes >= MAX_BYTES_AHEAD / 2 {
        async_eval([product])?;
        ahead.bytes = 0;
        if let Some(last) = ahead.last.replace(product.clone()) {
            eval([&last])?;
        }
    }
    AHEAD.set(ahead);
    Ok(())
}

/// The same with the matrix as numbers, for many rows.
fn dequantized_product(x: &Tensor, matrix: &QuantizedTensor) -> Result<Tensor> {
    let numbers = matrix.dequantize()?;
    let product = x.matmul(&numbers.swapaxes(0, 1)?)?;
    run_ahead(&product, numbers.nbytes() as u64)?;
    Ok(product)
}
