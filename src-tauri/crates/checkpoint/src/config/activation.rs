//! Activation functions of decoders and of encoders.

use crate::error::Error;
use crate::memory::ActivationCost;

/// Activation functions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Activation {
    /// `x · sigmoid(x)`.
    Silu,
    /// The same, at most `limit`, times what comes up between plus and minus that (Step 3.5).
    BoundedSilu {
        /// `swiglu_limits` of the layer.
        limit: f32,
    },
    /// `x · sigmoid(x)` with `x` of at most `limit`, times what comes up between plus and minus that (Hunyuan 4).
    ClampedSilu {
        /// `swiglu_limit`.
        limit: f32,
    },
    /// GELU by the error function (Spark 2.5).
    Gelu,
    /// GELU by its tanh approximation.
    GeluTanh,
    /// The square of what is above 0 (Falcon-OCR).
    SquaredRelu,
    /// The same in a network without a gate, whose `up_proj` alone comes before it (the experts of Nemotron-H).
    UngatedSquaredRelu,
    /// GELU by its tanh approximation in such a network (the experts of Phixtral).
    UngatedGeluTanh,
    /// `x · sigmoid(1.702 · x)` with `x` of at most 7, times what comes up between -7 and 7, plus 1 (gpt-oss).
    ClippedSilu,
    /// The same with another limit (Phi 3 small).
    ClippedSiluAt {
        /// `gegelu_limit`.
        limit: f32,
    },
}

impl Activation {
    /// True if what it gives is multiplied by a second projection.
    pub fn is_gated(self) -> bool {
        !matches!(self, Self::UngatedSquaredRelu | Self::UngatedGeluTanh)
    }

    pub(crate) fn cost(self) -> ActivationCost {
        let (results, in_place, kernel) = match self {
            Self::Silu => (1, 2, true),
            Self::BoundedSilu { .. } | Self::ClampedSilu { .. } => (2, 3, false),
            Self::Gelu => (1, 5, false),
            Self::GeluTanh => (1, 6, true),
            // Gate, its slope and what it gates are each clipped or scaled.
            Self::ClippedSilu | Self::ClippedSiluAt { .. } => (3, 4, false),
            Self::SquaredRelu => (1, 2, false),
            Self::UngatedSquaredRelu => (0, 2, false),
            Self::UngatedGeluTanh => (1, 6, false),
        };
        ActivationCost {
            results,
            in_place,
            kernel,
            pointwise: matches!(self, Self::Gelu),
        }
    }

    /// The same after projections without biases, of which kernels do more.
    pub(crate) fn unbiased_cost(self) -> ActivationCost {
        match self {
            Self::ClippedSilu => Self::Silu.cost(),
            other => other.cost(),
        }
    }
}

/// Activation functions of encoders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EncoderActivation {
    /// GELU by the error function.
    Gelu,
    /// GELU by its tanh approximation.
    GeluTanh,
    /// `x · sigmoid(1.702 · x)`.
    QuickGelu,
    /// `max(x, 0)`.
    Relu,
    /// `x · sigmoid(x)`.
    Silu,
    /// The square of what is above 0 (Nemotron).
    SquaredRelu,
    /// xIELU (arXiv:2411.13010), of which every layer has learned two factors (Apertus): a parabola above 0, and below
    /// it `e^x - 1 - x`, each with a part of the input.
    Xielu,
}

impl EncoderActivation {
    pub(crate) fn cost(self) -> ActivationCost {
        let (results, in_place, kernel) = match self {
            Self::Gelu | Self::GeluTanh => (1, 6, true),
            Self::QuickGelu => (1, 3, true),
            // Written over the product, which nothing else reads.
            Self::Relu => (0, 1, true),
            Self::Silu => (1, 2, true),
            Self::SquaredRelu => (0, 2, false),
            Self::Xielu => (4, 8, false),
        };
        ActivationCost {
            results,
            in_place,
            kernel,
            pointwise: false,
        }
    }

    /// The function that transformers' configs call so.
    pub(crate) fn named(name: &str) -> Result<Self, Error> {
        match name {
            "gelu" => Ok(Self::Gelu),
            "gelu_new" | "gelu_pytorch_tanh" | "gelu_fast" => Ok(Self::GeluTanh),
            "quick_gelu" => Ok(Self::QuickGelu),
            "relu" => Ok(Self::Relu),
            "relu2" => Ok(Self::SquaredRelu),
            "silu" | "swish" => Ok(Self::Silu),
            other => Err(Error::Unsupported(format!("the activation `{other}`"))),
        }
    }
}
