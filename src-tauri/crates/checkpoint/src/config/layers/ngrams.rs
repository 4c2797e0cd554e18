//! Tables of short runs of tokens, which are added to the embeddings (LongCat Flash Lite).

use crate::config::limits::{check_nonzero, check_range};
use crate::error::{unusable, Error};

/// The tables: for each length of a run several, whose rows are remainders of what the run's tokens make together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NgramConfig {
    /// Rows of the first table, less one; each of the others has two more than the one before.
    pub rows: u64,
    /// The longest run (`emb_neighbor_num`).
    pub neighbors: u32,
    /// Tables for each length (`emb_split_num`).
    pub splits: u32,
    /// Width of a row.
    pub width: u32,
    /// The token that no run goes beyond.
    pub end: Option<u32>,
    /// True if embeddings count as they are, beside the part that rows of the tables have in a mean (LongCat Flash with
    /// an index).
    pub beside: bool,
}

/// The most rows of a table: numbers of rows are 32 bit.
const MOST_ROWS: u64 = 1 << 31;

impl NgramConfig {
    /// How many tables there are.
    pub fn tables(&self) -> u32 {
        (self.neighbors - 1) * self.splits
    }

    /// Rows of a table.
    pub fn rows_of(&self, table: u32) -> u64 {
        self.rows + 2 * u64::from(table) + 1
    }

    /// Factors of the tokens before one, nearest first, for a run of this many tokens in a table.
    pub fn factors(&self, table: u32, run: u32, vocabulary: u32) -> Vec<u64> {
        let rows = self.rows_of(table);
        let powers = std::iter::successors(Some(1u64), |power| Some(power * u64::from(vocabulary) % rows));
        powers.skip(1).take(run as usize - 1).collect()
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        check_range("emb_neighbor_num", self.neighbors, 2..=8)?;
        check_range("emb_split_num", self.splits, 1..=16)?;
        check_nonzero("emb_split_num", self.width)?;
        if self.rows == 0 || self.rows_of(self.tables()) >= MOST_ROWS {
            return unusable(
                "ngram_vocab_size_ratio",
                format!("it makes tables of {} rows", self.rows),
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_powers_of_the_vocabulary_by_remainder() {
        let config = NgramConfig {
            rows: 30,
            neighbors: 4,
            splits: 2,
            width: 4,
            end: Some(2),
            beside: false,
        };
        assert_eq!((config.tables(), config.rows_of(0), config.rows_of(5)), (6, 31, 41));
        assert_eq!(config.factors(5, 4, 10), [10, 18, 16]);
        assert_eq!(config.factors(0, 2, 40), [9]);
    }
}
