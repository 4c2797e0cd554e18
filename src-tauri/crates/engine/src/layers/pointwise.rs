//! Activation functions of encoders and vision encoders, which gate nothing or gate by a projection of its own.

use checkpoint::config::encoder::EncoderActivation;
use mlx::fused::{GateActivation, PointwiseActivation};
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::kernels::kernels;
use crate::layers::{fast, Gelu};

/// The slope of the quick approximation of GELU.
const QUICK_SLOPE: f32 = 1.702;

/// An activation function with its constants, in the type of what goes through it.
#[derive(Clone, Parameters)]
pub enum Pointwise {
    /// GELU by the error function.
    Gelu {
        /// One over the root of 2.
        root: Tensor,
        /// One.
        one: Tensor,
        /// A half.
        half: Tensor,
    },
    /// GELU by its tanh approximation.
    GeluTanh(Gelu),
    /// `x · sigmoid(1.702 · x)`.
    QuickGelu {
        /// 1.702.
        slope: Tensor,
    },
    /// `max(x, 0)`.
    Relu {
        /// Zero.
        zero: Tensor,
    },
    /// `x · sigmoid(x)`.
    Silu,
    /// The square of what is above 0.
    SquaredRelu {
        /// Zero.
        zero: Tensor,
    },
}

impl Pointwise {
    /// The function of this kind for activations of this type.
    pub fn new(kind: EncoderActivation, dtype: Dtype) -> Result<Self> {
        let scalar = |value| Tensor::scalar(value, dtype);
        Ok(match kind {
            EncoderActivation::Gelu => Self::Gelu {
                root: scalar(std::f32::consts::FRAC_1_SQRT_2)?,
                one: scalar(1.0)?,
                half: scalar(0.5)?,
            },
            EncoderActivation::GeluTanh => Self::GeluTanh(Gelu::new(dtype)?),
            EncoderActivation::QuickGelu => Self::QuickGelu {
                slope: scalar(QUICK_SLOPE)?,
            },
            EncoderActivation::Relu => Self::Relu { zero: scalar(0.0)? },
            EncoderActivation::Silu => Self::Silu,
            EncoderActivation::SquaredRelu => Self::SquaredRelu { zero: scalar(0.0)? },
        })
    }

    /// Its name for operations that fuse it, if they know it.
    pub fn fusible(&self) -> Option<PointwiseActivation> {
        Some(match self {
            Self::Gelu { .. } => PointwiseActivation::Gelu,
            Self::GeluTanh(_) => PointwiseActivation::GeluTanh,
            Self::QuickGelu { .. } => PointwiseActivation::QuickGelu,
            Self::Relu { .. } => PointwiseActivation::Relu,
            Self::Silu => PointwiseActivation::Silu,
            Self::SquaredRelu { .. } => return None,
        })
    }

    /// The function of every element.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        if let Some(fusible) = self.fusible() {
            if let Some(activated) = kernels().pointwise(fusible, x)? {
                return Ok(activated);
            }
        }
        match self {
            Self::Gelu { root, one, half } => x.mul(root)?.erf()?.add(one)?.mul(half)?.mul(x),
            Self::GeluTanh(gelu) => gelu.forward(x),
            Self::QuickGelu { slope } => x.mul(slope)?.sigmoid()?.mul(x),
            Self::Relu { zero } => x.maximum(zero),
            Self::Silu => x.sigmoid()?.mul(x),
            Self::SquaredRelu { zero } => x.maximum(zero)?.square(),
        }
    }

    /// The function of every element times `other`, both `[length, width]`.
    pub fn times(&self, x: &Tensor, other: &Tensor) -> Result<Tensor> {
        let gate = match self {
            Self::GeluTanh(_) => Some(GateActivation::Gelu),
            Self::Silu => Some(GateActivation::Silu),
            Self::Gelu { .. } | Self::QuickGelu { .. } | Self::Relu { .. } | Self::SquaredRelu { .. } => None,
        };
        if let Some(gate) = gate {
            if let Some(gated) = fast::activation::times(gate, x, other)? {
                return Ok(gated);
            }
        }
        self.forward(x)?.mul(other)
    }
}
