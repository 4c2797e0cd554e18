//! Connections with several streams that keep what they have (Qwen 4): a part reads their mean, each number of each
//! stream times a gate that all streams make together.

use checkpoint::config::decoder::NormConfig;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::error;
use crate::layers::{norm_weight, Linear, RmsNorm};
use crate::weights::Weights;

/// One connection.
#[derive(Parameters)]
pub(super) struct GatedStreams {
    streams: i32,
    hidden: i32,
    /// Factors of each stream, `[streams, hidden]`.
    norm: RmsNorm,
    /// From all streams to a short vector, and, if something is written back, to a number for each stream.
    down_proj: Linear,
    rank: i32,
    up_proj: Linear,
    /// The part of each stream in a mean.
    share: Tensor,
    two: Tensor,
}

impl GatedStreams {
    /// Loads `hc_norm`, `input_mix_weight_down` and `input_mix_weight_up` below `path`, and `block_inject_weight` if what
    /// a part gives is `written` back.
    pub(super) fn load(
        path: &str,
        (streams, hidden, rank): (i32, i32, i32),
        norm: NormConfig,
        written: bool,
        (weights, dtype): (&mut Weights<'_>, Dtype),
    ) -> error::Result<Self> {
        let name = |part: &str| format!("{path}.{part}");
        let all = streams * hidden;
        let factors = norm_weight(weights, &name("hc_norm"), all, norm)?;
        let mut parts = vec![(name("input_mix_weight_down"), rank)];
        if written {
            parts.push((name("block_inject_weight"), streams));
        }
        let connection = Self {
            streams,
            hidden,
            norm: RmsNorm::new(factors.reshape(&[streams, hidden])?, norm.eps),
            down_proj: Linear::load_joined(weights, &parts, all)?,
            rank,
            up_proj: Linear::load(weights, &name("input_mix_weight_up"), rank, all)?,
            share: Tensor::scalar(1.0 / streams as f32, dtype)?,
            two: Tensor::scalar(2.0, dtype)?,
        };
        weights.materialize(connection.tensors())?;
        Ok(connection)
    }

    /// The input of a part from streams `[rows, streams, hidden]`, `[rows, hidden]`, and how much of its output each
    /// stream takes, `[rows, streams, 1]`; nothing of it if none is written back.
    pub(super) fn read(&self, streams: &Tensor) -> Result<(Tensor, Option<Tensor>)> {
        let rows = streams.dim(0);
        let normed = self.norm.forward(streams)?;
        let flat = normed.reshape(&[rows, self.streams * self.hidden])?;
        let numbers = self.down_proj.forward(&flat)?.mul(&self.share)?;
        let short = numbers.slice(1, 0, self.rank)?;
        let gates = self.up_proj.forward(&short.sigmoid()?.mul(&short)?)?.sigmoid()?;
        let gated = gates.reshape(&[rows, self.streams, self.hidden])?.mul(&normed)?;
        let taken = match numbers.dim(1) - self.rank {
            0 => None,
            _ => {
                let numbers = numbers.slice(1, self.rank, self.rank + self.streams)?;
                let taken = numbers.sigmoid()?.mul(&self.two)?;
                Some(taken.reshape(&[rows, self.streams, 1])?)
            }
        };
        Ok((gated.sum(1, false)?.mul(&self.share)?, taken))
    }
}
