//! Tables of short runs of tokens, whose rows are added to the embeddings (LongCat Flash Lite). A run does not go beyond
//! the end of a text. The tokens that a sequence has read lie in a cache beside those of its layers.

use checkpoint::config::decoder::{DecoderConfig, NgramConfig};
use mlx::ops::{concatenate, stack};
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{recording, Dtype, Result};

use crate::cache::{Cache, PlainCache};
use crate::error;
use crate::layers::{each_sequence, Embedding, Linear};
use crate::weights::Weights;

/// The tables of a model.
#[derive(Parameters)]
pub(super) struct Ngrams {
    /// Tokens before one that are looked at.
    before: i32,
    /// The token that no run goes beyond, and the one that stands for those before it.
    end: Option<Tensor>,
    nothing: Tensor,
    tables: Vec<Table>,
    /// The projection of what all of them have, side by side, if each has none of its own.
    projection: Option<Linear>,
    /// True if embeddings are no part of the mean.
    beside: bool,
    /// The part that each of them has in the sum.
    share: Tensor,
    /// The place of its cache among those of a sequence.
    place: usize,
}

/// One table.
#[derive(Parameters)]
struct Table {
    /// Factors of the tokens before one, nearest first, and the number of rows, in 64 bits.
    factors: Vec<Tensor>,
    rows: Tensor,
    embedding: Embedding,
    projection: Option<Linear>,
}

impl Ngrams {
    /// Loads `ngram_embeddings` with `embedders`, and `post_projs` or `post_proj`, if the model has such tables.
    pub(super) fn load(config: &DecoderConfig, place: usize, weights: &mut Weights<'_>) -> error::Result<Option<Self>> {
        let Some(ngrams) = config.ngrams else { return Ok(None) };
        let hidden = config.hidden_size as i32;
        let joined = "ngram_embeddings.post_proj";
        let all = (ngrams.tables() * ngrams.width) as i32;
        let projection = match weights.has(&format!("{joined}.weight")) {
            true => Some(Linear::load(weights, joined, all, hidden)?),
            false => None,
        };
        let own = projection.is_none().then_some(hidden);
        let tables = (0..ngrams.tables()).map(|table| Table::load(&ngrams, table, config.vocab_size, own, weights));
        let tables: Vec<Table> = tables.collect::<error::Result<_>>()?;
        let dtype = weights.dtype("norm.weight");
        let ngrams = Self {
            before: ngrams.neighbors as i32 - 1,
            end: ngrams.end.map(|end| Tensor::from_i32(&[end as i32], &[1])),
            beside: ngrams.beside,
            projection,
            nothing: Tensor::from_i32(&[0], &[1]),
            share: Tensor::scalar(1.0 / (1 + tables.len()) as f32, dtype)?,
            tables,
            place,
        };
        weights.materialize(ngrams.tensors())?;
        Ok(Some(ngrams))
    }

    /// An empty cache for the tokens of a sequence.
    pub(super) fn cache() -> Cache {
        Cache::Mla(PlainCache::default())
    }

    /// The place of that cache.
    pub(super) fn place(&self) -> usize {
        self.place
    }

    /// The mean of embeddings `[rows, hidden]` of tokens `[rows]` and what the tables have for the runs that these end,
    /// or embeddings and their part in that mean.
    pub(super) fn add(&self, embedded: &Tensor, ids: &Tensor, caches: &mut [&mut Cache]) -> Result<Tensor> {
        if recording::is_on() {
            return Err(mlx::Error::Unsupported("a recorded step with runs of tokens".into()));
        }
        let ids = ids.astype(Dtype::Int32)?;
        let before = each_sequence(caches, |rows, cache| self.before(&rows.of(&ids)?, cache))?;
        let wide = |x: &Tensor| x.astype(Dtype::Int64);
        let (ids, before) = (wide(&ids)?, wide(&before)?);
        let before: Vec<Tensor> = (0..self.before)
            .map(|place| before.slice(1, place, place + 1)?.reshape(&[before.dim(0)]))
            .collect::<Result<_>>()?;
        let found = |table: &Table| {
            let mut run = table.factors.iter().zip(&before);
            let run = run.try_fold(ids.clone(), |sum, (factor, token)| sum.add(&token.mul(factor)?))?;
            let found = table.embedding.forward(&remainder(&run, &table.rows)?)?;
            table
                .projection
                .as_ref()
                .map_or(Ok(found.clone()), |projection| projection.forward(&found))
        };
        let found: Vec<Tensor> = self.tables.iter().map(found).collect::<Result<_>>()?;
        let found = match &self.projection {
            Some(projection) => vec![projection.forward(&concatenate(&found.iter().collect::<Vec<_>>(), 1)?)?],
            None => found,
        };
        let sum = |first: Tensor, rest: &[Tensor]| rest.iter().try_fold(first, |sum, part| sum.add(part));
        match (self.beside, &found[..]) {
            (true, [first, rest @ ..]) => embedded.add(&sum(first.clone(), rest)?.mul(&self.share)?),
            (_, all) => sum(embedded.clone(), all)?.mul(&self.share),
        }
    }

