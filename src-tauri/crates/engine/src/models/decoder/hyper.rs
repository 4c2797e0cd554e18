//! Several streams between the layers: each part of a layer reads a mixture of them and is written back to all, which
//! are mixed with each other on the way (XING 4.0).

use checkpoint::config::decoder::HyperConfig;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::error;
use crate::models::decoder::load_context::LoadContext;

/// The connection of one part of a layer.
#[derive(Parameters)]
pub(super) struct HyperConnection {
    streams: i32,
    iterations: u32,
    /// Added to the mean square of all streams.
    #[parameters(skip)]
    norm_eps: f32,
    /// `[all streams, numbers]`.
    mixing: Tensor,
    /// The factor of each number, and what is added to it, `[numbers]`, in 32 bits.
    factors: Tensor,
    base: Tensor,
    two: Tensor,
    eps: Tensor,
    least: Tensor,
    greatest: Tensor,
}

/// How a part of a layer is written back.
pub(super) struct Written {
    /// The share of each stream, `[rows, streams, 1]`.
    shares: Tensor,
    /// The streams as they are kept, `[rows, streams, hidden]`.
    kept: Tensor,
}

impl HyperConnection {
    /// Loads `hc_fn`, `hc_base` and `hc_scale` below `path`.
    pub(super) fn load(config: &HyperConfig, path: &str, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let (streams, numbers) = (config.streams as i32, config.numbers() as i32);
        let hidden = loading.config.hidden_size as i32;
        let scalar = |number: f32| Tensor::scalar(number, Dtype::Float32);
        let mixing = loading
            .weights
            .take(&format!("{path}.hc_fn"), &[numbers, streams * hidden])?;
        let base = loading.weights.take(&format!("{path}.hc_base"), &[numbers])?;
        let scales = loading.weights.take(&format!("{path}.hc_scale"), &[3])?.to_f32()?;
        let count = streams as usize;
        let spans = [count, count, count * count];
        let factors: Vec<f32> = scales
            .iter()
            .zip(spans)
            .flat_map(|(scale, count)| std::iter::repeat_n(*scale, count))
            .collect();
        let connection = Self {
            streams,
            iterations: config.iterations,
            norm_eps: loading.config.norm.eps,
            mixing: mixing.astype(loading.dtype)?.swapaxes(0, 1)?.contiguous()?,
            factors: Tensor::from_f32(&factors, &[numbers]),
            base: base.astype(Dtype::Float32)?,
            two: scalar(2.0)?,
            eps: scalar(config.eps)?,
            least: scalar(config.bounds.0)?,
            greatest: scalar(config.bounds.1)?,
        };
        loading.weights.materialize(connection.tensors())?;
        Ok(connection)
    }

    /// The mixture `[rows, hidden]` of streams `[rows, streams, hidden]` that its part reads, and how that is written
    /// back.
    pub(super) fn read(&self, streams: &Tensor) -> Result<(Tensor, Written)> {
        let (rows, count, dtype) = (streams.dim(0), self.streams, streams.dtype());
        let flat = streams.reshape(&[rows, -1])?.astype(Dtype::Float32)?;
        let flat = flat.fast_rms_norm(None, self.norm_eps)?.astype(dtype)?;
        let numbers = flat.matmul(&self.mixing)?.astype(Dtype::Float32)?;
        let numbers = numbers.mul(&self.factors)?.add(&self.base)?;
        let shares = numbers.slice(1, 0, 2 * count)?.sigmoid()?;
        let read = shares.slice(1, 0, count)?.reshape(&[rows, count, 1])?.astype(dtype)?;
        let shares = shares.slice(1, count, 2 * count)?.mul(&self.two)?;
        let between = numbers.slice(1, 2 * count, numbers.dim(1))?;
        let between = self.balanced(&between.reshape(&[rows, count, count])?)?.astype(dtype)?;
        let written = Written {
            shares: shares.reshape(&[rows, count, 1])?.astype(dtype)?,
            kept: between.matmul(streams)?,
        };
        Ok((read.mul(streams)?.sum(1, false)?, written))
    }

    /// Matrices `[rows, streams, streams]` of such logarithms whose rows and columns sum up to about 1 (Sinkhorn).
    fn balanced(&self, logarithms: &Tensor) -> Result<Tensor> {
        let bounded = logarithms.clip(&self.least, &self.greatest)?;
        let mut matrix = bounded.sub(&bounded.max(2, true)?)?.exp()?;
        for _ in 0..self.iterations {
            for axis in [2, 1] {
                matrix = matrix.div(&matrix.sum(axis, true)?.add(&self.eps)?)?;
            }
        }
        Ok(matrix)
    }
}

impl Written {
    /// The streams after a part that gave `[rows, hidden]`.
    pub(super) fn with(&self, part: &Tensor) -> Result<Tensor> {
        let (rows, hidden) = (part.dim(0), part.dim(1));
        let part = part.reshape(&[rows, 1, hidden])?;
        self.shares.mul(&part)?.add(&self.kept)
    }
}
