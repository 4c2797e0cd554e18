//! Root mean square norms on a CPU.

use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

/// A norm for the CPU, which has no kernel for it and would run eight operations: with the mean's divisor moved into
/// the factor, four or five are enough.
#[derive(Parameters)]
pub struct FoldedNorm {
    /// Factors times `sqrt(width)`.
    weight: Tensor,
    /// `width · eps`, `[1, 1]`.
    floor: Tensor,
}

impl FoldedNorm {
    /// The norm with these factors, `[width]` or `[heads, width]`.
    pub fn new(weight: &Tensor, eps: f32) -> Result<Self> {
        let width = weight.dim(-1) as f32;
        Ok(Self {
            floor: Tensor::from_f32(&[width * eps], &[1, 1]),
            weight: weight.mul(&Tensor::scalar(width.sqrt(), Dtype::Float32)?)?,
        })
    }

    /// Same shape as `x`.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let width = x.dim(-1);
        let squares = if x.size() == width as usize {
            x.addmm(&x.reshape(&[width, 1])?, &self.floor)?
        } else {
            x.square()?.sum(-1, true)?.add(&self.floor)?
        };
        x.mul(&squares.rsqrt()?)?.mul(&self.weight)
    }
}
