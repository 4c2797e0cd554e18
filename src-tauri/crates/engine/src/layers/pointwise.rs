//! Activation functions of encoders and vision encoders, which gate nothing or gate by a projection of its own.

use checkpoint::config::encoder::EncoderActivation;
use mlx::fused::{GateActivation, PointwiseActivation};
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::error;
use crate::kernels::kernels;
use crate::layers::{fast, Gelu};
use crate::weights::Weights;

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
    /// Two branches with learned factors.
    Xielu(Xielu),
}

/// xIELU (arXiv:2411.13010): `above · x²` for what is above 0, `below · (e^x - 1 - x)` for what is not, and a part of
/// `x` in both.
#[derive(Clone, Parameters)]
pub struct Xielu {
    above: Tensor,
    below: Tensor,
    part: Tensor,
    /// The greatest exponent.
    greatest: Tensor,
    zero: Tensor,
}

impl Xielu {
    /// The part of the input, unless the weights say otherwise.
    const PART: f32 = 0.5;

    /// The greatest exponent, unless the weights say otherwise.
    const GREATEST: f32 = -1e-6;

    /// Loads `path.alpha_p` and `path.alpha_n`, from which the factors come by the softplus function, and `path.beta`
    /// and `path.eps`, if they are there; each is one number.
    fn load(weights: &mut Weights<'_>, path: &str, dtype: Dtype) -> error::Result<Self> {
        let mut number = |name: &str, default: Option<f32>| {
            let name = format!("{path}.{name}");
            match default {
                Some(default) if !weights.has(&name) => Ok(default),
                _ => {
                    let numbers = weights.take_any(&name)?.astype(Dtype::Float32)?.to_f32()?;
                    numbers.first().copied().ok_or(error::Error::MissingTensor(name))
                }
            }
        };
        let softplus = |x: f32| x.max(0.0) + (-x.abs()).exp().ln_1p();
        let part = number("beta", Some(Self::PART))?;
        let greatest = number("eps", Some(Self::GREATEST))?;
        let (above, below) = (softplus(number("alpha_p", None)?), softplus(number("alpha_n", None)?));
        let scalar = |value| Tensor::scalar(value, dtype);
        Ok(Self {
            above: scalar(above)?,
            below: scalar(part + below)?,
            part: scalar(part)?,
            greatest: scalar(greatest)?,
            zero: scalar(0.0)?,
        })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let positive = x.maximum(&self.zero)?.square()?.mul(&self.above)?;
        let negative = x.minimum(&self.zero)?;
        let curved = negative.minimum(&self.greatest)?.expm1()?.sub(&negative)?;
        positive.add(&curved.mul(&self.below)?)?.add(&x.mul(&self.part)?)
    }
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
            EncoderActivation::Xielu => {
                return Err(mlx::Error::Unsupported(
                    "an activation whose factors no weights hold".into(),
                ));
            }
        })
    }

    /// The same with what it has learned, below `path`.
    pub fn load(kind: EncoderActivation, weights: &mut Weights<'_>, path: &str, dtype: Dtype) -> error::Result<Self> {
        match kind {
            EncoderActivation::Xielu => Ok(Self::Xielu(Xielu::load(weights, path, dtype)?)),
            _ => Ok(Self::new(kind, dtype)?),
        }
    }

    /// Its name for operations that fuse it, if they know it.
    pub fn fusible(&self) -> Option<PointwiseActivation> {
        Some(match self {
            Self::Gelu { .. } => PointwiseActivation::Gelu,
            Self::GeluTanh(_) => PointwiseActivation::GeluTanh,
            Self::QuickGelu { .. } => PointwiseActivation::QuickGelu,
            Self::Relu { .. } => PointwiseActivation::Relu,
            Self::Silu => PointwiseActivation::Silu,
            Self::SquaredRelu { .. } | Self::Xielu(_) => return None,
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
            Self::Xielu(xielu) => xielu.forward(x),
        }
    }

    /// The function of every element times `other`, both `[length, width]`.
    pub fn times(&self, x: &Tensor, other: &Tensor) -> Result<Tensor> {
        let gate = match self {
            Self::GeluTanh(_) => Some(GateActivation::Gelu),
            Self::Silu => Some(GateActivation::Silu),
            Self::Gelu { .. }
            | Self::QuickGelu { .. }
            | Self::Relu { .. }
            | Self::SquaredRelu { .. }
            | Self::Xielu(_) => None,
        };
        if let Some(gate) = gate {
            if let Some(gated) = fast::activation::times(gate, x, other)? {
                return Ok(gated);
            }
        }
        self.forward(x)?.mul(other)
    }
}
