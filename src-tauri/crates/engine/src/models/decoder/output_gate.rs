//! The gate that the output of attention goes through before its last projection.

use checkpoint::config::decoder::{AttentionConfig, GateFunction, GateSource};
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

/// The gate of one layer.
#[derive(Parameters)]
pub struct OutputGate {
    heads: i32,
    /// Numbers of the gate for each head: as many as the head has, or one.
    width: i32,
    /// Zero in 32 bits, for the smooth maximum with it; `None` if the gate is a logistic function.
    zero: Option<Tensor>,
}

impl OutputGate {
    /// The gate that `config` describes.
    pub fn new(config: &AttentionConfig) -> Result<Option<Self>> {
        let Some(gate) = config.output_gate else {
            return Ok(None);
        };
        Ok(Some(Self {
            heads: config.heads as i32,
            width: match gate.source {
                GateSource::Queries | GateSource::Numbers => config.value_dim as i32,
                GateSource::Heads => 1,
            },
            zero: match gate.function {
                GateFunction::Sigmoid => None,
                GateFunction::Softplus => Some(Tensor::scalar(0.0, Dtype::Float32)?),
            },
        }))
    }

    /// A logistic gate of `width` numbers for each head: one, or as many as the head has.
    pub fn logistic(heads: i32, width: i32) -> Self {
        Self {
            heads,
            width,
            zero: None,
        }
    }

    /// Its numbers, and the rest of what the projections gave, `[rows, …]`. One number for each head comes last,
    /// because kernels read whole heads from where a row begins; those of whole heads come first.
    pub fn split(&self, all: &Tensor) -> Result<(Tensor, Tensor)> {
        let (width, end) = (self.heads * self.width, all.dim(1));
        match self.width {
            1 => Ok((all.slice(1, end - width, end)?, all.slice(1, 0, end - width)?)),
            _ => Ok((all.slice(1, 0, width)?, all.slice(1, width, end)?)),
        }
    }

    /// The output of the heads, `[rows, heads · head's width]`, times the function of the gate's numbers.
    pub fn apply(&self, attended: &Tensor, numbers: &Tensor) -> Result<Tensor> {
        let gate = match &self.zero {
            None => numbers.sigmoid()?,
            Some(zero) => numbers
                .astype(Dtype::Float32)?
                .logaddexp(zero)?
                .astype(numbers.dtype())?,
        };
        if self.width > 1 {
            return attended.mul(&gate);
        }
        let rows = attended.dim(0);
        let by_head = attended.reshape(&[rows, self.heads, -1])?;
        by_head
            .mul(&gate.reshape(&[rows, self.heads, 1])?)?
            .reshape(attended.shape())
    }
}
