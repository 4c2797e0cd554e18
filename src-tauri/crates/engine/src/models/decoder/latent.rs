//! Attention over latents (DeepSeek-V2, arXiv:2405.04434). Of each position a cache keeps the short vector that keys and
//! values of all heads are made of, and the part of the key that turns, which all heads share.

use prompt::config::latent::LatentConfig;

use super::{Loading, Step};
use crate::cache::{Cache, PlainCache, Seen};
use crate::error::Result;
use crate::layers::{attend, Linear, Parameters, RmsNorm};
use crate::ops::{concatenate, Packed};
use crate::tensor::Tensor;
use crate::weights::Matrix;

/// The attention of one layer.
pub struct Latent {
    heads: i32,
    rank: i32,
    still: i32,
    turning: i32,
    value: i32,
    mask: usize,
    rope: usize,
    /// q_a_proj, or q_proj where queries are not squeezed, and kv_a_proj_with_mqa side by side.
    down_proj: Linear,
    /// q_a_layernorm and q_b_proj.
    queries: Option<(RmsNorm, Linear)>,
    kv_a_layernorm: RmsNorm,
    /// From the short vector to the part of each head's keys that keeps still.
    keys: PerHead,
    /// From the short vector to each head's values.
    values: PerHead,
    o_proj: Linear,
    /// Factor of the scores.
    scale: Tensor,
    /// Factor of the turning part of queries, beside the scale.
    loudness: Option<Tensor>,
}

/// One matrix per head, between its own width and that of the short vector.
enum PerHead {
    /// `[heads, own, rank]`.
    Plain(Tensor),
    /// Rows of `own`, packed along `rank`.
    ByOwn(Packed),
    /// Rows of `rank`, packed along `own`.
    ByRank(Packed),
}

impl Latent {
    /// Loads what stands below `path`, with `kv_b_proj`, or, as MLX's own files have it, `embed_q` and `unembed_out`.
    pub fn load(config: &LatentConfig, path: &str, loading: &mut Loading<'_, '_>) -> Result<Self> {
        let name = |part: &str| format!("{path}.{part}");
        let hidden = loading.config.hidden_size as i32;
        let [heads, rank, still, turning, value] =
            [config.heads, config.rank, config.still, config.turning, config.value].map(|width| width as i32);
        let queries = heads * (still + turning);
        let first = match config.query_rank {
            Some(rank) => (name("q_a_proj"), rank as i32),
            None => (name("q_proj"), queries),
        };
        if config.bias {
            for part in ["kv_a_proj_with_mqa", "o_proj"] {
                loading.weights.require(&name(&format!("{part}.bias")))?;
            }
        }
        let parts = [first, (name("kv_a_proj_with_mqa"), rank + turning)];
        let (keys, values) = PerHead::load(config, path, loading)?;
        let loudness = loading.ropes[config.rope].score_factor();
        let latent = Self {
            heads,
            rank,
            still,
            turning,
            value,
            mask: loading.mask(None),
            rope: config.rope,
            down_proj: Linear::load_joined(loading.weights, &parts, hidden)?,
            queries: match config.query_rank {
                Some(rank) => Some((
                    RmsNorm::load(loading.weights, &name("q_a_layernorm"), rank as i32, config.eps)?,
                    Linear::load(loading.weights, &name("q_b_proj"), rank as i32, queries)?,
                )),
                None => None,
            },
            kv_a_layernorm: RmsNorm::load(loading.weights, &name("kv_a_layernorm"), rank, config.eps)?,
            keys,
            values,
            o_proj: Linear::load(loading.weights, &name("o_proj"), heads * value, hidden)?,
            scale: Tensor::scalar(config.scale, loading.dtype)?,
            loudness: match loudness {
                1.0 => None,
                factor => Some(Tensor::scalar(factor, loading.dtype)?),
            },
        };
        loading.weights.settle(latent.tensors())?;
        Ok(latent)
    }

    /// An empty cache: the turning parts of keys are its keys, the short vectors its values.
    pub fn cache(&self) -> Cache {
        Cache::Latent(PlainCache::default())
    }

    /// The index of its mask in a step.
    pub fn mask(&self) -> usize {
        self.mask
    }

    /// `[length, hidden]` to the same.
    pub fn forward(&self, x: &Tensor, step: &Step<'_>, cache: &mut Cache) -> Result<Tensor> {
        let (length, rank) = (x.dim(0), self.rank);
        let all = self.down_proj.forward(x)?;
        let split = all.dim(1) - rank - self.turning;
        let queries = all.slice(1, 0, split)?;
        let queries = match &self.queries {
            Some((norm, proj)) => proj.forward(&norm.forward(&queries)?)?,
            None => queries,
        };
        let queries = by_head(&queries.mul(&self.scale)?, self.heads)?;
        let still = queries.slice(3, 0, self.still)?;
        let mut turned = self.rotate(&queries.slice(3, self.still, self.still + self.turning)?, step)?;
        if let Some(loudness) = &self.loudness {
            turned = turned.mul(loudness)?;
        }
        let latent = self.kv_a_layernorm.forward(&all.slice(1, split, split + rank)?)?;
        let key = all.slice(1, split + rank, split + rank + self.turning)?;
        let key = self.rotate(&by_head(&key, 1)?, step)?;
        let (keys, latents) = cache.update(&key, &by_head(&latent, 1)?)?.plain()?;
        let attended = if length == 1 {
            self.attend_latents(&still, &turned, &keys, &latents)?
        } else {
            let keys = self.spread(&keys)?;
            let seen = Seen::Plain {
                keys: concatenate(&[&self.keys.back(&latents)?, &keys], 3)?,
                values: self.values.back(&latents)?,
            };
            attend(&concatenate(&[&still, &turned], 3)?, &seen, 1.0, &step.masks[self.mask], None)?
        };
        self.o_proj.forward(&attended)
    }

