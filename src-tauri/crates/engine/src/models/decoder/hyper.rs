//! Several streams between the layers: each part of a layer reads a mixture of them and is written back to all, which
//! are mixed with each other on the way (XING 4.0) or keep what they have (Hunyuan 4).

use checkpoint::config::decoder::{BetweenStreams, HyperConfig};
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::error;
use crate::models::decoder::gated_streams::GatedStreams;
use crate::models::decoder::load_context::LoadContext;

/// Several streams at their beginning and at their end.
#[derive(Parameters)]
pub(super) struct Streams {
    count: i32,
    end: StreamEnd,
}

/// The input of the last norm from the streams, or its place.
#[derive(Parameters)]
enum StreamEnd {
    /// Their mean.
    Mean,
    /// Their sum by shares.
    Shares(StreamHead),
    /// Their mean by gates, which is normed.
    Gated(Box<GatedStreams>),
}

/// The shares of the streams in what the last norm reads.
#[derive(Parameters)]
struct StreamHead {
    norm_eps: f32,
    /// `[all streams, streams]`, in 32 bits as all else.
    mixing: Tensor,
    /// `[streams]`.
    base: Tensor,
    scale: Tensor,
    eps: Tensor,
}

/// The connection of one part of a layer.
#[derive(Parameters)]
pub(super) enum HyperConnection {
    /// By shares of whole streams.
    Shares(Box<SharedStreams>),
    /// By gates of their numbers.
    Gated(Box<GatedStreams>),
}

/// A connection by shares of whole streams.
#[derive(Parameters)]
pub(super) struct SharedStreams {
    streams: i32,
    /// Added to the mean square of all streams.
    norm_eps: f32,
    /// `[all streams, numbers]`.
    mixing: Tensor,
    /// The factor of each number, and what is added to it, `[numbers]`, in 32 bits.
    factors: Tensor,
    base: Tensor,
    /// The most that a stream takes of what the part gave.
    magnitude: Tensor,
    eps: Tensor,
    /// How streams are mixed with each other; `None` if they are not.
    balance: Option<Balance>,
}

/// A matrix between the streams whose rows and columns sum up to about 1.
#[derive(Parameters)]
struct Balance {
    iterations: u32,
    /// The least and the greatest logarithm; `None` if rows are shares at first.
    bounds: Option<[Tensor; 2]>,
}

/// How a part of a layer is written back.
pub(super) struct Written {
    /// The share of each stream, `[rows, streams, 1]`.
    shares: Tensor,
    /// The streams as they are kept, `[rows, streams, hidden]`.
    kept: Tensor,
    /// The type of the streams.
    dtype: Dtype,
}

impl Streams {
    /// Loads `hc_head` with `hc_head_fn`, `hc_head_base` and `hc_head_scale`, if the streams have shares at their end,
    /// or `hyper_connection_mixer`.
    pub(super) fn load(config: &HyperConfig, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let (count, hidden, norm_eps) = (
            config.streams as i32,
            loading.config.hidden_size as i32,
            loading.config.norm.eps,
        );
        if let BetweenStreams::Gated { rank } = config.between {
            let end = gated("hyper_connection_mixer", rank, false, loading)?;
            return Ok(Self {
                count,
                end: StreamEnd::Gated(Box::new(end)),
            });
        }
        let weights = &mut *loading.weights;
        let mut head = || -> error::Result<StreamHead> {
            let mut take = |name: &str, shape: &[i32]| -> error::Result<Tensor> {
                let stored = weights.take(&format!("hc_head.hc_head_{name}"), shape)?;
                Ok(stored.astype(Dtype::Float32)?)
            };
            let mixing = take("fn", &[count, count * hidden])?;
            Ok(StreamHead {
                norm_eps,
                mixing: mixing.swapaxes(0, 1)?.contiguous()?,
                base: take("base", &[count])?,
                scale: take("scale", &[1])?,
                eps: Tensor::scalar(config.eps, Dtype::Float32)?,
            })
        };
        let end = match config.head {
            true => StreamEnd::Shares(head()?),
            false => StreamEnd::Mean,
        };
        let streams = Self { count, end };
        weights.materialize(streams.tensors())?;
        Ok(streams)
    }

    /// Streams `[rows, streams, hidden]` that begin as the embeddings `[rows, hidden]`.
    pub(super) fn begin(&self, embedded: &Tensor) -> Result<Tensor> {
        let (rows, hidden) = (embedded.dim(0), embedded.dim(1));
        let copied = embedded.reshape(&[rows, 1, hidden])?;
        copied.broadcast(&[rows, self.count, hidden])
    }

