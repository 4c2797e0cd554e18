//! The missing ranges of one file, shared among its connections.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::byte_ranges::ByteRanges;

/// The ranges of one file that are still to be fetched, in order. A connection takes one at a time.
#[derive(Debug)]
pub struct RangeAllocator(Mutex<VecDeque<Range<u64>>>);

impl RangeAllocator {
    /// The ranges that `there` lacks of a file of `size` bytes, cut into parts of at most `part` bytes.
    pub fn new(there: &ByteRanges, size: u64, part: u64) -> Self {
        let mut parts = VecDeque::new();
        for gap in there.missing(size) {
            let mut at = gap.start;
            while at < gap.end {
                let end = at.saturating_add(part.max(1)).min(gap.end);
                parts.push_back(at..end);
                at = end;
            }
        }
        Self(Mutex::new(parts))
    }

    /// Takes the first range.
    pub fn take(&self) -> Option<Range<u64>> {
        self.lock().pop_front()
    }

    /// Returns the rest of a range that was not fetched.
    pub fn give_back(&self, rest: Range<u64>) {
        if !rest.is_empty() {
            let mut parts = self.lock();
            let place = parts.partition_point(|part| part.start < rest.start);
            parts.insert(place, rest);
        }
    }

    /// Removes all ranges, because one connection brings the whole file.
    pub fn clear(&self) {
        self.lock().clear();
    }

    /// The number of ranges.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Range<u64>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn whatever_breaks_every_missing_byte_is_taken_once(
            there in prop::collection::vec((0_u64..200, 0_u64..30), 0..6),
            part in 1_u64..60,
            breaks in prop::collection::vec(0_u64..60, 0..40),
        ) {
            let there = there.into_iter().map(|(start, length)| (start, (start + length).min(200)));
            let mut ranges = ByteRanges::from(there.collect::<Vec<_>>());
            let parts = RangeAllocator::new(&ranges, 200, part);
            let mut breaks = breaks.into_iter();
            let mut taken = ranges.total();
            while let Some(range) = parts.take() {
                prop_assert!(range.end - range.start <= part);
                let got = (range.start + breaks.next().unwrap_or(u64::MAX).min(part)).min(range.end);
                ranges.insert(range.start..got);
                taken += got - range.start;
                parts.give_back(got..range.end);
            }
            prop_assert!(ranges.covers(200));
            prop_assert_eq!(taken, 200);
        }
    }
}
