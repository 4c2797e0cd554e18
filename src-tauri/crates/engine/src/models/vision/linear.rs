//! Projections of vision encoders, of which some clip.

use mlx::parameters::Parameters;
use mlx::tensor::Tensor;

use crate::error::{Error, Result};
use crate::layers::Linear;
use crate::weights::Weights;

/// A projection that may clip what goes in and what comes out (Gemma 4's `Gemma4ClippableLinear`).
#[derive(Parameters)]
pub struct ClippedLinear {
    linear: Linear,
    /// The least and the greatest input, the least and the greatest output.
    bounds: Option<[Tensor; 4]>,
}

impl From<Linear> for ClippedLinear {
    fn from(linear: Linear) -> Self {
        Self { linear, bounds: None }
    }
}

impl ClippedLinear {
    /// Loads `path.weight` `[outputs, inputs]`, with `path.bias` if there is one.
    pub fn plain(weights: &mut Weights<'_>, path: &str, inputs: i32, outputs: i32) -> Result<Self> {
        Ok(Linear::load(weights, path, inputs, outputs)?.into())
    }

    /// Loads `path.linear.weight`, and its bounds if it is `clipped`.
    pub fn load(weights: &mut Weights<'_>, path: &str, inputs: i32, outputs: i32, clipped: bool) -> Result<Self> {
        let mut bound = |name: &str| Ok::<_, Error>(weights.take_any(&format!("{path}.{name}"))?.reshape(&[])?);
        let bounds = match clipped {
            true => Some([
                bound("input_min")?,
                bound("input_max")?,
                bound("output_min")?,
                bound("output_max")?,
            ]),
            false => None,
        };
        if let Some(bounds) = &bounds {
            weights.materialize(bounds)?;
        }
        Ok(Self {
            linear: Linear::load(weights, &format!("{path}.linear"), inputs, outputs)?,
            bounds,
        })
    }

    /// `[rows, inputs]` to `[rows, outputs]`.
    pub fn forward(&self, x: &Tensor) -> mlx::Result<Tensor> {
        match &self.bounds {
            None => self.linear.forward(x),
            Some([low, high, least, most]) => self.linear.forward(&x.clip(low, high)?)?.clip(least, most),
        }
    }
}
