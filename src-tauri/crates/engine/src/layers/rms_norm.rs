//! Root mean square norms.

use checkpoint::config::decoder::NormConfig;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::error;
use crate::kernels::kernels;
use crate::weights::Weights;

/// `x / sqrt(mean(x²) + eps) · weight` over the last axis.
#[derive(Parameters)]
pub struct RmsNorm {
    /// Factors `[width]` of the last axis, or `[heads, width]` of the last two if heads differ.
    factors: Tensor,
    /// Added to the mean.
    #[parameters(skip)]
    eps: f32,
}

impl RmsNorm {
    /// Loads `path.weight` `[width]`.
    pub fn load(weights: &mut Weights<'_>, path: &str, width: i32, eps: f32) -> error::Result<Self> {
        let weight = weights.take(&format!("{path}.weight"), &[width])?;
        let norm = Self::new(weight, eps);
        weights.materialize(norm.tensors())?;
        Ok(norm)
    }

    /// Loads `path.weight` `[width]`, stored as its difference from 1 if `config` says so, or without factors, of type
    /// `dtype`.
    pub fn load_from(
        weights: &mut Weights<'_>,
        path: &str,
        width: i32,
        config: NormConfig,
        dtype: Dtype,
    ) -> error::Result<Self> {
        let factors = match config.bare {
            true => ones(width, dtype)?,
            false => norm_weight(weights, path, width, config)?,
        };
        let norm = Self::new(factors, config.eps);
        weights.materialize(norm.tensors())?;
        Ok(norm)
    }

    /// Loads `path.weight` `[width]`, stored as its difference from `offset`.
    pub fn load_offset(
        weights: &mut Weights<'_>,
        path: &str,
        width: i32,
        eps: f32,
        offset: f32,
    ) -> error::Result<Self> {
        let factors = weights.take(&format!("{path}.weight"), &[width])?;
        let norm = Self::new(factors.add(&Tensor::scalar(offset, factors.dtype())?)?, eps);
        weights.materialize(norm.tensors())?;
        Ok(norm)
    }

    /// A norm with these factors, `[width]` or `[heads, width]`.
    pub fn new(factors: Tensor, eps: f32) -> Self {
        Self { factors, eps }
    }

    /// Factors `[width]` and epsilon, if heads do not differ.
    pub fn weight(&self) -> Option<(&Tensor, f32)> {
        (self.factors.shape().len() == 1).then_some((&self.factors, self.eps))
    }

    /// Factors `[heads, width]` and epsilon, if heads differ.
    pub fn head_weights(&self) -> Option<(&Tensor, f32)> {
        (self.factors.shape().len() == 2).then_some((&self.factors, self.eps))
    }

    /// Same shape as `x`.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        if let Some(normed) = kernels().rms_norm(x, Some(&self.factors), self.eps)? {
            return Ok(normed);
        }
        match self.weight() {
            Some((weight, eps)) => x.fast_rms_norm(Some(weight), eps),
            None => x.fast_rms_norm(None, self.eps)?.mul(&self.factors),
        }
    }
}

/// Takes the factors `path.weight` `[width]` of a norm, stored as their difference from 1 if `config` says so.
pub fn norm_weight(weights: &mut Weights<'_>, path: &str, width: i32, config: NormConfig) -> error::Result<Tensor> {
    let factors = weights.take(&format!("{path}.weight"), &[width])?;
    if config.offset {
        return Ok(factors.add(&Tensor::scalar(1.0, factors.dtype())?)?);
    }
    Ok(factors)
}

/// The factors of a norm that has none, `[width]`.
pub fn ones(width: i32, dtype: Dtype) -> Result<Tensor> {
    Tensor::from_f32(&vec![1.0; width as usize], &[width]).astype(dtype)
}
