//! Multi-head latent attention, MLA (DeepSeek-V2, arXiv:2405.04434). For each position the cache keeps the latent, the
//! short vector that keys and values of all heads are made from, and the rotary part of the key, which all heads share.

use checkpoint::config::decoder::GateSource;
use checkpoint::config::mla::MlaConfig;
use mlx::device::{device, Device};
use mlx::ops::{concatenate, Mask};
use mlx::parameters::Parameters;
use mlx::quantized::QuantizedTensor;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::cache::{Cache, KvView, PlainCache};
use crate::error;
use crate::layers::{each_sequence, scaled_dot_product_attention, Linear, RmsNorm};
use crate::models::decoder::by_head::by_head;
use crate::models::decoder::indexer::Indexer;
use crate::models::decoder::load_context::LoadContext;
use crate::models::decoder::output_gate::OutputGate;
use crate::models::decoder::step::{Chosen, Step};
use crate::products::product_check::Layout;
use crate::weights::{Matrix, Weights};

/// The attention of one layer.
#[derive(Parameters)]
pub struct Mla {
    heads: i32,
    rank: i32,
    nope_dim: i32,
    rope_dim: i32,
    value_dim: i32,
    mask: usize,
    rope: Option<usize>,
    /// q_a_proj, or q_proj if queries have no low rank, and kv_a_proj_with_mqa side by side.
    down_proj: Linear,
    /// q_a_layernorm and q_b_proj.
    queries: Option<(RmsNorm, Linear)>,
    kv_a_layernorm: RmsNorm,
    /// From the latent to the part of each head's keys without positions.
    keys: HeadProjection,
    /// From the latent to each head's values.
    values: HeadProjection,
    /// The gate that the output of each head goes through, and g_proj.
    gate: Option<(OutputGate, Linear)>,
    o_proj: Linear,
    /// The index of the positions that are looked at.
    indexer: Option<Indexer>,
    /// True if an earlier layer's index chooses these.
    follows: bool,
    /// `[heads]`.
    sinks: Option<Tensor>,
    /// Factor of the scores.
    scale: Tensor,
    /// Factor of the rotary part of queries, in addition to the scale.
    mscale: Option<Tensor>,
}

/// One matrix per head, between the head's width and that of the latent.
#[derive(Parameters)]
pub(super) enum HeadProjection {
    /// `[heads, own, rank]`.
    Plain(Tensor),
    /// Rows of `own`, quantized along `rank`.
    QuantizedByHead(QuantizedTensor),
    /// Rows of `rank`, quantized along `own`.
    QuantizedByRank(QuantizedTensor),
}

