//! The projections of softmax attention and the norms of its heads, in the forms that checkpoints have them in.

use checkpoint::config::decoder::{AttentionConfig, GateSource, QkNorm};
use mlx::ops::concatenate;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::error;
use crate::layers::{norm_weight, ones, Linear, Projection, RmsNorm, ShortConv};
use crate::models::decoder::load_context::LoadContext;
use crate::models::decoder::shared_keys::reads_earlier;

/// Added to the mean square of a head if each has factors of its own.
const EACH_HEAD_EPS: f32 = 1e-6;

/// Norms of queries and keys.
#[derive(Parameters)]
pub(super) enum HeadNorms {
    None,
    /// Factors of all heads of queries and keys, `[heads + key heads, width]`.
    PerHead(RmsNorm),
    /// The same, and ones for values, `[heads + 2 · key heads, width]`.
    WithValues(RmsNorm),
    /// Of each head of queries and of keys, after it has turned.
    Turned([RmsNorm; 2]),
    /// Over all heads of queries and of keys together.
    Whole([RmsNorm; 2]),
}

/// Queries, keys and values side by side; a gate of numbers before them, one of heads after them, and what an index of
/// blocks reads at the end.
pub(super) fn qkv_proj(
    config: &AttentionConfig,
    path: &str,
    loading: &mut LoadContext<'_, '_>,
) -> error::Result<Linear> {
    let width = config.head_dim as i32;
    let (queries, keys) = (config.heads as i32 * width, config.key_heads as i32 * width);
    let (joined, part) = (format!("{path}.qkv_proj"), |name: &str| format!("{path}.{name}"));
    let bias = |name: &str| match config.qkv_bias {
        true => loading.weights.require(&format!("{path}.{name}.bias")),
        false => Ok(()),
    };
    let source = config.output_gate.map(|gate| gate.source);
    let gated = part("gqkv_proj");
    if source == Some(GateSource::Numbers) && loading.weights.has(&format!("{gated}.weight")) {
        bias("gqkv_proj")?;
        let values = (config.heads + config.key_heads) as i32 * config.value_dim as i32;
        let all = [Projection::new(gated, queries + keys + values)];
        return Linear::load_rows(loading.weights, &all, loading.config.hidden_size as i32);
    }
    if reads_earlier(config) {
        let hidden = loading.config.hidden_size as i32;
        bias("q_proj")?;
        return Linear::load_rows(loading.weights, &[Projection::new(part("q_proj"), queries)], hidden);
    }
    let mut parts = if loading.weights.has(&format!("{joined}.weight")) && source != Some(GateSource::Queries) {
        bias("qkv_proj")?;
        let stored = config.stored_key_heads as i32;
        let projection = Projection::new(joined, queries + stored * (width + config.value_dim as i32));
        let shared = config.heads as i32 / config.key_heads as i32 * width;
        let by_key_head = [0..shared, shared..shared + width, shared + width..shared + 2 * width];
        vec![match config.key_heads as i32 / stored {
            1 if config.joined_by_key_head => projection.deinterleaved(&by_key_head),
            1 => projection,
            times => projection.repeated(queries, width, times),
        }]
    } else {
        ["q_proj", "k_proj", "v_proj"].into_iter().try_for_each(bias)?;
        let q_proj = match source {
            // The gate comes first, so that queries and keys stay neighbors.
            Some(GateSource::Queries) => {
                Projection::new(part("q_proj"), 2 * queries).deinterleaved(&[width..2 * width, 0..width])
            }
            Some(GateSource::Numbers | GateSource::Heads) | None if config.tiled => {
                let of_key = |key: i32| key * width..(key + 1) * width;
                let by_key: Vec<_> = (0..config.key_heads as i32).map(of_key).collect();
                Projection::new(part("q_proj"), queries).deinterleaved(&by_key)
            }
            Some(GateSource::Numbers | GateSource::Heads) | None => Projection::new(part("q_proj"), queries),
        };
        let values = (config.key_heads * config.value_dim) as i32;
        let [k_proj, v_proj] =
            [("k_proj", keys), ("v_proj", values)].map(|(name, width)| Projection::new(part(name), width));
        vec![q_proj, k_proj, v_proj]
    };
    let gate = |width: i32| Projection::new(part("g_proj"), width);
    match source {
        Some(GateSource::Numbers) => parts.insert(0, gate((config.heads * config.value_dim) as i32)),
        Some(GateSource::Heads) => parts.push(gate(config.heads as i32)),
        Some(GateSource::Queries) | None => {}
    }
    if let Some(index) = config.block_index {
        let of_index = [
            ("index_q_proj", index.heads * index.head_dim),
            ("index_k_proj", index.head_dim),
        ];
        parts.extend(of_index.map(|(name, width)| Projection::new(part(name), width as i32)));
    }
    if let Some(index) = config.mean_index {
        let width = (index.heads + 1) * index.head_dim;
        parts.push(Projection::new(part("indexer.index_qk_proj"), width as i32));
    }
    Linear::load_rows(loading.weights, &parts, loading.config.hidden_size as i32)
}

