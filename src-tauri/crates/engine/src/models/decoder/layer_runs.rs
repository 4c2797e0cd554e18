//! Tables of short runs of tokens that a layer reads before its mixer (Qwen 4). The streams ask for what the tables have
//! for a token, each by its own key, and it is added to them with what a convolution makes of it and of earlier tokens.

use checkpoint::config::decoder::{LayerRunsConfig, NormConfig};
use mlx::ops::{concatenate, ids_tensor, join};
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{recording, Dtype, Result};

use crate::cache::{Cache, RecurrentCache};
use crate::error;
use crate::layers::{each_sequence, norm_weight, Embedding, Linear, RmsNorm};
use crate::models::decoder::load_context::LoadContext;
use crate::weights::Weights;

/// The tables of one layer.
#[derive(Parameters)]
pub(super) struct LayerRuns {
    streams: i32,
    hidden: i32,
    #[parameters(skip)]
    hash: RunHash,
    /// All tables, cut into parts, and the first row of each.
    tables: Vec<Embedding>,
    #[parameters(skip)]
    starts: Vec<u64>,
    /// A key for each stream, and a value, side by side.
    key_value_proj: Linear,
    norm_key: RmsNorm,
    norm_query: RmsNorm,
    norm_conv: RmsNorm,
    /// `[kernel, streams · hidden]`, the earliest token first.
    filter: Tensor,
    /// Tokens from one that the convolution reads to the next.
    step: i32,
    /// One over the root of the width.
    scale: Tensor,
    zero: Tensor,
    /// The least that the root is taken of.
    least: Tensor,
}

/// The rows of tables that a token has, by it and those before it.
struct RunHash {
    /// Of a token and of those before it, nearest first.
    factors: Vec<u64>,
    /// Rows of each table, and those before it.
    tables: Vec<(u64, u64)>,
    /// Tables for each length of run.
    heads: usize,
    end: u32,
}

impl RunHash {
    /// Tokens before one that are looked at.
    fn before(&self) -> usize {
        self.factors.len() - 1
    }

    /// The rows of each token after the first ones that are looked at alone.
    fn rows(&self, tokens: &[u32]) -> Vec<u64> {
        let before = self.before();
        let mut rows = Vec::with_capacity((tokens.len() - before) * self.tables.len());
        for place in before..tokens.len() {
            let mut hash = u64::from(tokens[place]) * self.factors[0];
            let mut ended = false;
            for distance in 1..=before {
                ended = ended || tokens[place - distance] == self.end;
                // No token before it and the end itself are the same.
                let token = if ended || distance > place {
                    self.end
                } else {
                    tokens[place - distance]
                };
                hash ^= u64::from(token) * self.factors[distance];
                let tables = &self.tables[(distance - 1) * self.heads..distance * self.heads];
                rows.extend(tables.iter().map(|(count, start)| hash % count + start));
            }
        }
        rows
    }
}

impl LayerRuns {
    /// Loads what stands in `layers.N.ple`: `tables`, `key_proj`, `value_proj`, three norms and `conv1d`; `None` if the
    /// layer has no such tables.
    pub(super) fn load(layer: usize, loading: &mut LoadContext<'_, '_>) -> error::Result<Option<Self>> {
        let Some(config) = &loading.config.layer_runs else {
            return Ok(None);
        };
        let Some(place) = config.layers.iter().position(|other| *other as usize == layer) else {
            return Ok(None);
        };
        let path = |part: &str| format!("layers.{layer}.ple.{part}");
        let (place, norm) = (place as u32, loading.config.norm);
        let streams = loading.config.hyper.map_or(1, |hyper| hyper.streams) as i32;
        let (hidden, width) = (loading.config.hidden_size as i32, config.width as i32);
        let (all, row) = (streams * hidden, width / config.rows_of_token() as i32);
        let weights = &mut *loading.weights;
        let rows = config.rows_of_parts(place);
        let tables = (0..)
            .zip(&rows)
            .map(|(part, rows)| table(&path("tables"), part, *rows as i32, row, weights));
        let tables = tables.collect::<error::Result<Vec<_>>>()?;
        let parts = [(path("key_proj"), all), (path("value_proj"), hidden)];
        let runs = Self {
            streams,
            hidden,
            hash: hash(config, place, loading.config.vocab_size),
            tables,
            starts: starts(&rows).collect(),
            key_value_proj: Linear::load_joined(weights, &parts, width)?,
            norm_key: stream_norm(&path("norm_key"), streams, hidden, norm, weights)?,
            norm_query: stream_norm(&path("norm_query"), streams, hidden, norm, weights)?,
            norm_conv: stream_norm(&path("norm_conv"), streams, hidden, norm, weights)?,
            filter: filter(&path("conv1d.weight"), all, config.kernel as i32, weights)?,
            step: config.longest as i32,
            scale: Tensor::scalar((hidden as f32).powf(-0.5), loading.dtype)?,
            zero: Tensor::scalar(0.0, loading.dtype)?,
            least: Tensor::scalar(1e-6, loading.dtype)?,
        };
        weights.materialize(runs.tensors())?;
        Ok(Some(runs))
    }