    /// Their mean, or the sum of their shares, `[rows, hidden]`.
    pub(super) fn end(&self, streams: &Tensor) -> Result<Tensor> {
        let head = match &self.end {
            StreamEnd::Mean => {
                let share = Tensor::scalar(1.0 / self.count as f32, streams.dtype())?;
                return streams.sum(1, false)?.mul(&share);
            }
            StreamEnd::Gated(gated) => return Ok(gated.read(streams)?.0),
            StreamEnd::Shares(head) => head,
        };
        let numbers = normed(streams, head.norm_eps)?.matmul(&head.mixing)?;
        let shares = numbers.mul(&head.scale)?.add(&head.base)?.sigmoid()?.add(&head.eps)?;
        summed(streams, &shares)
    }
}

/// All streams `[rows, streams, hidden]` side by side, by the root of their mean square, in 32 bits.
fn normed(streams: &Tensor, eps: f32) -> Result<Tensor> {
    let flat = streams.reshape(&[streams.dim(0), -1])?.astype(Dtype::Float32)?;
    flat.fast_rms_norm(None, eps)
}

/// The sum of streams `[rows, streams, hidden]` times their shares `[rows, streams]`, in the type of these and then of
/// the streams.
fn summed(streams: &Tensor, shares: &Tensor) -> Result<Tensor> {
    let shares = shares.reshape(&[shares.dim(0), shares.dim(1), 1])?;
    let sum = streams.astype(shares.dtype())?.mul(&shares)?.sum(1, false)?;
    sum.astype(streams.dtype())
}

/// A connection by gates below `path`.
fn gated(path: &str, rank: u32, written: bool, loading: &mut LoadContext<'_, '_>) -> error::Result<GatedStreams> {
    let config = loading.config;
    let streams = config.hyper.map_or(1, |hyper| hyper.streams) as i32;
    let shape = (streams, config.hidden_size as i32, rank as i32);
    GatedStreams::load(path, shape, config.norm, written, (loading.weights, loading.dtype))
}

impl HyperConnection {
    /// The connection of the mixer or of the network of a layer: `attn_hc` or `ffn_hc` below `path`, or those by gates.
    pub(super) fn load(
        config: &HyperConfig,
        path: &str,
        network: bool,
        loading: &mut LoadContext<'_, '_>,
    ) -> error::Result<Self> {
        let name = |of_mixer: &str, of_network: &str| format!("{path}.{}", if network { of_network } else { of_mixer });
        Ok(match config.between {
            BetweenStreams::Gated { rank } => {
                let path = name("attn_hyper_connection", "mlp_hyper_connection");
                Self::Gated(Box::new(gated(&path, rank, true, loading)?))
            }
            BetweenStreams::Balanced { .. } | BetweenStreams::Shares { .. } | BetweenStreams::Kept { .. } => {
                let path = name("attn_hc", "ffn_hc");
                Self::Shares(Box::new(SharedStreams::load(config, &path, loading)?))
            }
        })
    }

    /// The mixture `[rows, hidden]` of streams `[rows, streams, hidden]` that its part reads, and how that is written
    /// back.
    pub(super) fn read(&self, streams: &Tensor) -> Result<(Tensor, Written)> {
        let gated = match self {
            Self::Shares(shared) => return shared.read(streams),
            Self::Gated(gated) => gated,
        };
        let (read, shares) = gated.read(streams)?;
        let written = Written {
            shares: match shares {
                Some(shares) => shares,
                None => unreachable!("a part of a layer is written back"),
            },
            kept: streams.clone(),
            dtype: streams.dtype(),
        };
        Ok((read, written))
    }
}

impl SharedStreams {
    /// Loads `hc_fn`, `hc_base` and `hc_scale` below `path`.
    fn load(config: &HyperConfig, path: &str, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let (streams, numbers) = (config.streams as i32, config.numbers() as i32);
        let hidden = loading.config.hidden_size as i32;
        let scalar = |number: f32| Tensor::scalar(number, Dtype::Float32);
        let mixing = loading
            .weights
            .take(&format!("{path}.hc_fn"), &[numbers, streams * hidden])?;
        let base = loading.weights.take(&format!("{path}.hc_base"), &[numbers])?;
        let count = streams as usize;
        let (spans, magnitude, balance) = match config.between {
            BetweenStreams::Gated { .. } => unreachable!("it is loaded as what it is"),
            BetweenStreams::Kept { magnitude } => (vec![count, count], magnitude, None),
            BetweenStreams::Balanced { iterations, bounds } => {
                let bounds = Some([scalar(bounds.0)?, scalar(bounds.1)?]);
                let balance = Balance { iterations, bounds };
                (vec![count, count, count * count], 2.0, Some(balance))
            }
            BetweenStreams::Shares { iterations } => {
                let balance = Balance {
                    iterations,
                    bounds: None,
                };
                (vec![count, count, count * count], 2.0, Some(balance))
            }
        };
        let scales = loading
            .weights
            .take(&format!("{path}.hc_scale"), &[spans.len() as i32])?
            .to_f32()?;
        let factors: Vec<f32> = scales
            .iter()
            .zip(spans)
            .flat_map(|(scale, count)| std::iter::repeat_n(*scale, count))
            .collect();
        // One family reads and writes streams in the type of the model, others in 32 bits.
        let dtype = match config.between {
            BetweenStreams::Balanced { .. } => loading.dtype,
            BetweenStreams::Gated { .. } | BetweenStreams::Kept { .. } | BetweenStreams::Shares { .. } => {
                Dtype::Float32
            }
        };
        let connection = Self {
            streams,
            norm_eps: loading.config.norm.eps,
            mixing: mixing.astype(dtype)?.swapaxes(0, 1)?.contiguous()?,
            factors: Tensor::from_f32(&factors, &[numbers]),
            base: base.astype(Dtype::Float32)?,
            magnitude: scalar(magnitude)?,
            eps: scalar(config.eps)?,
            balance,
        };
        loading.weights.materialize(connection.tensors())?;
        Ok(connection)
    }

