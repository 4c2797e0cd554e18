//! A layer of a vision encoder: attention and a network, each after a norm, and before one if the vision encoder has
//! such.

use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::Result;

use super::attention::{Attention, PatchMask};
use super::linear::ClippedLinear;
use super::rope::PatchRotation;
use crate::layers::{LayerNorm, Pointwise, RmsNorm};

/// A norm of either kind.
#[derive(Parameters)]
pub enum Norm {
    /// By mean and variance.
    Layer(LayerNorm),
    /// By the root mean square.
    Rms(RmsNorm),
    /// None, only factors `[hidden]` (InternViT).
    Scale(Tensor),
}

impl Norm {
    /// Same shape as `x`.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        match self {
            Self::Layer(norm) => norm.forward(x),
            Self::Rms(norm) => norm.forward(x),
            Self::Scale(factors) => x.mul(factors),
        }
    }
}

/// `down(activation(up(x)))`, or `down(activation(gate(x)) · up(x))`.
#[derive(Parameters)]
pub struct Mlp {
    /// The activation.
    pub activation: Pointwise,
    /// The projection that the activation gates, if there is one.
    pub gate: Option<ClippedLinear>,
    /// The first projection.
    pub up: ClippedLinear,
    /// The last one.
    pub down: ClippedLinear,
}

impl Mlp {
    /// `[rows, hidden]` to the same.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let up = self.up.forward(x)?;
        let inner = match &self.gate {
            Some(gate) => self.activation.forward(&gate.forward(x)?)?.mul(&up)?,
            None => self.activation.forward(&up)?,
        };
        self.down.forward(&inner)
    }
}

/// One layer.
#[derive(Parameters)]
pub struct Block {
    /// Before the attention.
    pub before_attention: Norm,
    /// How patches see each other.
    pub attention: Attention,
    /// After the attention (Gemma 4, InternViT).
    pub after_attention: Option<Norm>,
    /// Before the network.
    pub before_mlp: Norm,
    /// The part that treats each patch by itself.
    pub mlp: Mlp,
    /// After the network (Gemma 4, InternViT).
    pub after_mlp: Option<Norm>,
}

impl Block {
    /// States `[patches, hidden]` to the same.
    pub fn forward(&self, x: &Tensor, rotation: Option<&PatchRotation>, mask: &PatchMask<'_>) -> Result<Tensor> {
        let normed = |norm: &Option<Norm>, x: Tensor| norm.as_ref().map_or(Ok(x.clone()), |norm| norm.forward(&x));
        let attended = self
            .attention
            .forward(&self.before_attention.forward(x)?, rotation, mask)?;
        let x = x.add(&normed(&self.after_attention, attended)?)?;
        let fed = self.mlp.forward(&self.before_mlp.forward(&x)?)?;
        x.add(&normed(&self.after_mlp, fed)?)
    }
}
