//! Norms of the residual stream.

use checkpoint::config::decoder::{NormConfig, NormKind};
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::error;
use crate::layers::{norm_weight, ones, LayerNorm, ResidualStream, RmsNorm};
use crate::weights::Weights;

/// A norm before a part of a layer, or after the last layer.
#[derive(Parameters)]
pub(super) enum Norm {
    Rms(RmsNorm),
    Layer(LayerNorm),
    /// None: what it would read is normed already.
    Absent,
}

impl Norm {
    /// Loads what stands below `path`, `width` wide. Norms without factors have ones of type `dtype`.
    pub(super) fn load(
        weights: &mut Weights<'_>,
        path: &str,
        width: i32,
        config: NormConfig,
        dtype: Dtype,
    ) -> error::Result<Self> {
        let NormKind::Layer { bias } = config.kind else {
            return Ok(Self::Rms(RmsNorm::load_from(weights, path, width, config, dtype)?));
        };
        let factors = match config.bare {
            true => ones(width, dtype)?,
            false => norm_weight(weights, path, width, config)?,
        };
        let bias = match bias {
            true => weights.take(&format!("{path}.bias"), &[width])?,
            false => Tensor::zeros(&[width], factors.dtype())?,
        };
        let norm = LayerNorm::new(factors, bias, config.eps)?;
        weights.materialize(norm.tensors())?;
        Ok(Self::Layer(norm))
    }

    /// Same shape as `x`.
    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        match self {
            Self::Rms(norm) => norm.forward(x),
            Self::Layer(norm) => norm.forward(x),
            Self::Absent => Ok(x.clone()),
        }
    }

    /// The stream, normed.
    pub(super) fn of(&self, stream: &mut ResidualStream<'_>) -> Result<Tensor> {
        match self {
            Self::Rms(norm) => stream.normed(Some(norm)),
            Self::Layer(norm) => norm.forward(stream.sum()?),
            Self::Absent => Ok(stream.sum()?.clone()),
        }
    }
}

/// Lets `part` read the normed stream. It gets the stream and a root mean square norm to apply, which kernels do on the
/// way; no kernel does so with others.
pub(super) fn read<T>(
    norm: Option<&Norm>,
    stream: &mut ResidualStream<'_>,
    part: impl FnOnce(&mut ResidualStream<'_>, Option<&RmsNorm>) -> Result<T>,
) -> Result<T> {
    match norm {
        Some(Norm::Rms(norm)) => part(stream, Some(norm)),
        Some(norm @ Norm::Layer(_)) => part(&mut ResidualStream::new(norm.of(stream)?), None),
        Some(Norm::Absent) | None => part(stream, None),
    }
}
