//! Byte ranges of a file.

use std::ops::Range;

use rangemap::RangeSet;
use serde::{Deserialize, Serialize};

/// A set of bytes of one file, as ranges that neither overlap nor touch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(u64, u64)>", into = "Vec<(u64, u64)>")]
pub struct ByteRanges(RangeSet<u64>);

impl ByteRanges {
    /// Adds a range; an empty one adds nothing.
    pub fn insert(&mut self, range: Range<u64>) {
        if !range.is_empty() {
            self.0.insert(range);
        }
    }

    /// The number of bytes.
    pub fn total(&self) -> u64 {
        self.0.iter().map(|range| range.end - range.start).sum()
    }

    /// The number of bytes without a gap from the beginning.
    pub fn prefix_end(&self) -> u64 {
        self.0
            .first()
            .filter(|range| range.start == 0)
            .map_or(0, |range| range.end)
    }

    /// One past the last byte.
    pub fn end(&self) -> u64 {
        self.0.last().map_or(0, |range| range.end)
    }

    /// The missing ranges of a file of `size` bytes, in order.
    pub fn missing(&self, size: u64) -> Vec<Range<u64>> {
        if size == 0 {
            return Vec::new();
        }
        self.0.gaps(&(0..size)).collect()
    }

    /// True if a file of `size` bytes is complete.
    pub fn covers(&self, size: u64) -> bool {
        size == 0 || self.prefix_end() >= size
    }
}

impl From<Vec<(u64, u64)>> for ByteRanges {
    fn from(pairs: Vec<(u64, u64)>) -> Self {
        let mut ranges = Self::default();
        for (start, end) in pairs {
            ranges.insert(start..end);
        }
        ranges
    }
}

impl From<ByteRanges> for Vec<(u64, u64)> {
    fn from(ranges: ByteRanges) -> Self {
        ranges.0.into_iter().map(|range| (range.start, range.end)).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_ranges_in_any_order_are_the_set_of_their_bytes(
            pairs in prop::collection::vec((0_u64..64, 0_u64..16), 0..24),
        ) {
            let mut ranges = ByteRanges::default();
            let mut bytes = [false; 80];
            for (start, length) in pairs {
                ranges.insert(start..start + length);
                bytes[start as usize..(start + length) as usize].fill(true);
            }
            prop_assert_eq!(ranges.total(), bytes.iter().filter(|there| **there).count() as u64);
            prop_assert_eq!(ranges.prefix_end(), bytes.iter().take_while(|there| **there).count() as u64);
            let mut missing = [true; 80];
            for gap in ranges.missing(80) {
                prop_assert!(!gap.is_empty());
                missing[gap.start as usize..gap.end as usize].fill(false);
            }
            prop_assert_eq!(missing, bytes);
            prop_assert_eq!(ranges.covers(80), ranges.missing(80).is_empty());
            let kept: ByteRanges = serde_json::from_str(&serde_json::to_string(&ranges).unwrap()).unwrap();
            prop_assert_eq!(kept, ranges);
        }
    }
}
