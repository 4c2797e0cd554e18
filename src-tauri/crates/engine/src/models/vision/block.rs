//! The layer that nearly all towers are stacks of: norm, attention, norm, network, each half added to what came in.

use checkpoint::config::encoder::EncoderActivation;
use checkpoint::config::vision::TowerShape;
use mlx_rs::Dtype;

use crate::error::Result;
use crate::layers::{LayerNorm, Linear, RmsNorm, UnaryActivation};
use crate::ops::Mask;
use crate::parameters::Parameters;
use crate::tensor::Tensor;
use crate::weights::Weights;

use super::attention::{AttentionNames, PatchAttention};
use super::rope::PatchRope;

/// A norm of either kind.
pub enum Norm {
    /// By mean and variance.
    Layer(LayerNorm),
    /// By the root of the mean square.
    Rms(RmsNorm),
}

/// Which kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NormKind {
    /// By mean and variance.
    Layer,
    /// By the root of the mean square.
    Rms,
}

impl Norm {
    /// Loads `path`.
    pub fn load(weights: &mut Weights<'_>, kind: NormKind, path: &str, width: i32, eps: f32) -> Result<Self> {
        Ok(match kind {
            NormKind::Layer => Self::Layer(LayerNorm::load(weights, path, width, eps)?),
            NormKind::Rms => Self::Rms(RmsNorm::load(weights, path, width, eps)?),
        })
    }

    /// Same shape as `x`.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        match self {
            Self::Layer(norm) => norm.forward(x),
            Self::Rms(norm) => norm.forward(x),
        }
    }
}

/// `down(activation(up(x)))`, or `down(activation(gate(x)) · up(x))`.
pub struct TowerMlp {
    activation: UnaryActivation,
    up: Linear,
    gated: bool,
    down: Linear,
}

impl TowerMlp {
    /// Loads `up`, one name or the gate's and the other's, and `down` below `path`; `shape` is inputs, width inside and outputs.
    pub fn load(
        weights: &mut Weights<'_>,
        path: &str,
        (up, down): (&[&str], &str),
        (inputs, width, outputs): (i32, i32, i32),
        activation: EncoderActivation,
        dtype: Dtype,
    ) -> Result<Self> {
        let parts: Vec<_> = up.iter().map(|name| (format!("{path}.{name}"), width)).collect();
        Ok(Self {
            activation: UnaryActivation::new(activation, dtype)?,
            gated: up.len() > 1,
            up: Linear::load_joined(weights, &parts, inputs)?,
            down: Linear::load(weights, &format!("{path}.{down}"), width, outputs)?,
        })
    }

    /// `[rows, inputs]` to `[rows, outputs]`.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let inner = self.up.forward(x)?;
        let inner = match self.gated {
            true => {
                let width = inner.dim(-1) / 2;
                let gate = self.activation.forward(&inner.slice(1, 0, width)?)?;
                gate.mul(&inner.slice(1, width, 2 * width)?)?
            }
            false => self.activation.forward(&inner)?,
        };
        self.down.forward(&inner)
    }
}

/// What the tensors of a layer are called, and what it is made of.
pub struct BlockNames {
    /// The kind of both norms.
    pub norm: NormKind,
    /// The norm before attention and the one before the network.
    pub norms: [&'static str; 2],
    /// Attention.
    pub attention: AttentionNames,
    /// One name, or the gate's and the other's.
    pub up: &'static [&'static str],
    /// Back to the stream.
    pub down: &'static str,
    /// Factors `[hidden]` of what attention and the network add.
    pub scales: Option<[&'static str; 2]>,
}

/// One layer.
pub struct Block {
    norms: [Norm; 2],
    attention: PatchAttention,
    mlp: TowerMlp,
    scales: Option<[Tensor; 2]>,
}

impl Block {
    /// Loads what stands below `path`.
    pub fn load(weights: &mut Weights<'_>, path: &str, names: &BlockNames, shape: &TowerShape, dtype: Dtype) -> Result<Self> {
        let (hidden, heads, width) = (shape.hidden as i32, shape.heads as i32, shape.width as i32);
        let mut norm = |name: &str| Norm::load(weights, names.norm, &format!("{path}.{name}"), hidden, shape.eps);
        let norms = [norm(names.norms[0])?, norm(names.norms[1])?];
        let scales = match names.scales {
            Some(scales) => {
                let [first, second] = scales.map(|name| weights.take(&format!("{path}.{name}"), &[hidden]));
                Some([first?, second?])
            }
            None => None,
        };
        weights.materialize(scales.iter().flatten())?;
        Ok(Self {
            norms,
            attention: PatchAttention::load(weights, path, &names.attention, (hidden, heads), shape.eps)?,
            mlp: TowerMlp::load(weights, path, (names.up, names.down), (hidden, width, hidden), shape.activation, dtype)?,
            scales,
        })
    }

    /// Rows `[patches, hidden]` to the same.
    pub fn forward(&self, x: &Tensor, rope: Option<&PatchRope>, mask: &Mask) -> Result<Tensor> {
        let scaled = |added: Tensor, half: usize| match &self.scales {
            Some(scales) => added.mul(&scales[half]),
            None => Ok(added),
        };
        let [first, second] = &self.norms;
        let x = x.add(&scaled(self.attention.forward(&first.forward(x)?, rope, mask)?, 0)?)?;
        x.add(&scaled(self.mlp.forward(&second.forward(&x)?)?, 1)?)
    }
}

impl Parameters for Norm {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        match self {
            Self::Layer(norm) => norm.visit(visitor),
            Self::Rms(norm) => norm.visit(visitor),
        }
    }
}

impl Parameters for TowerMlp {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        let Self {
            activation,
            up,
            gated: _,
            down,
        } = self;
        activation.visit(visitor);
        up.visit(visitor);
        down.visit(visitor);
    }
}

impl Parameters for Block {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        let Self {
            norms,
            attention,
            mlp,
            scales,
        } = self;
        norms.iter().for_each(|norm| norm.visit(visitor));
        attention.visit(visitor);
        mlp.visit(visitor);
        scales.iter().flatten().for_each(visitor);
    }
}

/// What is called between two layers with the states so far: there a caller computes them, and gives up if nobody waits any more.
pub type Between<'a> = dyn FnMut(&Tensor) -> Result<()> + 'a;

/// Layers, first to last.
pub struct Stack(Vec<Block>);

impl Stack {
    /// Loads `path.0` and so on.
    pub fn load(weights: &mut Weights<'_>, path: &str, names: &BlockNames, shape: &TowerShape, dtype: Dtype) -> Result<Self> {
        let blocks = (0..shape.layers).map(|layer| Block::load(weights, &format!("{path}.{layer}"), names, shape, dtype));
        Ok(Self(blocks.collect::<Result<_>>()?))
    }

    /// Takes rows `[patches, hidden]` of one picture through all layers.
    pub fn forward(&self, x: Tensor, rope: Option<&PatchRope>, between: &mut Between<'_>) -> Result<Tensor> {
        let mut x = x;
        for block in &self.0 {
            x = block.forward(&x, rope, &Mask::None)?;
            between(&x)?;
        }
        Ok(x)
    }
}

impl Parameters for Stack {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        self.0.visit(visitor);
    }
}