impl Mla {
    /// Loads what stands below `path`, with `kv_b_proj`, or, as MLX's own files have it, `embed_q` and `unembed_out`.
    pub fn load(config: &MlaConfig, path: &str, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let name = |part: &str| format!("{path}.{part}");
        let hidden = loading.config.hidden_size as i32;
        let (heads, rank, value_dim) = (
            config.heads as i32,
            config.kv_lora_rank as i32,
            config.v_head_dim as i32,
        );
        let (nope_dim, rope_dim) = (config.qk_nope_head_dim as i32, config.qk_rope_head_dim as i32);
        let queries = heads * (nope_dim + rope_dim);
        let first = match config.q_lora_rank {
            Some(rank) => (name("q_a_proj"), rank as i32),
            None => (name("q_proj"), queries),
        };
        if config.bias {
            for part in ["kv_a_proj_with_mqa", "o_proj"] {
                loading.weights.require(&name(&format!("{part}.bias")))?;
            }
        }
        let parts = [first, (name("kv_a_proj_with_mqa"), rank + rope_dim)];
        let (keys, values) = HeadProjection::load(config, path, loading)?;
        let score_factor = config.rope.map(|rope| loading.ropes[rope].score_factor());
        let mscale = score_factor.filter(|factor| *factor != 1.0);
        let mut projected = |rank: u32| {
            let norm = RmsNorm::load(loading.weights, &name("q_a_layernorm"), rank as i32, config.eps)?;
            let proj = Linear::load(loading.weights, &name("q_b_proj"), rank as i32, queries)?;
            Ok::<_, error::Error>((norm, proj))
        };
        let projected = config.q_lora_rank.map(&mut projected).transpose()?;
        let indexer = match (config.indexer, config.q_lora_rank) {
            (Some(indexer), Some(rank)) => Some(Indexer::load(indexer, rank as i32, &name("indexer"), loading)?),
            (Some(_) | None, _) => None,
        };
        let gate = |source: GateSource, weights: &mut Weights<'_>| {
            let width = match source {
                GateSource::Heads => 1,
                GateSource::Queries | GateSource::Numbers => value_dim,
            };
            let proj = Linear::load(weights, &name("g_proj"), hidden, heads * width)?;
            Ok::<_, error::Error>((OutputGate::logistic(heads, width), proj))
        };
        let gate = config.gate.map(|source| gate(source, loading.weights)).transpose()?;
        let sinks = || loading.weights.take(&name("sinks"), &[heads]);
        let sinks = config.sinks.then(sinks).transpose()?;
        let sinks = sinks.map(|sinks| sinks.astype(loading.dtype)).transpose()?;
        let mla = Self {
            heads,
            rank,
            nope_dim,
            rope_dim,
            value_dim,
            mask: loading.mask(None),
            rope: config.rope,
            down_proj: Linear::load_joined(loading.weights, &parts, hidden)?,
            queries: projected,
            kv_a_layernorm: latent_norm(config, &name("kv_a_layernorm"), loading)?,
            keys,
            values,
            gate,
            o_proj: Linear::load(loading.weights, &name("o_proj"), heads * value_dim, hidden)?,
            indexer,
            follows: config.follows,
            sinks,
            scale: Tensor::scalar(config.scale, loading.dtype)?,
            mscale: Tensor::optional_scalar(mscale, loading.dtype)?,
        };
        loading.weights.materialize(mla.tensors())?;
        Ok(mla)
    }

    /// An empty cache: the rotary parts of keys are its keys, the latents its values.
    pub fn cache(&self) -> Cache {
        Cache::Mla(PlainCache::default())
    }

    /// The index of its mask in a step.
    pub fn mask(&self) -> usize {
        self.mask
    }

    /// `[rows, hidden]` to the same.
    pub(super) fn forward(&self, x: &Tensor, step: &Step<'_>, caches: &mut [&mut Cache]) -> Result<Tensor> {
        let (sequences, rank) = (step.sequences as i32, self.rank);
        let length = x.dim(0) / sequences;
        let all = self.down_proj.forward(x)?;
        let split = all.dim(1) - rank - self.rope_dim;
        let queries = all.slice(1, 0, split)?;
        let (queries, squeezed) = match &self.queries {
            Some((norm, proj)) => {
                let squeezed = norm.forward(&queries)?;
                (proj.forward(&squeezed)?, Some(squeezed))
            }
            None => (queries, None),
        };
        let queries = by_head(&queries.mul(&self.scale)?, self.heads, sequences)?;
        let nope = queries.slice(3, 0, self.nope_dim)?;
        let mut rotated = self.rotate(&queries.slice(3, self.nope_dim, self.nope_dim + self.rope_dim)?, step)?;
        if let Some(mscale) = &self.mscale {
            rotated = rotated.mul(mscale)?;
        }
        let latent = self.kv_a_layernorm.forward(&all.slice(1, split, split + rank)?)?;
        let key = all.slice(1, split + rank, split + rank + self.rope_dim)?;
        let key = self.rotate(&by_head(&key, 1, sequences)?, step)?;
        let latent = by_head(&latent, 1, sequences)?;
        let index = match (&self.indexer, &squeezed) {
            (Some(indexer), Some(squeezed)) => Some((indexer, indexer.read(x, squeezed, step)?)),
            (Some(_) | None, _) => None,
        };
        let key = match &index {
            Some((_, (index_key, _))) => concatenate(&[&key, index_key], 3)?,
            None => key,
        };
        let attended = each_sequence(caches, |rows, cache| {
            let (all, latents) = cache.update(&rows.of(&key)?, &rows.of(&latent)?)?.dequantized()?;
            let (keys, chosen) = match &index {
                Some((indexer, (_, query))) => {
                    let index_keys = all.slice(3, self.rope_dim, self.rope_dim + indexer.width())?;
                    let (queries, weights) = (rows.of(&query.queries)?, rows.of(&query.weights)?);
                    let chosen = indexer.choose(&queries, &weights, &index_keys)?;
                    step.keep_chosen(rows.index(), &chosen);
                    (all.slice(3, 0, self.rope_dim)?, chosen)
                }
                None if self.follows => (all, step.chosen(rows.index())),
                None => (all, Chosen::All),
            };
            let scaling = step.query_scaling[rows.index()].as_ref();
            let scaled = |queries: Tensor| match scaling {
                Some(scale) => scale.apply(&queries),
                None => Ok(queries),
            };
            let (nope, rotated) = (scaled(rows.of(&nope)?)?, scaled(rows.of(&rotated)?)?);
            if length == 1 {
                return match &chosen {
                    Chosen::Of(numbers) => {
                        self.attend_absorbed(&nope, &rotated, &keys.take(numbers, 2)?, &latents.take(numbers, 2)?)
                    }
                    Chosen::All | Chosen::Marked(_) => self.attend_absorbed(&nope, &rotated, &keys, &latents),
                };
            }
            let marked = match chosen {
                Chosen::Marked(marks) => Some(Mask::Array(marks)),
                Chosen::All | Chosen::Of(_) => None,
            };
            let mask = marked.as_ref().unwrap_or(&step.masks[self.mask]);
            let keys = self.spread(&keys)?;
            let seen = KvView::Plain {
                keys: concatenate(&[&self.keys.expand(&latents)?, &keys], 3)?,
                values: self.values.expand(&latents)?,
            };
            let queries = concatenate(&[&nope, &rotated], 3)?;
            scaled_dot_product_attention(&queries, &seen, 1.0, mask, self.sinks.as_ref())
        })?;
        match &self.gate {
            Some((gate, proj)) => self.o_proj.forward(&gate.apply(&attended, &proj.forward(x)?)?),
            None => self.o_proj.forward(&attended),
        }
    }

    /// One position with absorbed weights: queries are projected to the latents, so that no key of the past has to be
    /// expanded.
    fn attend_absorbed(&self, nope: &Tensor, rotated: &Tensor, keys: &Tensor, latents: &Tensor) -> Result<Tensor> {
        let as_rows = |x: &Tensor, width: i32| x.reshape(&[1, 1, self.heads, width]);
        let nope = as_rows(&self.keys.to_latent(nope)?, self.rank)?.matmul(&latents.swapaxes(2, 3)?)?;
        let scores = as_rows(rotated, self.rope_dim)?.addmm(&keys.swapaxes(2, 3)?, &nope)?;
        let shares = match &self.sinks {
            None => scores.softmax(3, true)?,
            Some(sinks) => {
                let sinks = sinks.reshape(&[1, 1, self.heads, 1])?;
                concatenate(&[&scores, &sinks], 3)?
                    .softmax(3, true)?
                    .slice(3, 0, scores.dim(3))?
            }
        };
        let found = shares.matmul(latents)?;
        let values = self.values.expand(&found.reshape(&[1, self.heads, 1, self.rank])?)?;
        values.reshape(&[1, self.heads * self.value_dim])
    }

    fn rotate(&self, heads: &Tensor, step: &Step<'_>) -> Result<Tensor> {
        match self.rope {
            Some(rope) => step.ropes[rope].forward(heads, &step.rotations[rope]),
            None => Ok(heads.clone()),
        }
    }

    /// The rotary parts of keys for every head.
    fn spread(&self, keys: &Tensor) -> Result<Tensor> {
        keys.broadcast(&[1, self.heads, keys.dim(2), self.rope_dim])
    }
}

