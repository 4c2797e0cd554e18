//! Detects an answer that repeats itself, and one that does so without end.

/// The longest period that is looked for, in tokens.
const MAX_PERIOD: usize = 256;

/// The least number of repeated tokens, with any period: tables of zeros, and words that were asked for hundreds of
/// times, are intended.
const MIN_REPEATED_TOKENS: usize = 1024;

/// A period has to occur at least so often.
const MIN_REPEATS: usize = 8;

/// The least number of repeated tokens, and of repeats, that the user is told about: few answers want them.
const NOTICED_TOKENS: usize = 128;
const NOTICED_REPEATS: usize = 3;

/// How far an answer repeats itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repetition {
    /// So far that the user is told, once.
    Noticed,
    /// For longer than any request would want.
    Endless,
}

/// Looks for a run of tokens that repeats exactly with one period.
pub struct RepetitionDetector {
    /// The last [`MAX_PERIOD`] tokens, as a ring.
    last: [u32; MAX_PERIOD],
    count: usize,
    /// For each period, how many tokens in a row were the same as the token that many before them.
    stretch: [u32; MAX_PERIOD],
    noticed: bool,
}

impl Default for RepetitionDetector {
    fn default() -> Self {
        Self {
            last: [0; MAX_PERIOD],
            count: 0,
            stretch: [0; MAX_PERIOD],
            noticed: false,
        }
    }
}

impl RepetitionDetector {
    /// Takes tokens after which the answer is not ended, and of whose repetition the user is not told.
    pub fn extend(&mut self, ids: &[u32]) {
        let noticed = self.noticed;
        for id in ids {
            self.push(*id);
        }
        self.noticed = noticed;
    }

    /// Takes the next token; returns whether the answer repeats itself.
    pub fn push(&mut self, id: u32) -> Option<Repetition> {
        let (mut repeats, mut endless) = (false, false);
        for period in 1..=MAX_PERIOD.min(self.count) {
            let stretch = &mut self.stretch[period - 1];
            if self.last[(self.count - period) % MAX_PERIOD] == id {
                *stretch += 1;
                let repeated = *stretch as usize;
                repeats |= repeated >= NOTICED_TOKENS.max(period * NOTICED_REPEATS);
                endless |= repeated >= MIN_REPEATED_TOKENS.max(period * MIN_REPEATS);
            } else {
                *stretch = 0;
            }
        }
        self.last[self.count % MAX_PERIOD] = id;
        self.count += 1;
        if endless {
            return Some(Repetition::Endless);
        }
        (repeats && !std::mem::replace(&mut self.noticed, true)).then_some(Repetition::Noticed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After how many tokens the answer is found to repeat itself so far.
    fn found(tokens: impl IntoIterator<Item = u32>, far: Repetition) -> Option<usize> {
        let mut repetition = RepetitionDetector::default();
        tokens.into_iter().position(|id| repetition.push(id) == Some(far))
    }

    fn noticed(tokens: impl IntoIterator<Item = u32>) -> Option<usize> {
        found(tokens, Repetition::Noticed)
    }

    fn ended(tokens: impl IntoIterator<Item = u32>) -> Option<usize> {
        found(tokens, Repetition::Endless)
    }

    #[test]
    fn one_word_for_ever_is_noticed_and_ended() {
        let word = std::iter::repeat_n(7, 5000);
        assert_eq!(
            (noticed(word.clone()), ended(word)),
            (Some(NOTICED_TOKENS), Some(MIN_REPEATED_TOKENS))
        );
    }

    #[test]
    fn a_sentence_for_ever_is_noticed_and_ended_after_some_rounds() {
        for period in [2, 3, 50, 128, 200, 256] {
            let tokens = (100..357).chain((0..9000).map(|at| 1000 + at % period as u32));
            let after = |repeated: usize| Some(257 + period + repeated - 1);
            assert_eq!(
                (noticed(tokens.clone()), ended(tokens)),
                (
                    after(NOTICED_TOKENS.max(NOTICED_REPEATS * period)),
                    after(MIN_REPEATED_TOKENS.max(MIN_REPEATS * period))
                ),
                "period {period}"
            );
        }
    }

    #[test]
    fn a_repetition_is_noticed_once_and_again_only_after_what_did_not_end_the_answer() {
        let mut repetition = RepetitionDetector::default();
        let noticed = |repetition: &mut RepetitionDetector| {
            (0..500)
                .filter(|_| repetition.push(7) == Some(Repetition::Noticed))
                .count()
        };
        assert_eq!((noticed(&mut repetition), noticed(&mut repetition)), (1, 0));
        repetition = RepetitionDetector::default();
        repetition.extend(&[7; 500]);
        assert_eq!(
            repetition.push(7),
            Some(Repetition::Noticed),
            "an answer that is continued"
        );
    }

    #[test]
    fn what_people_ask_for_passes() {
        // A word five hundred times, on lines of their own, is only noticed.
        assert_eq!(ended((0..1000).map(|at| at % 2)), None);
        // Counting: three tokens of which one is always new.
        assert_eq!(
            noticed((0..6000).map(|at| if at % 3 == 0 { 10_000 + at } else { at % 3 })),
            None
        );
        // A table of 40 rows with a column that differs, and one of 5 equal rows of 12 cells.
        assert_eq!(
            noticed((0..40 * 30).map(|at| if at % 30 == 3 { 500 + at / 30 } else { at % 30 })),
            None
        );
        assert_eq!(noticed((0..5 * 24).map(|at| at % 24)), None);
        assert_eq!(ended((0..30 * 24).map(|at| at % 24)), None);
    }

    #[test]
    fn a_repetition_that_ends_in_time_passes() {
        let nearly = |tokens: usize| std::iter::repeat_n(7, tokens).chain([8]);
        assert_eq!(noticed(nearly(NOTICED_TOKENS).chain(nearly(NOTICED_TOKENS))), None);
        assert_eq!(
            ended(nearly(MIN_REPEATED_TOKENS).chain(nearly(MIN_REPEATED_TOKENS))),
            None
        );
    }
}
