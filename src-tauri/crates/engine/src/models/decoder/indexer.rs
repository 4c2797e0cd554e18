//! The index of sparse attention over latents (DeepSeek V3.2): small heads score every position by a key of its own, and
//! a query looks at those of the highest scores. Keys of the index lie in the cache beside those that turn.

use checkpoint::config::mla::IndexerConfig;
use mlx::ops::concatenate;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::cache::seen;
use crate::error;
use crate::layers::{top_k_indices, LayerNorm, Linear, RmsNorm};
use crate::models::decoder::by_head::by_head;
use crate::models::decoder::load_context::LoadContext;
use crate::models::decoder::norm::Norm;
use crate::models::decoder::step::{Chosen, Step};

/// The index of one layer.
#[derive(Parameters)]
pub struct Indexer {
    heads: i32,
    width: i32,
    top_k: i32,
    rope: usize,
    /// Numbers of a head before those that turn, if these are the last ones.
    still: Option<i32>,
    /// From the short vector of a query to the heads.
    wq_b: Linear,
    /// wk and weights_proj side by side.
    projection: Linear,
    k_norm: Norm,
    /// Positions that are always chosen: from the first one on, and up to a query's own.
    always: Option<(i32, i32)>,
    /// Their score.
    best: Tensor,
    zero: Tensor,
    one: Tensor,
    /// The score of a position that is not seen.
    nothing: Tensor,
}

/// The queries of the rows of a step for the index.
pub struct IndexQuery {
    /// `[1, heads, length, width]`, or `[sequences, heads, 1, width]`.
    pub queries: Tensor,
    /// How much each head counts, the same with a width of 1.
    pub weights: Tensor,
}

impl Indexer {
    /// Loads what stands below `path`: `wq_b`, `wk`, `weights_proj` and `k_norm`. `rank` is the width of a query's short
    /// vector.
    pub fn load(
        config: IndexerConfig,
        rank: i32,
        path: &str,
        loading: &mut LoadContext<'_, '_>,
    ) -> error::Result<Self> {
        let name = |part: &str| format!("{path}.{part}");
        let (heads, width, hidden) = (
            config.heads as i32,
            config.head_dim as i32,
            loading.config.hidden_size as i32,
        );
        let parts = [(name("wk"), width), (name("weights_proj"), heads)];
        let scalar = |value| Tensor::scalar(value, loading.dtype);
        let (zero, one, nothing) = (scalar(0.0)?, scalar(1.0)?, scalar(f32::NEG_INFINITY)?);
        let best = scalar(f32::INFINITY)?;
        let k_norm = match config.rms {
            true => Norm::Rms(RmsNorm::load(loading.weights, &name("k_norm"), width, config.eps)?),
            false => Norm::Layer(LayerNorm::load(loading.weights, &name("k_norm"), width, config.eps)?),
        };
        let always = (config.first as i32, config.near as i32);
        Ok(Self {
            heads,
            width,
            top_k: config.top_k as i32,
            rope: config.rope,
            still: config
                .turns_last
                .then(|| width - loading.config.ropes[config.rope].dims as i32),
            wq_b: Linear::load(loading.weights, &name("wq_b"), rank, heads * width)?,
            projection: Linear::load_joined(loading.weights, &parts, hidden)?,
            k_norm,
            always: (always != (0, 0)).then_some(always),
            best,
            zero,
            one,
            nothing,
        })
    }

    /// Width of its keys.
    pub fn width(&self) -> i32 {
        self.width
    }

    /// For rows `x` `[rows, hidden]` and the short vectors of their queries their keys, `[1, 1, length, width]` or
    /// `[sequences, 1, 1, width]`, and what they ask.
    pub(super) fn read(&self, x: &Tensor, squeezed: &Tensor, step: &Step<'_>) -> Result<(Tensor, IndexQuery)> {
        let sequences = step.sequences as i32;
        let both = self.projection.forward(x)?;
        let turned = |heads: &Tensor| self.turn(heads, step);
        let key = self.k_norm.forward(&both.slice(1, 0, self.width)?)?;
        let weights = both.slice(1, self.width, self.width + self.heads)?;
        let queries = by_head(&self.wq_b.forward(squeezed)?, self.heads, sequences)?;
        let query = IndexQuery {
            queries: turned(&queries)?,
            weights: by_head(&weights, self.heads, sequences)?,
        };
        Ok((turned(&by_head(&key, 1, sequences)?)?, query))
    }

    /// Heads `[…, width]` whose numbers have turned. Those that keep still come last, in keys as in queries.
    fn turn(&self, heads: &Tensor, step: &Step<'_>) -> Result<Tensor> {
        let turned = |heads: &Tensor| step.ropes[self.rope].forward(heads, &step.rotations[self.rope]);
        match self.still {
            None => turned(heads),
            Some(still) => {
                let turning = turned(&heads.slice(3, still, self.width)?)?;
                concatenate(&[&turning, &heads.slice(3, 0, still)?], 3)
            }
        }
    }

    /// The positions that queries of one sequence look at, by the keys `[1, 1, positions, width]` of all.
    pub(super) fn choose(&self, queries: &Tensor, weights: &Tensor, keys: &Tensor) -> Result<Chosen> {
        let (length, positions) = (queries.dim(2), keys.dim(2));
        if positions <= self.top_k {
            return Ok(Chosen::All);
        }
        // A factor of all scores would choose the same.
        let scores = queries.matmul(&keys.swapaxes(2, 3)?)?.maximum(&self.zero)?;
        let scores = scores.mul(weights)?.sum(1, false)?.reshape(&[length, positions])?;
        let scores = match self.always {
            Some(always) => self.always(always, length, positions)?.select(&self.best, &scores)?,
            None => scores,
        };
        if length == 1 {
            let chosen = top_k_indices(&scores, self.top_k)?;
            return Ok(Chosen::Of(chosen.reshape(&[self.top_k])?));
        }
        let seen = seen(positions - length, length, None, None)?;
        let chosen = top_k_indices(&seen.select(&scores, &self.nothing)?, self.top_k)?;
        let marks = Tensor::zeros(&[length, positions], scores.dtype())?.put_along(&chosen, &self.one, 1)?;
        Ok(Chosen::Marked(marks.greater(&self.zero)?.mul(&seen)?))
    }

    /// Marks the `first` positions and the `near` ones up to each of the last `length`, `[length, positions]`.
    fn always(&self, (first, near): (i32, i32), length: i32, positions: i32) -> Result<Tensor> {
        let numbers: Vec<i32> = (0..positions).collect();
        let keys = Tensor::from_i32(&numbers, &[1, positions]);
        let oldest: Vec<i32> = (positions - length..positions).map(|own| own - near).collect();
        let close = keys.greater(&Tensor::from_i32(&oldest, &[length, 1]))?;
        let begins = Tensor::from_i32(&[first], &[1, 1]).greater(&keys)?;
        begins.select(&begins, &close)
    }
}