    /// One position: queries are brought to the short vectors, so that nothing of the past has to be unfolded.
    fn attend_latents(&self, still: &Tensor, turned: &Tensor, keys: &Tensor, latents: &Tensor) -> Result<Tensor> {
        let as_rows = |x: &Tensor, width: i32| x.reshape(&[1, 1, self.heads, width]);
        let still = as_rows(&self.keys.forth(still)?, self.rank)?.matmul(&latents.swapaxes(2, 3)?)?;
        let scores = as_rows(turned, self.turning)?.addmm(&keys.swapaxes(2, 3)?, &still)?;
        let found = scores.softmax(3, true)?.matmul(latents)?;
        let values = self.values.back(&found.reshape(&[1, self.heads, 1, self.rank])?)?;
        values.reshape(&[1, self.heads * self.value])
    }

    fn rotate(&self, heads: &Tensor, step: &Step<'_>) -> Result<Tensor> {
        step.ropes[self.rope].forward(heads, &step.rotations[self.rope])
    }

    /// The turning parts of keys for every head.
    fn spread(&self, keys: &Tensor) -> Result<Tensor> {
        keys.broadcast(&[1, self.heads, keys.dim(2), self.turning])
    }
}

/// `[length, count · width]` to `[1, count, length, width]`.
fn by_head(x: &Tensor, count: i32) -> Result<Tensor> {
    let (length, width) = (x.dim(0), x.dim(1) / count);
    match (length, count) {
        (1, _) | (_, 1) => x.reshape(&[1, count, length, width]),
        _ => x.reshape(&[1, length, count, width])?.swapaxes(1, 2),
    }
}

impl PerHead {
    /// The matrices of keys and of values.
    fn load(config: &LatentConfig, path: &str, loading: &mut Loading<'_, '_>) -> Result<(Self, Self)> {
        let [heads, rank, still, value] = [config.heads, config.rank, config.still, config.value].map(|width| width as i32);
        let weights = &mut *loading.weights;
        let joined = format!("{path}.kv_b_proj");
        let (keys, values) = if weights.has(&format!("{joined}.weight")) {
            let own = still + value;
            let part = |rows: &Tensor, from: i32, to: i32| rows.reshape(&[heads, own, -1])?.slice(1, from, to)?.contiguous();
            let parts = |from: i32, to: i32, matrix: &Matrix| -> Result<Self> {
                Ok(match matrix {
                    Matrix::Plain(rows) => Self::Plain(part(rows, from, to)?),
                    Matrix::Packed(packed) => Self::ByOwn(Packed {
                        weight: part(&packed.weight, from, to)?,
                        scales: part(&packed.scales, from, to)?,
                        biases: packed.biases.as_ref().map(|biases| part(biases, from, to)).transpose()?,
                        format: packed.format,
                    }),
                })
            };
            let matrix = weights.take_matrix(&joined, heads * own, rank, u64::MAX)?;
            (parts(0, still, &matrix)?, parts(still, own, &matrix)?)
        } else {
            let keys = match weights.take_stack(&format!("{path}.embed_q"), &[heads, rank, still], u64::MAX)? {
                Matrix::Plain(rows) => Self::Plain(rows.swapaxes(1, 2)?.contiguous()?),
                Matrix::Packed(packed) => Self::ByRank(packed),
            };
            let values = match weights.take_stack(&format!("{path}.unembed_out"), &[heads, value, rank], u64::MAX)? {
                Matrix::Plain(rows) => Self::Plain(rows),
                Matrix::Packed(packed) => Self::ByOwn(packed),
            };
            (keys, values)
        };
        weights.settle(keys.tensors().into_iter().chain(values.tensors()))?;
        Ok((keys, values))
    }

    /// From each head's own width to the short vector's: `[1, heads, length, own]` to `[1, heads, length, rank]`.
    fn forth(&self, x: &Tensor) -> Result<Tensor> {
        match self {
            Self::Plain(matrices) => x.matmul(matrices),
            Self::ByOwn(packed) => x.times_packed(packed, false),
            Self::ByRank(packed) => x.times_packed(packed, true),
        }
    }

    /// From the short vector to each head's own width: `[1, 1 or heads, length, rank]` to `[1, heads, length, own]`.
    fn back(&self, x: &Tensor) -> Result<Tensor> {
        match self {
            Self::Plain(matrices) => x.matmul(&matrices.swapaxes(1, 2)?),
            Self::ByOwn(packed) => x.times_packed(packed, true),
            Self::ByRank(packed) => x.times_packed(packed, false),
        }
    }
}

impl Parameters for PerHead {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        match self {
            Self::Plain(matrices) => visitor(matrices),
            Self::ByOwn(packed) | Self::ByRank(packed) => packed.visit(visitor),
        }
    }
}

impl Parameters for Latent {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        let Self {
            heads: _,
            rank: _,
            still: _,
            turning: _,
            value: _,
            mask: _,
            rope: _,
            down_proj,
            queries,
            kv_a_layernorm,
            keys,
            values,
            o_proj,
            scale,
            loudness,
        } = self;
        down_proj.visit(visitor);
        if let Some((norm, proj)) = queries {
            norm.visit(visitor);
            proj.visit(visitor);
        }
        kv_a_layernorm.visit(visitor);
        keys.visit(visitor);
        values.visit(visitor);
        o_proj.visit(visitor);
        visitor(scale);
        loudness.visit(visitor);
    }
}