/// The norm of the latents, with the factor of what it gives.
fn latent_norm(config: &MlaConfig, path: &str, loading: &mut LoadContext<'_, '_>) -> error::Result<RmsNorm> {
    let rank = config.kv_lora_rank as i32;
    let factors = loading.weights.take(&format!("{path}.weight"), &[rank])?;
    let factors = match config.latent_factor {
        1.0 => factors,
        factor => factors.mul(&Tensor::scalar(factor, factors.dtype())?)?,
    };
    Ok(RmsNorm::new(factors, config.eps))
}

/// The matrix in the form in which the device multiplies the rows of each head: on a CPU as numbers, in both directions
/// of which there are no kernels.
fn computed(matrix: Matrix) -> error::Result<Matrix> {
    match device() {
        Device::Cpu => Ok(Matrix::Plain(matrix.into_f32()?)),
        Device::Metal | Device::Cuda => Ok(matrix),
    }
}

impl HeadProjection {
    /// The matrices of keys and of values.
    fn load(config: &MlaConfig, path: &str, loading: &mut LoadContext<'_, '_>) -> error::Result<(Self, Self)> {
        let (heads, rank) = (config.heads as i32, config.kv_lora_rank as i32);
        let (nope, value) = (config.qk_nope_head_dim as i32, config.v_head_dim as i32);
        let weights = &mut *loading.weights;
        let joined = format!("{path}.kv_b_proj");
        let (keys, values) = if weights.has(&format!("{joined}.weight")) {
            let own = nope + value;
            let part =
                |rows: &Tensor, from: i32, to: i32| rows.reshape(&[heads, own, -1])?.slice(1, from, to)?.contiguous();
            let parts = |from: i32, to: i32, matrix: &Matrix| -> error::Result<Self> {
                Ok(match matrix {
                    Matrix::Plain(rows) => Self::Plain(part(rows, from, to)?),
                    Matrix::Quantized(quantized) => Self::QuantizedByHead(quantized.map(|rows| part(rows, from, to))?),
                })
            };
            let matrix = computed(weights.take_matrix(&joined, heads * own, rank)?)?;
            (parts(0, nope, &matrix)?, parts(nope, own, &matrix)?)
        } else {
            let keys = match computed(weights.take_stack(&format!("{path}.embed_q"), &[heads, rank, nope])?)? {
                Matrix::Plain(rows) => Self::Plain(rows.swapaxes(1, 2)?.contiguous()?),
                Matrix::Quantized(quantized) => Self::QuantizedByRank(quantized),
            };
            let values = match computed(weights.take_stack(&format!("{path}.unembed_out"), &[heads, value, rank])?)? {
                Matrix::Plain(rows) => Self::Plain(rows),
                Matrix::Quantized(quantized) => Self::QuantizedByHead(quantized),
            };
            (keys, values)
        };
        let (keys, values) = (keys.checked(weights)?, values.checked(weights)?);
        weights.materialize(keys.tensors().into_iter().chain(values.tensors()))?;
        Ok((keys, values))
    }

