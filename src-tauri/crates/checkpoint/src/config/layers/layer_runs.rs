//! Tables of short runs of tokens that a layer reads before its mixer, `ple` (Qwen 4). A token has several rows for each
//! length of run that ends with it; their numbers are remainders of a hash by primes.

use crate::config::limits::{check_kernel, check_nonzero, check_range, check_width};
use crate::error::{unusable, Error};
use crate::memory::Part;

/// The tables of a decoder's layers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerRunsConfig {
    /// Numbers of the layers that have such tables, counted from 0 and rising (`ple_layer_ids`, which count from 1).
    pub layers: Vec<u32>,
    /// Width of all rows of a token side by side (`ple_embed_dim`).
    pub width: u32,
    /// The longest run (`ngram_size`).
    pub longest: u32,
    /// Rows for each length of run (`heads_per_ngram`).
    pub heads: u32,
    /// No table has fewer rows (`ngram_vocab_size_base`).
    pub rows: u32,
    /// Rows of all tables of a layer are filled up to a multiple of this (`make_ngram_vocab_size_divisible_by`).
    pub multiple: u32,
    /// Tensors that these rows are cut into (`split_ngram_parts`).
    pub parts: u32,
    /// The beginning of all factors of the hash (`seed`).
    pub seed: u64,
    /// Tokens that the convolution reads, each as many before the next as the longest run has (`ple_conv_kernel_size`).
    pub kernel: u32,
    /// The token that no run goes beyond, which stands for those before it (`eos_token_id`).
    pub end: u32,
}

/// The most rows of one tensor.
const MOST_ROWS: u64 = 1 << 31;

/// By how much the seeds of two layers differ.
const LAYER_SEED: u64 = 10_007;

impl LayerRunsConfig {
    /// Rows of a token.
    pub fn rows_of_token(&self) -> u32 {
        (self.longest - 1) * self.heads
    }

    /// Rows of each table of the `place`th layer that has such tables: primes, which no two tables share.
    pub fn tables(&self, place: u32) -> Vec<u64> {
        let count = self.rows_of_token();
        let primes = (u64::from(self.rows)..).filter(|number| is_prime(*number));
        primes.skip((place * count) as usize).take(count as usize).collect()
    }

    /// Rows of each tensor that the tables of that layer are cut into.
    pub fn rows_of_parts(&self, place: u32) -> Vec<u64> {
        let all: u64 = self.tables(place).iter().sum();
        let all = all.next_multiple_of(self.multiple.into());
        let (parts, rest) = (u64::from(self.parts), all % u64::from(self.parts));
        (0..parts).map(|part| all / parts + u64::from(part < rest)).collect()
    }

    /// The odd factors of a token and of those before it, for a vocabulary of so many tokens.
    pub fn factors(&self, place: u32, vocabulary: u32) -> Vec<u64> {
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let half = ((i64::MAX as u64 / u64::from(vocabulary.max(1))) / 2).max(1);
        let seed = self.seed.wrapping_add(LAYER_SEED * u64::from(place));
        let number = |index: u32| {
            mixed(
                seed.wrapping_add(STEP.wrapping_mul(u64::from(index) + 1))
                    .wrapping_add(STEP),
            )
        };
        (0..self.longest).map(|index| 2 * (number(index) % half) + 1).collect()
    }

    pub(crate) fn check(&self, layers: usize, hidden: u32, streams: u32) -> Result<(), Error> {
        check_range("ngram_size", self.longest, 2..=8)?;
        check_range("heads_per_ngram", self.heads, 1..=64)?;
        check_range("split_ngram_parts", self.parts, 1..=4096)?;
        check_nonzero("make_ngram_vocab_size_divisible_by", self.multiple)?;
        check_width("make_ngram_vocab_size_divisible_by", self.multiple.into())?;
        check_range("ngram_vocab_size_base", self.rows, 2..=1 << 30)?;
        check_kernel("ple_conv_kernel_size", self.kernel)?;
        check_width("ple_embed_dim", self.width.into())?;
        check_width("ple_embed_dim", u64::from(hidden) * u64::from(streams))?;
        if self.width == 0 || !self.width.is_multiple_of(self.rows_of_token()) {
            let reason = format!("{} numbers are not those of {} rows", self.width, self.rows_of_token());
            return unusable("ple_embed_dim", reason);
        }
        if self.layers.iter().any(|layer| *layer as usize >= layers) {
            return unusable("ple_layer_ids", format!("the model has {layers} layers"));
        }
        for place in 0..self.layers.len() as u32 {
            let rows = self.rows_of_parts(place);
            if rows.iter().any(|rows| *rows == 0 || *rows >= MOST_ROWS) {
                return unusable("split_ngram_parts", "it makes tensors without rows, or with too many");
            }
        }
        Ok(())
    }

    /// The matrices of the `place`th layer.
    pub(crate) fn weights(&self, place: u32, hidden: u64, streams: u64) -> Vec<Part> {
        let row = u64::from(self.width / self.rows_of_token());
        let tables = self
            .rows_of_parts(place)
            .into_iter()
            .map(|rows| Part::matrix(rows, row));
        let projections = Part::matrix((streams + 1) * hidden, self.width.into());
        tables
            .chain([projections, Part::plain(streams * hidden, self.kernel.into())])
            .collect()
    }

    /// Numbers that a layer carries from token to token.
    pub(crate) fn carried(&self, hidden: u64, streams: u64) -> u64 {
        u64::from(self.kernel - 1) * u64::from(self.longest) * hidden * streams
    }
}

/// True if nothing but 1 and the number itself divides it.
fn is_prime(number: u64) -> bool {
    number >= 2
        && (2..)
            .take_while(|divisor| divisor * divisor <= number)
            .all(|divisor| !number.is_multiple_of(divisor))
}

/// The last steps of SplitMix64.
fn mixed(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> LayerRunsConfig {
        LayerRunsConfig {
            layers: vec![0, 2],
            width: 32,
            longest: 3,
            heads: 2,
            rows: 30,
            multiple: 16,
            parts: 5,
            seed: 1234,
            kernel: 4,
            end: 2,
        }
    }

    #[test]
    fn tables_have_primes_of_rows_that_no_other_has() {
        let config = config();
        assert_eq!(config.tables(0), [31, 37, 41, 43]);
        assert_eq!(config.tables(1), [47, 53, 59, 61]);
        // 152 rows, filled up to 160.
        assert_eq!(config.rows_of_parts(0), [32; 5]);
        let uneven = LayerRunsConfig { parts: 3, ..config };
        assert_eq!(uneven.rows_of_parts(0), [54, 53, 53]);
    }

    #[test]
    fn factors_are_odd_and_no_product_with_a_token_has_a_sign() {
        for place in 0..3 {
            let factors = config().factors(place, 248_320);
            assert_eq!(factors.len(), 3);
            assert!(factors
                .iter()
                .all(|factor| factor % 2 == 1 && factor * 248_319 <= i64::MAX as u64));
        }
    }
}
