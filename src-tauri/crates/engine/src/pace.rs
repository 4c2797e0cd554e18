//! How much is read between two decode steps, so that answers that run are not made to wait.

use std::time::Duration;

use crate::sequence::prefill_chunk;

/// Tokens of the first chunk beside a running answer, before the model's speed is known.
const FIRST_CHUNK: usize = 16;

/// Fewer tokens are never read at once: a chunk costs about as much as a step, however short it is.
const MIN_CHUNK: usize = 8;

/// The share of its rate alone that a chat answer keeps while others decode beside it.
const CHAT_SHARE: f64 = 0.8;

/// After so many steps with others the chat steps alone once, to know what it would have alone.
const PROBE_EVERY: usize = 64;

/// What was measured last.
#[derive(Debug, Default)]
pub struct Pace {
    /// Tokens of the last chunk, and seconds per token.
    chunk: Option<(usize, f64)>,
    /// Seconds of a step of chat answers alone, and of one with others.
    steps: [Option<f64>; 2],
}

impl Pace {
    /// Tokens to read now, if the gap between two tokens of those that decode may be so long; `None`: nobody decodes.
    pub fn chunk(&self, gap: Option<Duration>) -> usize {
        let most = prefill_chunk();
        let Some(gap) = gap else { return most };
        let gap = gap.as_secs_f64();
        let Some((last, seconds)) = self.chunk else {
            return FIRST_CHUNK;
        };
        // What a step takes is part of the gap, but reading goes on even if steps are slow.
        let left = (gap - self.step()).max(gap / 4.0);
        let fitting = (left / seconds.max(1e-9)) as usize;
        // A GPU's first chunks compile kernels, and short ones are slow for their length.
        fitting.min(last.max(FIRST_CHUNK) * 2).clamp(MIN_CHUNK, most)
    }

    /// Takes note of a chunk.
    pub fn record_chunk(&mut self, tokens: usize, took: Duration) {
        if tokens > 0 {
            self.chunk = Some((tokens, took.as_secs_f64() / tokens as f64));
        }
    }

    /// Takes note of a step of chat answers, alone or with others.
    pub fn record_step(&mut self, with_others: bool, took: Duration) {
        let (mean, took) = (&mut self.steps[usize::from(with_others)], took.as_secs_f64());
        // A mean over the last steps, so that one that was disturbed does not count for much.
        *mean = Some(mean.map_or(took, |mean| mean + (took - mean) / 8.0));
    }

    /// Whether others take part in the step of this number beside a chat answer: in every one if that costs the chat little, else
    /// in every so many-th.
    pub fn others_join(&self, step: usize) -> bool {
        match self.steps {
            [Some(alone), Some(with_others)] => {
                let extra = (with_others - alone) / (alone * (1.0 / CHAT_SHARE - 1.0)).max(1e-9);
                let every = extra.ceil().clamp(1.0, 16.0) as usize;
                !step.is_multiple_of(PROBE_EVERY) && step.is_multiple_of(every)
            }
            [None, _] => !step.is_multiple_of(4),
            [_, None] => true,
        }
    }

    fn step(&self) -> f64 {
        self.steps.iter().flatten().fold(0.0, |most: f64, step| most.max(*step))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::tensor::connect;

    const GAP: Duration = Duration::from_millis(50);

    #[test]
    fn chunks_fit_the_gap_and_are_whole_if_nobody_waits() {
        connect().unwrap();
        let mut pace = Pace::default();
        assert_eq!(pace.chunk(None), prefill_chunk());
        assert_eq!(pace.chunk(Some(GAP)), FIRST_CHUNK);
        // 1 ms per token, steps of 10 ms: 40 tokens fit, but sizes at most double.
        pace.record_step(true, Duration::from_millis(10));
        pace.record_chunk(16, Duration::from_millis(16));
        assert_eq!(pace.chunk(Some(GAP)), 32);
        pace.record_chunk(32, Duration::from_millis(32));
        assert_eq!(pace.chunk(Some(GAP)), 40);
        // After a whole chunk too, and at least a few tokens when everything is slow.
        pace.record_chunk(512, Duration::from_millis(512));
        assert_eq!(pace.chunk(Some(GAP)), 40);
        pace.record_chunk(40, Duration::from_secs(40));
        assert_eq!(pace.chunk(Some(GAP)), MIN_CHUNK);
    }

    #[test]
    fn a_chat_keeps_its_share_beside_others() {
        let rate = |alone: u64, with_others: u64| {
            let mut pace = Pace::default();
            pace.record_step(false, Duration::from_millis(alone));
            pace.record_step(true, Duration::from_millis(with_others));
            let steps = 6400;
            let joined = (0..steps).filter(|step| pace.others_join(*step)).count() as u64;
            let spent = joined * with_others + (steps as u64 - joined) * alone;
            (joined as f64 / steps as f64, (steps as u64 * alone) as f64 / spent as f64)
        };
        for (alone, with_others) in [(10, 11), (10, 12), (10, 15), (10, 20), (10, 40)] {
            let (joined, kept) = rate(alone, with_others);
            assert!(kept >= CHAT_SHARE, "{alone} ms alone, {with_others} ms with others: {kept}");
            assert!(joined > 0.05, "the others go on: {joined}");
        }
        assert!(rate(10, 12).0 > 0.95, "what costs little is not held back");
    }
}