    /// Matrices `[heads, own, rank]` at `path`, whose rows may lie below one another.
    pub(super) fn take(weights: &mut Weights<'_>, path: &str, shape: [i32; 3]) -> error::Result<Self> {
        let [heads, own, rank] = shape;
        let stored = weights.shape(&format!("{path}.weight"));
        let matrix = match stored.is_some_and(|stored| stored.len() == 2) {
            true => weights.take_matrix(path, heads * own, rank)?,
            false => weights.take_stack(path, &shape)?,
        };
        let by_head = |rows: &Tensor| rows.reshape(&[heads, own, -1]);
        let taken = match computed(matrix)? {
            Matrix::Plain(rows) => Self::Plain(by_head(&rows)?),
            Matrix::Quantized(quantized) => Self::QuantizedByHead(quantized.map(by_head)?),
        };
        taken.checked(weights)
    }

    /// The same matrices, as numbers if this device multiplies them wrongly as they are.
    fn checked(self, weights: &mut Weights<'_>) -> error::Result<Self> {
        let (Self::QuantizedByHead(quantized) | Self::QuantizedByRank(quantized)) = &self else {
            return Ok(self);
        };
        let Some(numbers) = weights.replacement(quantized, Layout::Heads)? else {
            return Ok(self);
        };
        Ok(Self::Plain(match self {
            Self::QuantizedByRank(_) => numbers.swapaxes(1, 2)?.contiguous()?,
            _ => numbers,
        }))
    }

    /// From each head's width to the latent's: `[1, heads, length, own]` to `[1, heads, length, rank]`.
    fn to_latent(&self, x: &Tensor) -> Result<Tensor> {
        match self {
            Self::Plain(matrices) => x.matmul(matrices),
            Self::QuantizedByHead(quantized) => x.quantized_matmul(quantized, false),
            Self::QuantizedByRank(quantized) => x.quantized_matmul(quantized, true),
        }
    }

    /// From the latent's width to each head's: `[1, 1 or heads, length, rank]` to `[1, heads, length, own]`.
    pub(super) fn expand(&self, x: &Tensor) -> Result<Tensor> {
        match self {
            Self::Plain(matrices) => x.matmul(&matrices.swapaxes(1, 2)?),
            Self::QuantizedByHead(quantized) => x.quantized_matmul(quantized, true),
            Self::QuantizedByRank(quantized) => x.quantized_matmul(quantized, false),
        }
    }
}