    /// An empty cache for the last tokens and what the convolution reads of them.
    pub(super) fn cache() -> Cache {
        Cache::Recurrent(RecurrentCache::default())
    }

    /// Streams `[rows, streams, hidden]` of tokens `[rows]` with what the tables have for them.
    pub(super) fn add(&self, streams: &Tensor, ids: &Tensor, caches: &mut [&mut Cache]) -> Result<Tensor> {
        if recording::is_on() {
            return Err(mlx::Error::Unsupported("a recorded step with runs of tokens".into()));
        }
        let (rows, all) = (streams.dim(0), self.streams * self.hidden);
        let ids = ids.astype(Dtype::Uint32)?;
        let found = each_sequence(caches, |rows, cache| self.find(&rows.of(&ids)?, cache.recurrent()))?;
        let read = self.key_value_proj.forward(&found)?;
        let keys = read.slice(1, 0, all)?.reshape(&[rows, self.streams, self.hidden])?;
        let values = read
            .slice(1, all, all + self.hidden)?
            .reshape(&[rows, 1, self.hidden])?;
        let scores = self.norm_key.forward(&keys)?.mul(&self.norm_query.forward(streams)?)?;
        let gates = self.gates(&scores.sum(2, true)?.mul(&self.scale)?)?;
        let values = gates.mul(&values)?;
        let normed = self.norm_conv.forward(&values)?.reshape(&[rows, all])?;
        let mixed = each_sequence(caches, |rows, cache| {
            self.convolve(&rows.of(&normed)?, cache.recurrent())
        })?;
        let mixed = mixed
            .sigmoid()?
            .mul(&mixed)?
            .reshape(&[rows, self.streams, self.hidden])?;
        streams.add(&values.add(&mixed)?)
    }

    /// The logistic function of the root of scores, which keeps their sign.
    fn gates(&self, scores: &Tensor) -> Result<Tensor> {
        let size = scores.maximum(&scores.negative()?)?.maximum(&self.least)?;
        let root = size.mul(&size.rsqrt()?)?;
        let signed = self.zero.less(scores)?.select(&root, &root.negative()?)?;
        let none = scores
            .greater_equal(&self.zero)?
            .mul(&self.zero.greater_equal(scores)?)?;
        none.select(&self.zero, &signed)?.sigmoid()
    }

    /// The entries of the tables for the next tokens of a sequence, `[length, width]`. Rows are computed on the host, because
    /// most tables are in parts that no token needs.
    fn find(&self, ids: &Tensor, cache: &mut RecurrentCache) -> Result<Tensor> {
        let before = self.hash.before();
        let mut tokens = match &cache.state {
            Some(last) => last.astype(Dtype::Uint32)?.to_u32()?,
            None => vec![self.hash.end; before],
        };
        tokens.extend(ids.to_u32()?);
        let last = &tokens[tokens.len() - before..];
        // More axes than the convolution's rows, by which the two are told apart.
        cache.state = Some(ids_tensor(last).reshape(&[before as i32, 1, 1])?);
        let rows = self.hash.rows(&tokens);
        let part_of = |row: u64| self.starts.partition_point(|start| *start <= row) - 1;
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by_key(|index| part_of(rows[*index]));
        let mut found = Vec::new();
        for group in order.chunk_by(|one, other| part_of(rows[*one]) == part_of(rows[*other])) {
            let part = part_of(rows[group[0]]);
            let local: Vec<u32> = group
                .iter()
                .map(|index| (rows[*index] - self.starts[part]) as u32)
                .collect();
            found.push(self.tables[part].forward(&ids_tensor(&local))?);
        }
        let found = join(&found, 0)?;
        let mut places = vec![0; order.len()];
        for (place, index) in order.iter().enumerate() {
            places[*index] = place as u32;
        }
        found.take(&ids_tensor(&places), 0)?.reshape(&[ids.dim(0), -1])
    }