/// The convolution of keys and values, by factors `conv_k` and `conv_v` `[1, 1, key heads, 1, 2]`, the earlier one
/// first.
pub(super) fn key_conv(
    config: &AttentionConfig,
    path: &str,
    loading: &mut LoadContext<'_, '_>,
) -> error::Result<ShortConv> {
    let (heads, width) = (config.key_heads as i32, config.head_dim as i32);
    let mut filter = |name: &str| -> error::Result<Tensor> {
        let factors = loading.weights.take(&format!("{path}.{name}"), &[1, 1, heads, 1, 2])?;
        let rows = factors.reshape(&[heads, 1, 2])?.broadcast(&[heads, width, 2])?;
        Ok(rows.reshape(&[heads * width, 2])?)
    };
    let conv = ShortConv::new(&concatenate(&[&filter("conv_k")?, &filter("conv_v")?], 0)?, None)?;
    loading.weights.materialize(conv.tensors())?;
    Ok(conv)
}

/// The norms of heads.
pub(super) fn head_norms(
    config: &AttentionConfig,
    path: &str,
    loading: &mut LoadContext<'_, '_>,
) -> error::Result<HeadNorms> {
    let (heads, key_heads, width) = (config.heads as i32, config.key_heads as i32, config.head_dim as i32);
    let norm = loading.config.norm;
    let bare = matches!(config.qk_norm, QkNorm::PerHeadBare | QkNorm::PerHeadBareTurned);
    if config.qk_norm == QkNorm::EachHead {
        let mut factors = |name: &str, count: i32| loading.weights.take(&format!("{path}.{name}"), &[count, width]);
        let rows = [factors("q_weight", heads)?, factors("k_weight", key_heads)?];
        let factors = concatenate(&[&rows[0], &rows[1]], 0)?;
        return Ok(HeadNorms::PerHead(RmsNorm::new(factors, EACH_HEAD_EPS)));
    }
    let alone = reads_earlier(config);
    let mut take = |name: &str, width: i32| match norm.bare || bare || (alone && name == "k_norm") {
        true => Ok(ones(width, loading.dtype)?),
        false => norm_weight(loading.weights, &format!("{path}.{name}"), width, norm),
    };
    Ok(match config.qk_norm {
        QkNorm::None | QkNorm::EachHead => HeadNorms::None,
        QkNorm::PerHead | QkNorm::PerHeadAndValues | QkNorm::PerHeadBare => {
            let queries = take("q_norm", width)?.reshape(&[1, width])?;
            let keys = take("k_norm", width)?.reshape(&[1, width])?;
            let rows = [vec![&queries; heads as usize], vec![&keys; key_heads as usize]].concat();
            let factors = concatenate(&rows, 0)?;
            let factors = match config.head_gain {
                true => {
                    let gains = loading.weights.take(&format!("{path}.head_gain.head_g"), &[heads])?;
                    let ones = ones(key_heads, gains.dtype())?;
                    factors.mul(&concatenate(&[&gains, &ones], 0)?.reshape(&[heads + key_heads, 1])?)?
                }
                false => factors,
            };
            if config.qk_norm == QkNorm::PerHeadAndValues {
                let values = ones(width, factors.dtype())?.reshape(&[1, width])?;
                let rows = [vec![&factors], vec![&values; key_heads as usize]].concat();
                return Ok(HeadNorms::WithValues(RmsNorm::new(concatenate(&rows, 0)?, norm.eps)));
            }
            HeadNorms::PerHead(RmsNorm::new(factors, norm.eps))
        }
        QkNorm::PerHeadTurned | QkNorm::PerHeadBareTurned => HeadNorms::Turned([
            RmsNorm::new(take("q_norm", width)?, norm.eps),
            RmsNorm::new(take("k_norm", width)?, norm.eps),
        ]),
        QkNorm::Whole => HeadNorms::Whole([
            RmsNorm::new(take("q_norm", heads * width)?, norm.eps),
            RmsNorm::new(take("k_norm", key_heads * width)?, norm.eps),
        ]),
    })
}

impl HeadNorms {
    /// Queries that have turned, of a layer without keys.
    pub(super) fn of_queries(&self, queries: Tensor) -> Result<Tensor> {
        match self {
            Self::Turned([norm, _]) => norm.forward(&queries),
            Self::None => Ok(queries),
            Self::PerHead(_) | Self::WithValues(_) | Self::Whole(_) => Err(mlx::Error::Unsupported(
                "queries that are normed before they turn, without keys".into(),
            )),
        }
    }

    /// Heads that have turned, normed if that comes after; values as they are.
    pub(super) fn turned(&self, queries: Tensor, keys: Tensor, values: Tensor) -> Result<(Tensor, Tensor, Tensor)> {
        match self {
            Self::Turned(norms) => Ok((norms[0].forward(&queries)?, norms[1].forward(&keys)?, values)),
            Self::None | Self::PerHead(_) | Self::WithValues(_) | Self::Whole(_) => Ok((queries, keys, values)),
        }
    }
}
