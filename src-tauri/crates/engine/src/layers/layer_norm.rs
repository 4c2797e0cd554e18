//! Norms by mean and variance.

use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::error;
use crate::kernels::kernels;
use crate::layers::product::computed;
use crate::weights::Weights;

/// `(x - mean) / sqrt(variance + eps) · weight + bias` over the last axis.
#[derive(Parameters)]
pub struct LayerNorm {
    weight: Tensor,
    bias: Tensor,
    eps: f32,
}

impl LayerNorm {
    /// Loads `path.weight` and `path.bias` `[width]`.
    pub fn load(weights: &mut Weights<'_>, path: &str, width: i32, eps: f32) -> error::Result<Self> {
        let weight = weights.take(&format!("{path}.weight"), &[width])?;
        let norm = Self::new(weight, weights.take(&format!("{path}.bias"), &[width])?, eps)?;
        weights.materialize(norm.tensors())?;
        Ok(norm)
    }

    /// A norm with these factors and summands, `[width]`.
    pub fn new(weight: Tensor, bias: Tensor, eps: f32) -> Result<Self> {
        Ok(Self {
            weight: computed(weight)?,
            bias: computed(bias)?,
            eps,
        })
    }

    /// Same shape as `x`.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        match kernels().layer_norm(x, None, (&self.weight, &self.bias), self.eps)? {
            Some(normed) => Ok(normed),
            None => x.fast_layer_norm(&self.weight, &self.bias, self.eps),
        }
    }

    /// The norm of the sum of two of one shape.
    pub fn forward_sum(&self, x: &Tensor, added: &Tensor) -> Result<Tensor> {
        match kernels().layer_norm(x, Some(added), (&self.weight, &self.bias), self.eps)? {
            Some(normed) => Ok(normed),
            None => self.forward(&x.add(added)?),
        }
    }
}
