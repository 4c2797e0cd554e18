//! An index that chooses the positions that softmax attention looks at, of either kind.

use checkpoint::config::decoder::AttentionConfig;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::cache::Cache;
use crate::error;
use crate::layers::each_sequence;
use crate::models::decoder::block_index::{BlockIndex, BlockQuery};
use crate::models::decoder::load_context::LoadContext;
use crate::models::decoder::mean_index::{MeanIndex, MeanQuery};
use crate::models::decoder::step::Step;

/// The index of one layer.
#[derive(Parameters)]
pub(super) enum AttentionIndex {
    /// By the best position of a block.
    Blocks(BlockIndex),
    /// By the mean of a block.
    Means(MeanIndex),
}

/// The queries and keys of the rows of a step.
pub(super) enum AttentionIndexQuery {
    Blocks(BlockQuery),
    Means(MeanQuery),
}

impl AttentionIndex {
    /// The index of attention below `path`, if it has one.
    pub(super) fn load(
        config: &AttentionConfig,
        path: &str,
        loading: &mut LoadContext<'_, '_>,
    ) -> error::Result<Option<Self>> {
        if let Some(index) = &config.mean_index {
            return Ok(Some(Self::Means(MeanIndex::load(index, path, loading)?)));
        }
        let index = config.block_index.as_ref();
        let index = index.map(|index| BlockIndex::load(index, path, loading)).transpose()?;
        Ok(index.map(Self::Blocks))
    }

    /// Its empty cache.
    pub(super) fn cache(&self) -> Cache {
        match self {
            Self::Blocks(_) => BlockIndex::cache(),
            Self::Means(_) => MeanIndex::cache(),
        }
    }

    /// The query of rows whose projections `[rows, …]` end with what it reads, and the rest of these.
    pub(super) fn split(&self, projected: &Tensor, step: &Step<'_>) -> Result<(Tensor, AttentionIndexQuery)> {
        let own = match self {
            Self::Blocks(index) => index.projected(),
            Self::Means(index) => index.projected(),
        };
        let all = projected.dim(1);
        let read = projected.slice(1, all - own, all)?;
        let asked = match self {
            Self::Blocks(index) => AttentionIndexQuery::Blocks(index.read(&read, step)?),
            Self::Means(index) => AttentionIndexQuery::Means(index.read(&read, step)?),
        };
        Ok((projected.slice(1, 0, all - own)?, asked))
    }

    /// Attention of each sequence to the positions that the index chooses, `[rows, heads · value width]`, with the caches
    /// of its keys and values and those of the index.
    pub(super) fn attend(
        &self,
        asked: &AttentionIndexQuery,
        (queries, keys, values): (&Tensor, &Tensor, &Tensor),
        (step, scale, mask): (&Step<'_>, f32, usize),
        (caches, of_index): (&mut [&mut Cache], &mut [&mut Cache]),
    ) -> Result<Tensor> {
        let mask = &step.masks[mask];
        each_sequence(caches, |rows, cache| {
            let seen = cache.update(&rows.of(keys)?, &rows.of(values)?)?;
            let (read, own) = ((&rows.of(queries)?, &seen), &mut of_index[rows.index()]);
            match (self, asked) {
                (Self::Blocks(index), AttentionIndexQuery::Blocks(asked)) => {
                    let index_keys = own.update_index(&rows.of(&asked.keys)?)?;
                    index.attend((&rows.of(&asked.queries)?, &index_keys), read, scale, mask)
                }
                (Self::Means(index), AttentionIndexQuery::Means(asked)) => {
                    index.attend((asked, own.recurrent()), read, scale, mask, (step, rows))
                }
                _ => unreachable!("it was asked by itself"),
            }
        })
    }
}
