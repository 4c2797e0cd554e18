//! Activation functions of one input, as the networks of encoders have them.

use checkpoint::config::encoder::EncoderActivation;
use mlx_rs::Dtype;

use crate::error::Result;
use crate::layers::Gelu;
use crate::parameters::Parameters;
use crate::tensor::Tensor;

/// An activation function with its constants, in the type of what goes through it.
pub enum UnaryActivation {
    /// GELU by the error function.
    Gelu {
        /// One over the root of two.
        root: Tensor,
        /// One.
        one: Tensor,
        /// A half.
        half: Tensor,
    },
    /// GELU by its tanh approximation.
    GeluTanh(Gelu),
    /// `max(x, 0)`.
    Relu {
        /// Zero.
        zero: Tensor,
    },
    /// `x · sigmoid(x)`.
    Silu,
}

impl UnaryActivation {
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
            EncoderActivation::Relu => Self::Relu { zero: scalar(0.0)? },
            EncoderActivation::Silu => Self::Silu,
        })
    }

    /// The function of every element.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        match self {
            Self::Gelu { root, one, half } => x.mul(root)?.erf()?.add(one)?.mul(half)?.mul(x),
            Self::GeluTanh(gelu) => gelu.forward(x),
            Self::Relu { zero } => x.maximum(zero),
            Self::Silu => x.sigmoid()?.mul(x),
        }
    }
}

impl Parameters for UnaryActivation {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        match self {
            Self::Gelu { root, one, half } => [root, one, half].into_iter().for_each(visitor),
            Self::GeluTanh(gelu) => gelu.visit(visitor),
            Self::Relu { zero } => visitor(zero),
            Self::Silu => {}
        }
    }
}
