//! Activation functions, in the type of their input: constants are created at load, because a 32 bit scalar would widen
//! a 16 bit model.

use checkpoint::config::decoder::{Activation as Kind, EncoderActivation};
use mlx::fused::GateActivation;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::layers::{fast, Gelu, Pointwise};

/// The bound at which gpt-oss clips (`swiglu_limit`).
const LIMIT: f32 = 7.0;

/// The slope of gpt-oss' logistic function (`alpha` in transformers' `modeling_gpt_oss.py`).
const SLOPE: f32 = 1.702;

/// An activation function with its constants.
#[derive(Clone, Parameters)]
pub enum Activation {
    /// `x · sigmoid(x)`.
    Silu,
    /// GELU by its tanh approximation.
    Gelu(Gelu),
    /// The same, bounded, times what is bounded too.
    BoundedSilu {
        /// The greatest number of either.
        limit: Tensor,
        /// Minus that, the least number of what it gates.
        floor: Tensor,
    },
    /// The same of what is bounded.
    ClampedSilu {
        /// The greatest number of either.
        limit: Tensor,
        /// Minus that, the least number of what it gates.
        floor: Tensor,
    },
    /// GELU by the error function.
    Exact(Box<Pointwise>),
    /// The square of what is above 0.
    SquaredRelu {
        /// Zero.
        zero: Tensor,
    },
    /// The same without what it would gate.
    UngatedSquaredRelu {
        /// Zero.
        zero: Tensor,
    },
    /// GELU by its tanh approximation without what it would gate.
    UngatedGelu(Gelu),
    /// That of gpt-oss, which clips what it gates as well and adds 1 to it.
    ClippedSilu {
        /// True if kernels have this limit.
        known: bool,
        /// The limit at which both are clipped.
        limit: Tensor,
        /// Minus that.
        floor: Tensor,
        /// Factor in the logistic function.
        slope: Tensor,
        /// One.
        one: Tensor,
    },
}

impl Activation {
    /// The function of this kind for activations of this type.
    pub fn new(kind: Kind, dtype: Dtype) -> Result<Self> {
        match kind {
            Kind::Silu => Ok(Self::Silu),
            Kind::BoundedSilu { limit } => Ok(Self::BoundedSilu {
                limit: Tensor::scalar(limit, dtype)?,
                floor: Tensor::scalar(-limit, dtype)?,
            }),
            Kind::ClampedSilu { limit } => Ok(Self::ClampedSilu {
                limit: Tensor::scalar(limit, dtype)?,
                floor: Tensor::scalar(-limit, dtype)?,
            }),
            Kind::Gelu => Ok(Self::Exact(Box::new(Pointwise::new(EncoderActivation::Gelu, dtype)?))),
            Kind::GeluTanh => Ok(Self::Gelu(Gelu::new(dtype)?)),
            Kind::SquaredRelu => Ok(Self::SquaredRelu {
                zero: Tensor::scalar(0.0, dtype)?,
            }),
            Kind::UngatedSquaredRelu => Ok(Self::UngatedSquaredRelu {
                zero: Tensor::scalar(0.0, dtype)?,
            }),
            Kind::UngatedGeluTanh => Ok(Self::UngatedGelu(Gelu::new(dtype)?)),
            Kind::ClippedSilu => Self::clipped(LIMIT, dtype),
            Kind::ClippedSiluAt { limit } => Self::clipped(limit, dtype),
        }
    }

    fn clipped(at: f32, dtype: Dtype) -> Result<Self> {
        let [limit, floor, slope, one] = [at, -at, SLOPE, 1.0].map(|value| Tensor::scalar(value, dtype));
        Ok(Self::ClippedSilu {
            known: at == LIMIT,
            limit: limit?,
            floor: floor?,
            slope: slope?,
            one: one?,
        })
    }

    /// Its name for operations that fuse it, if they know it.
    pub fn fusible(&self) -> Option<GateActivation> {
        match self {
            Self::Silu => Some(GateActivation::Silu),
            Self::Gelu(_) => Some(GateActivation::Gelu),
            Self::ClippedSilu { known: true, .. } => Some(GateActivation::ClippedSilu),
            Self::ClippedSilu { known: false, .. }
            | Self::SquaredRelu { .. }
            | Self::UngatedSquaredRelu { .. }
            | Self::UngatedGelu(_)
            | Self::BoundedSilu { .. }
            | Self::ClampedSilu { .. }
            | Self::Exact(_) => None,
        }
    }

    /// `activation(gate) · up`, with both side by side in the last axis of `x` `[…, 2 · width]`; of all of `x` if
    /// nothing is gated.
    pub fn gated(&self, x: &Tensor) -> Result<Tensor> {
        match self {
            Self::UngatedSquaredRelu { zero } => return x.maximum(zero)?.square(),
            Self::UngatedGelu(gelu) => return gelu.forward(x),
            _ => {}
        }
        if let Some(gated) = fast::activation::gated(self.fusible(), x)? {
            return Ok(gated);
        }
        let (axis, width) = (x.shape().len() - 1, x.dim(-1) / 2);
        let (gate, up) = (x.slice(axis, 0, width)?, x.slice(axis, width, 2 * width)?);
        match self {
            Self::Silu => gate.sigmoid()?.mul(&gate)?.mul(&up),
            Self::BoundedSilu { limit, floor } => {
                let gate = gate.sigmoid()?.mul(&gate)?.minimum(limit)?;
                up.clip(floor, limit)?.mul(&gate)
            }
            Self::ClampedSilu { limit, floor } => {
                let gate = gate.minimum(limit)?;
                up.clip(floor, limit)?.mul(&gate.sigmoid()?.mul(&gate)?)
            }
            Self::Exact(gelu) => gelu.forward(&gate)?.mul(&up),
            Self::Gelu(gelu) => gelu.forward(&gate)?.mul(&up),
            Self::UngatedSquaredRelu { .. } | Self::UngatedGelu(_) => unreachable!("it has returned"),
            Self::SquaredRelu { zero } => gate.maximum(zero)?.square()?.mul(&up),
            Self::ClippedSilu {
                limit,
                floor,
                slope,
                one,
                ..
            } => {
                let gate = gate.minimum(limit)?;
                let gate = gate.mul(slope)?.sigmoid()?.mul(&gate)?;
                up.clip(floor, limit)?.add(one)?.mul(&gate)
            }
        }
    }
}