    /// The tokens before each of the next ones `[length]` of a sequence, nearest first, `[length, before]`.
    fn before(&self, ids: &Tensor, cache: &mut Cache) -> Result<Tensor> {
        let length = ids.dim(0);
        let all = cache.update_index(&ids.reshape(&[1, 1, length, 1])?)?;
        let positions = all.dim(2);
        let known = positions.min(length + self.before);
        let known = all.slice(2, positions - known, positions)?.reshape(&[known])?;
        let missing = length + self.before - known.dim(0);
        let known = match missing {
            0 => known,
            _ => concatenate(&[&Tensor::zeros(&[missing], Dtype::Int32)?, &known], 0)?,
        };
        let mut beyond: Option<Tensor> = None;
        let mut rows = Vec::new();
        for place in 1..=self.before {
            let start = self.before - place;
            let token = known.slice(0, start, start + length)?;
            let Some(end) = &self.end else {
                rows.push(token);
                continue;
            };
            let ends = token.greater_equal(end)?.mul(&end.greater_equal(&token)?)?;
            let ended = match beyond {
                Some(beyond) => beyond.select(&beyond, &ends)?,
                None => ends,
            };
            rows.push(ended.select(&self.nothing, &token)?);
            beyond = Some(ended);
        }
        stack(&rows.iter().collect::<Vec<_>>(), 1)
    }
}

/// Remainders of numbers of 64 bits by another one, in 32 bits.
fn remainder(numbers: &Tensor, by: &Tensor) -> Result<Tensor> {
    numbers.sub(&numbers.floor_divide(by)?.mul(by)?)?.astype(Dtype::Int32)
}

impl Table {
    fn load(
        config: &NgramConfig,
        table: u32,
        vocabulary: u32,
        hidden: Option<i32>,
        weights: &mut Weights<'_>,
    ) -> error::Result<Self> {
        let wide = |number: u64| Tensor::from_i32(&[number as i32], &[1]).astype(Dtype::Int64);
        let (rows, width) = (config.rows_of(table), config.width as i32);
        let factors = config.factors(table, 2 + table / config.splits, vocabulary);
        let path = |part: &str| format!("ngram_embeddings.{part}.{table}");
        Ok(Self {
            factors: factors.into_iter().map(wide).collect::<Result<_>>()?,
            rows: wide(rows)?,
            embedding: Embedding::load(weights, &path("embedders"), rows as i32, width)?,
            projection: match hidden {
                Some(hidden) => Some(Linear::load(weights, &path("post_projs"), width, hidden)?),
                None => None,
            },
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use mlx::device::connect;

    use super::*;

    #[test]
    fn sums_beyond_32_bits_keep_their_remainders() {
        connect().unwrap();
        let wide = |number: i32| Tensor::from_i32(&[number], &[1]).astype(Dtype::Int64).unwrap();
        let (token, factor, rows) = (131_071, 10_223_613, 10_223_617);
        let product = wide(token).mul(&wide(factor)).unwrap();
        let found = remainder(&product, &wide(rows)).unwrap();
        let expected = i64::from(token) * i64::from(factor) % i64::from(rows);
        assert_eq!(
            found.astype(Dtype::Float32).unwrap().to_f32().unwrap(),
            [expected as f32]
        );
    }

    #[test]
    fn runs_do_not_go_beyond_the_end_of_a_text_in_one_pass_or_several() {
        connect().unwrap();
        let ngrams = Ngrams {
            before: 2,
            end: Some(Tensor::from_i32(&[2], &[1])),
            nothing: Tensor::from_i32(&[0], &[1]),
            tables: Vec::new(),
            projection: None,
            beside: false,
            share: Tensor::scalar(1.0, Dtype::Float32).unwrap(),
            place: 0,
        };
        let expected = [0.0, 0.0, 7.0, 0.0, 5.0, 7.0, 0.0, 0.0, 9.0, 0.0, 4.0, 9.0];
        for cuts in [vec![6], vec![1; 6], vec![1, 3, 2], vec![4, 2]] {
            let (mut cache, mut found, mut start) = (Ngrams::cache(), Vec::new(), 0);
            for length in cuts {
                let ids = Tensor::from_i32(&[7, 5, 2, 9, 4, 1][start..start + length], &[length as i32]);
                let before = ngrams.before(&ids, &mut cache).unwrap();
                found.extend(before.astype(Dtype::Float32).unwrap().to_f32().unwrap());
                start += length;
            }
            assert_eq!(found, expected);
        }
    }
}
