//! GELU by its tanh approximation.

use mlx::fused::GateActivation;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::layers::fast;

/// The tanh approximation of GELU: `x · sigmoid(2·sqrt(2/π) · (x + 0.044715 x³))`, which is the same function as the
/// usual form with `tanh` and takes fewer operations.
#[derive(Clone, Parameters)]
pub struct Gelu {
    linear: Tensor,
    cubic: Tensor,
}

impl Gelu {
    /// The constants for activations of this type.
    pub fn new(dtype: Dtype) -> Result<Self> {
        let slope = 2.0 * (2.0 / std::f64::consts::PI).sqrt();
        Ok(Self {
            linear: Tensor::scalar(slope as f32, dtype)?,
            cubic: Tensor::scalar((slope * 0.044_715) as f32, dtype)?,
        })
    }

    /// GELU of every element.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let slope = x.square()?.mul(&self.cubic)?.add(&self.linear)?;
        x.mul(&slope)?.sigmoid()?.mul(x)
    }

    /// GELU of every element times `other`, both `[length, width]`.
    pub fn times(&self, x: &Tensor, other: &Tensor) -> Result<Tensor> {
        match fast::activation::times(GateActivation::Gelu, x, other)? {
            Some(product) => Ok(product),
            None => self.forward(x)?.mul(other),
        }
    }
}
