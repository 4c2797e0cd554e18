//! Detects an answer that repeats itself without end.

/// The longest period that is looked for, in tokens.
const MAX_PERIOD: usize = 256;

/// The least number of repeated tokens, with any period: tables of zeros, and words that were asked for hundreds of
/// times, are intended.
const MIN_REPEATED_TOKENS: usize = 1024;

/// A period has to occur at least so often.
const MIN_REPEATS: usize = 8;

/// Looks for a run of tokens that repeats exactly with one period, for longer than any request would want.
pub struct RepetitionDetector {
    /// The last [`MAX_PERIOD`] tokens, as a ring.
    last: [u32; MAX_PERIOD],
    count: usize,
    /// For each period, how many tokens in a row were the same as the token that many before them.
    stretch: [u32; MAX_PERIOD],
}

impl Default for RepetitionDetector {
    fn default() -> Self {
        Self {
            last: [0; MAX_PERIOD],
            count: 0,
            stretch: [0; MAX_PERIOD],
        }
    }
}

impl RepetitionDetector {
    /// Takes tokens after which the answer is not ended.
    pub fn extend(&mut self, ids: &[u32]) {
        for id in ids {
            self.push(*id);
        }
    }

    /// Takes the next token; returns whether the answer repeats itself.
    pub fn push(&mut self, id: u32) -> bool {
        let mut repeats = false;
        for period in 1..=MAX_PERIOD.min(self.count) {
            let stretch = &mut self.stretch[period - 1];
            if self.last[(self.count - period) % MAX_PERIOD] == id {
                *stretch += 1;
                repeats |= *stretch as usize >= MIN_REPEATED_TOKENS.max(period * MIN_REPEATS);
            } else {
                *stretch = 0;
            }
        }
        self.last[self.count % MAX_PERIOD] = id;
        self.count += 1;
        repeats
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After how many tokens the answer is found to repeat itself.
    fn noticed(tokens: impl IntoIterator<Item = u32>) -> Option<usize> {
        let mut repetition = RepetitionDetector::default();
        tokens.into_iter().position(|id| repetition.push(id))
    }

    #[test]
    fn one_word_for_ever_is_noticed() {
        assert_eq!(noticed(std::iter::repeat_n(7, 5000)), Some(MIN_REPEATED_TOKENS));
    }

    #[test]
    fn a_sentence_for_ever_is_noticed_after_some_rounds() {
        for period in [2, 3, 50, 128, 200, 256] {
            let before = 100..357;
            let found = noticed(before.chain((0..9000).map(|at| 1000 + at % period as u32)));
            let expected = 257 + period + MIN_REPEATED_TOKENS.max(MIN_REPEATS * period) - 1;
            assert_eq!(found, Some(expected), "period {period}");
        }
    }

    #[test]
    fn what_people_ask_for_passes() {
        // A word five hundred times, on lines of their own.
        assert_eq!(noticed((0..1000).map(|at| at % 2)), None);
        // Counting: three tokens of which one is always new.
        assert_eq!(
            noticed((0..6000).map(|at| if at % 3 == 0 { 10_000 + at } else { at % 3 })),
            None
        );
        // A table of 40 rows with a column that differs, and one of 30 equal rows of 12 cells.
        assert_eq!(
            noticed((0..40 * 30).map(|at| if at % 30 == 3 { 500 + at / 30 } else { at % 30 })),
            None
        );
        assert_eq!(noticed((0..30 * 24).map(|at| at % 24)), None);
    }

    #[test]
    fn a_repetition_that_ends_in_time_passes() {
        let nearly = std::iter::repeat_n(7, MIN_REPEATED_TOKENS).chain([8]);
        assert_eq!(noticed(nearly.clone().chain(nearly)), None);
    }
}
