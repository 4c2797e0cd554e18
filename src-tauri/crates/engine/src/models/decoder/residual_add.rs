//! How the parts of a layer join the residual stream.

use checkpoint::config::decoder::DecoderConfig;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::layers::{ResidualStream, RmsNorm};

/// How the parts of a layer are added to the residual stream.
#[derive(Default, Parameters)]
pub(super) struct ResidualAdd {
    /// The factor of the summands.
    factor: Option<Tensor>,
    /// The least and the greatest number that may come out, as 32 bit floats, for types that end early.
    bounds: Option<(Tensor, Tensor)>,
}

impl ResidualAdd {
    pub(super) fn new(config: &DecoderConfig, dtype: Dtype) -> Result<Self> {
        /// The greatest finite float of 16 bits with 5 bits of exponent.
        const GREATEST: f32 = 65504.0;
        let bound = |value| Tensor::scalar(value, Dtype::Float32);
        Ok(Self {
            factor: Tensor::optional_scalar(config.residual_multiplier, dtype)?,
            bounds: match config.clip_residual && dtype == Dtype::Float16 {
                true => Some((bound(-GREATEST)?, bound(GREATEST)?)),
                false => None,
            },
        })
    }

    /// Adds `norm(part)`.
    pub(super) fn add<'a>(
        &self,
        stream: &mut ResidualStream<'a>,
        part: Tensor,
        norm: Option<&'a RmsNorm>,
    ) -> Result<()> {
        if self.factor.is_none() && self.bounds.is_none() {
            return stream.add(part, norm, None);
        }
        let part = norm.map_or_else(|| Ok(part.clone()), |norm| norm.forward(&part))?;
        match (&self.factor, &self.bounds) {
            (Some(factor), _) => stream.add(part.mul(factor)?, None, None),
            (None, Some((least, greatest))) => {
                let h = stream.sum()?;
                let sum = h.astype(Dtype::Float32)?.add(&part.astype(Dtype::Float32)?)?;
                *stream = ResidualStream::new(sum.clip(least, greatest)?.astype(h.dtype())?);
                Ok(())
            }
            (None, None) => stream.add(part, None, None),
        }
    }
}
