//! A stack of matrices of which each row has its own.

use mlx::fused::GateActivation;
use mlx::quantized::QuantizedTensor;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::gate::compose;

/// A stack of matrices `[count, outputs, inputs]`, and `[count, outputs]` biases, if it has any.
#[derive(Clone, Copy)]
pub struct Stack<'a> {
    /// The matrices.
    pub matrices: &'a QuantizedTensor,
    /// The biases.
    pub bias: Option<&'a Tensor>,
}

/// `x` `[tokens or pairs, inputs]` times the matrices that are chosen, `[pairs, outputs]`, with 32 bits: with MLX's own
/// operations.
pub fn wanted(x: &Tensor, stack: Stack<'_>, experts: &Tensor, gated: Option<GateActivation>) -> Result<Tensor> {
    let (tokens, chosen) = (experts.dim(0), experts.dim(1));
    let (pairs, inputs) = (tokens * chosen, x.dim(1));
    let of_row = pairs / x.dim(0);
    let of: Vec<i32> = (0..pairs).map(|pair| pair / of_row).collect();
    let rows = x.take(&Tensor::from_i32(&of, &[pairs]).astype(Dtype::Uint32)?, 0)?;
    let rows = rows.astype(Dtype::Float32)?.reshape(&[1, pairs, inputs])?;
    let numbers = stack.matrices.dequantize()?.astype(Dtype::Float32)?.swapaxes(1, 2)?;
    // Each row with all matrices, of which its own is taken.
    let all = rows.matmul(&numbers)?;
    let outputs = all.dim(2);
    let flat = experts.reshape(&[pairs])?;
    let own: Vec<i32> = (flat.to_f32()?.iter().zip(0..))
        .map(|(expert, pair)| *expert as i32 * pairs + pair)
        .collect();
    let own = Tensor::from_i32(&own, &[pairs]).astype(Dtype::Uint32)?;
    let mut made = all.reshape(&[all.dim(0) * pairs, outputs])?.take(&own, 0)?;
    if let Some(bias) = stack.bias {
        made = made.add(&bias.astype(Dtype::Float32)?.take(&flat, 0)?)?;
    }
    let half = outputs / 2;
    match gated {
        Some(curve) => compose(curve, &made.slice(1, 0, half)?, &made.slice(1, half, outputs)?),
        None => Ok(made),
    }
}