    /// The mixture that its part reads, and how that is written back.
    fn read(&self, streams: &Tensor) -> Result<(Tensor, Written)> {
        let (rows, count, dtype) = (streams.dim(0), self.streams, streams.dtype());
        let flat = normed(streams, self.norm_eps)?.astype(self.mixing.dtype())?;
        let numbers = flat.matmul(&self.mixing)?.astype(Dtype::Float32)?;
        let numbers = numbers.mul(&self.factors)?.add(&self.base)?;
        let shares = numbers.slice(1, 0, 2 * count)?.sigmoid()?;
        let (read, taken) = (shares.slice(1, 0, count)?, shares.slice(1, count, 2 * count)?);
        let taken = taken.mul(&self.magnitude)?.reshape(&[rows, count, 1])?;
        let Some(balance) = &self.balance else {
            let written = Written {
                shares: taken.add(&self.eps)?,
                kept: streams.clone(),
                dtype,
            };
            return Ok((summed(streams, &read.add(&self.eps)?)?, written));
        };
        let between = numbers.slice(1, 2 * count, numbers.dim(1))?;
        let between = between.reshape(&[rows, count, count])?;
        let Some(bounds) = &balance.bounds else {
            let between = self.balanced_shares(balance, &between)?.swapaxes(1, 2)?;
            let written = Written {
                shares: taken,
                kept: between.matmul(&streams.astype(Dtype::Float32)?)?,
                dtype,
            };
            return Ok((summed(streams, &read.add(&self.eps)?)?, written));
        };
        let between = self.balanced(balance, bounds, &between)?.astype(dtype)?;
        let written = Written {
            shares: taken.astype(dtype)?,
            kept: between.matmul(streams)?,
            dtype,
        };
        Ok((summed(streams, &read.astype(dtype)?)?, written))
    }

    /// Matrices `[rows, streams, streams]` of such logarithms whose rows and columns sum up to about 1 (Sinkhorn).
    fn balanced(&self, balance: &Balance, [least, greatest]: &[Tensor; 2], logarithms: &Tensor) -> Result<Tensor> {
        let bounded = logarithms.clip(least, greatest)?;
        let mut matrix = bounded.sub(&bounded.max(2, true)?)?.exp()?;
        for _ in 0..balance.iterations {
            for axis in [2, 1] {
                matrix = self.scaled(&matrix, axis)?;
            }
        }
        Ok(matrix)
    }

    /// The same that begin as shares of each row.
    fn balanced_shares(&self, balance: &Balance, logarithms: &Tensor) -> Result<Tensor> {
        let shares = logarithms.softmax(2, true)?.add(&self.eps)?;
        let mut matrix = self.scaled(&shares, 1)?;
        for _ in 1..balance.iterations {
            for axis in [2, 1] {
                matrix = self.scaled(&matrix, axis)?;
            }
        }
        Ok(matrix)
    }

    /// Matrices whose numbers along an axis sum up to 1.
    fn scaled(&self, matrix: &Tensor, axis: i32) -> Result<Tensor> {
        matrix.div(&matrix.sum(axis, true)?.add(&self.eps)?)
    }
}

impl Written {
    /// The streams after a part that gave `[rows, hidden]`.
    pub(super) fn with(&self, part: &Tensor) -> Result<Tensor> {
        let (rows, hidden, wide) = (part.dim(0), part.dim(1), self.shares.dtype());
        let part = part.reshape(&[rows, 1, hidden])?.astype(wide)?;
        let sum = self.shares.mul(&part)?.add(&self.kept.astype(wide)?)?;
        sum.astype(self.dtype)
    }
}