    /// The sums of the next tokens `[length, channels]` of a sequence and of earlier ones.
    fn convolve(&self, x: &Tensor, cache: &mut RecurrentCache) -> Result<Tensor> {
        let (length, kernel, channels) = (x.dim(0), self.filter.dim(0), x.dim(1));
        cache.advance(length as usize);
        let before = (kernel - 1) * self.step;
        let earlier = match cache.conv.take() {
            Some(earlier) => earlier,
            None => Tensor::zeros(&[before, channels], x.dtype())?,
        };
        let all = concatenate(&[&earlier, x], 0)?;
        // A slice keeps the complete tensor that it was cut from alive.
        cache.conv = Some(all.slice(0, length, length + before)?.contiguous()?);
        let part = |row: i32| {
            let first = row * self.step;
            all.slice(0, first, first + length)?
                .mul(&self.filter.slice(0, row, row + 1)?)
        };
        (1..kernel).try_fold(part(0)?, |sum, row| sum.add(&part(row)?))
    }
}

/// The hash of the `place`th layer that has tables.
fn hash(config: &LayerRunsConfig, place: u32, vocabulary: u32) -> RunHash {
    let counts = config.tables(place);
    RunHash {
        factors: config.factors(place, vocabulary),
        tables: counts.iter().copied().zip(starts(&counts)).collect(),
        heads: config.heads as usize,
        end: config.end,
    }
}

/// The start of each of these if they lie one after another.
fn starts(counts: &[u64]) -> impl Iterator<Item = u64> + '_ {
    counts.iter().scan(0, |end, count| {
        let start = *end;
        *end += count;
        Some(start)
    })
}

/// A part of the tables, `tables.N`, or `tables.shard_N` in original files.
fn table(path: &str, part: u32, rows: i32, width: i32, weights: &mut Weights<'_>) -> error::Result<Embedding> {
    let original = format!("{path}.shard_{part}");
    match weights.has(&format!("{original}.weight")) {
        true => Embedding::load(weights, &original, rows, width),
        false => Embedding::load(weights, &format!("{path}.{part}"), rows, width),
    }
}

/// A norm of each stream, with factors side by side.
fn stream_norm(
    path: &str,
    streams: i32,
    hidden: i32,
    norm: NormConfig,
    weights: &mut Weights<'_>,
) -> error::Result<RmsNorm> {
    let factors = norm_weight(weights, path, streams * hidden, norm)?;
    Ok(RmsNorm::new(factors.reshape(&[streams, hidden])?, norm.eps))
}

/// The filter `[kernel, channels]`, stored as `[channels, kernel, 1]`, or `[channels, 1, kernel]` in original files.
fn filter(name: &str, channels: i32, kernel: i32, weights: &mut Weights<'_>) -> error::Result<Tensor> {
    let original = weights.any(|other, shape| other == name && shape == [channels, 1, kernel]);
    let shape = if original {
        [channels, 1, kernel]
    } else {
        [channels, kernel, 1]
    };
    let stored = weights.take(name, &shape)?.reshape(&[channels, kernel])?;
    Ok(stored.swapaxes(0, 1)?.contiguous()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_run_goes_beyond_the_end_of_a_text() {
        let hash = RunHash {
            factors: vec![3, 5, 7],
            tables: vec![(101, 0), (103, 101)],
            heads: 1,
            end: 2,
        };
        let of = |tokens: &[u32]| hash.rows(tokens);
        let row = |token: u64, one: u64, two: u64| {
            let short = (3 * token) ^ (5 * one);
            [short % 101, (short ^ (7 * two)) % 103 + 101]
        };
        assert_eq!(of(&[8, 9, 4]), row(4, 9, 8));
        assert_eq!(of(&[8, 2, 4]), row(4, 2, 2));
        assert_eq!(
            of(&[2, 9, 4, 2, 6]),
            [row(4, 9, 2), row(2, 4, 9), row(6, 2, 2)].concat()
        );
    }
}
