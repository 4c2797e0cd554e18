//! Root mean square norms.

use checkpoint::config::decoder::NormConfig;
use mlx::device::{device, Device};
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::error;
use crate::layers::fast::rms_norm::FoldedNorm;
use crate::weights::Weights;

/// `x / sqrt(mean(x²) + eps) · weight` over the last axis.
#[derive(Parameters)]
pub enum RmsNorm {
    /// MLX's own operation.
    Plain {
        /// Factors of the last axis.
        weight: Option<Tensor>,
        /// Factors of the last two axes, if heads differ; applied after the kernel.
        heads: Option<Tensor>,
        /// Added to the mean.
        eps: f32,
    },
    /// The same for the CPU.
    Folded(FoldedNorm),
}

impl RmsNorm {
    /// Loads `path.weight` `[width]`.
    pub fn load(weights: &mut Weights<'_>, path: &str, width: i32, eps: f32) -> error::Result<Self> {
        let weight = weights.take(&format!("{path}.weight"), &[width])?;
        let norm = Self::new(weight, eps)?;
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
        let norm = Self::new(factors, config.eps)?;
        weights.materialize(norm.tensors())?;
        Ok(norm)
    }

    /// A norm with these factors, `[width]` or `[heads, width]`.
    pub fn new(weight: Tensor, eps: f32) -> Result<Self> {
        if device() == Device::Cpu {
            return FoldedNorm::new(&weight, eps).map(Self::Folded);
        }
        Ok(match weight.shape() {
            [_] => Self::Plain {
                weight: Some(weight),
                heads: None,
                eps,
            },
            _ => Self::Plain {
                weight: None,
                heads: Some(weight),
                eps,
            },
        })
    }

    /// Factors `[width]` and epsilon, if a kernel applies them.
    pub fn weight(&self) -> Option<(&Tensor, f32)> {
        match self {
            Self::Plain {
                weight,
                heads: None,
                eps,
            } => Some((weight.as_ref()?, *eps)),
            _ => None,
        }
    }

    /// Factors `[heads, width]` and epsilon, if heads differ and a kernel norms them.
    pub fn head_weights(&self) -> Option<(&Tensor, f32)> {
        match self {
            Self::Plain {
                weight: None,
                heads,
                eps,
            } => Some((heads.as_ref()?, *eps)),
            _ => None,
        }
    }

    /// Same shape as `x`.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        match self {
            Self::Plain { weight, heads, eps } => {
                let normed = x.fast_rms_norm(weight.as_ref(), *eps)?;
                heads.as_ref().map_or(Ok(normed.clone()), |heads| normed.mul(heads))
            }
            Self::Folded(folded) => folded.forward(x),
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
