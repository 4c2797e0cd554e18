//! The length of the chunks that are read between two decode steps, so that running answers do not wait, and of those
//! that are prefetched, so that a request does not.

use std::time::{Duration, Instant};

use crate::backend::prefill_chunk;
use crate::schedule::limits::CHAT_SHARE;

/// Tokens of the first chunk, before the model's speed is known.
const FIRST_CHUNK: usize = 16;

/// Fewer tokens are never read at once: a chunk costs about as much as a step, however short it is.
const MIN_CHUNK: usize = 8;

/// The share of a gap that is planned for: what a chunk takes is known from the one before it alone.
pub const PLANNED: f64 = 0.7;

/// The number of steps with others after which the chat steps alone once, to measure its rate alone.
const PROBE_EVERY: usize = 64;

/// The last measurements.
#[derive(Debug, Default)]
pub struct Pace {
    /// Tokens of the last chunk, and seconds per token.
    chunk: Option<(usize, f64)>,
    /// Seconds of a step of chat answers alone, and of one with others.
    steps: [Option<f64>; 2],
}

impl Pace {
    /// Tokens to read now. `gap` is the longest time that anything waits for them, such as the next token of the answers
    /// that decode; `None`: nothing does.
    pub fn chunk(&self, gap: Option<Duration>) -> usize {
        let most = prefill_chunk();
        let Some(gap) = gap else { return most };
        let gap = gap.as_secs_f64();
        let Some((last, seconds)) = self.chunk else {
            return FIRST_CHUNK;
        };
        // A step's own time is part of the gap, but reading goes on even if steps are slow.
        let left = (PLANNED * gap - self.step()).max(gap / 4.0);
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

    /// True if others take part in the step of this number together with a chat answer: in every one if that costs the
    /// chat little, else in every n-th.
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

/// Rounds in which models without a chat answer are left out, so that the last two of them tell what the chat takes
/// alone: a step that was begun before is waited for in the first.
const SOLO: usize = 4;

/// Rounds until it is measured again.
const EPOCH: usize = 40;

/// How often models without a chat answer step while another model has one. What a model begins to compute in one round
/// is waited for in a later one, perhaps by another, so that full stretches of rounds are measured and never a single
/// model's step.
#[derive(Debug)]
pub struct ChatShare {
    round: usize,
    since: Option<Instant>,
    joined: usize,
    /// Seconds of a round of the chat alone.
    alone: Option<f64>,
    /// They step in one of this many rounds.
    every: usize,
}

impl ChatShare {
    /// Nothing is measured yet.
    pub fn new() -> Self {
        Self {
            round: 0,
            since: None,
            joined: 0,
            alone: None,
            every: 4,
        }
    }

    /// True if models without a chat answer take part in this round.
    pub fn others_join(&self) -> bool {
        self.round >= SOLO && (self.round - SOLO).is_multiple_of(self.every)
    }

    /// A round has ended `now`.
    pub fn record(&mut self, joined: bool, now: Instant) {
        self.round += 1;
        self.joined += usize::from(joined);
        let took = self.since.map(|since| (now - since).as_secs_f64());
        match (self.round, took) {
            (round, _) if round + 2 == SOLO => self.since = Some(now),
            (SOLO, Some(took)) => {
                // A mean, so that one stretch that was disturbed does not count for much.
                let took = took / 2.0;
                self.alone = Some(self.alone.map_or(took, |mean| mean + (took - mean) / 4.0));
                (self.since, self.joined) = (Some(now), 0);
            }
            (EPOCH.., Some(took)) => {
                self.adjust(took);
                self.round = 0;
            }
            (EPOCH.., None) => self.round = 0,
            _ => {}
        }
    }

    /// Changes how often they step, after a stretch of rounds that took `took` seconds, by half or the double at most.
    fn adjust(&mut self, took: f64) {
        let Some(alone) = self.alone else { return };
        let extra = (took - alone * (EPOCH - SOLO) as f64) / self.joined.max(1) as f64;
        let wanted = (extra / (alone * (1.0 / CHAT_SHARE - 1.0)).max(1e-9)).ceil();
        let (least, most) = (self.every.div_ceil(2), (self.every * 2).min(16));
        self.every = (wanted.max(1.0) as usize).clamp(least, most);
    }

    /// A round has ended that does not tell what others cost a chat, because a prompt was read in it or no chat
    /// answered.
    pub fn pass_over(&mut self) {
        self.since = None;
        self.round = if self.round + 1 < EPOCH {
            (self.round + 1).max(SOLO)
        } else {
            SOLO
        };
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use mlx::device::connect;

    use super::*;

    const GAP: Duration = Duration::from_millis(50);

    #[test]
    fn chunks_fit_the_gap_and_are_whole_if_nobody_waits() {
        connect().unwrap();
        let mut pace = Pace::default();
        assert_eq!(pace.chunk(None), prefill_chunk());
        assert_eq!(pace.chunk(Some(GAP)), FIRST_CHUNK);
        // Half a millisecond per token, steps of 5: 60 tokens are planned, but sizes at most double.
        pace.record_step(true, Duration::from_millis(5));
        // The planned number may be rounded down.
        let planned = 29..=30;
        pace.record_chunk(16, Duration::from_millis(8));
        assert_eq!(pace.chunk(Some(GAP)), 32);
        pace.record_chunk(32, Duration::from_millis(32));
        assert!(planned.contains(&pace.chunk(Some(GAP))));
        // After a full chunk too, and at least a few tokens when everything is slow.
        pace.record_chunk(512, Duration::from_millis(512));
        assert!(planned.contains(&pace.chunk(Some(GAP))));
        pace.record_chunk(40, Duration::from_secs(40));
        assert_eq!(pace.chunk(Some(GAP)), MIN_CHUNK);
    }

    #[test]
    fn a_chat_keeps_its_share_beside_other_models() {
        for (alone, extra, noise) in [
            (10.0, 0.5, 0.0),
            (10.0, 2.0, 0.0),
            (10.0, 10.0, 0.0),
            (10.0, 25.0, 0.0),
            (20.0, 60.0, 0.0),
            (10.0, 10.0, 1.0),
        ] {
            let (mut share, mut now) = (ChatShare::new(), Instant::now());
            let (mut spent, mut own, mut joined, mut waiting, rounds) = (0.0, 0.0, 0, 0.0, 3000u32);
            for round in 0..rounds {
                // Every fifth round or so takes twice as long, for reasons of its own.
                let disturbed = 1.0 + if round * 7 % 11 < 2 { noise } else { 0.0 };
                // A step that joins is waited for in the next round.
                let joins = share.others_join();
                let took = (alone + std::mem::replace(&mut waiting, if joins { extra } else { 0.0 })) * disturbed;
                now += Duration::from_secs_f64(took / 1000.0);
                share.record(joins, now);
                (spent, own) = (spent + took, own + alone * disturbed);
                joined += usize::from(joins);
            }
            let kept = own / spent;
            assert!(kept >= CHAT_SHARE - 0.02, "{alone} ms alone, {extra} ms more: {kept}");
            let most = (alone * 0.25 / extra).min(1.0);
            let share = joined as f64 / f64::from(rounds);
            assert!(
                share > 0.6 * most.max(1.0 / 16.0),
                "{extra} ms more: others step in {share} of the rounds"
            );
        }
    }

    #[test]
    fn others_go_on_while_prompts_are_read() {
        let mut share = ChatShare::new();
        let mut joined = 0;
        for _ in 0..100 {
            joined += usize::from(share.others_join());
            share.pass_over();
        }
        assert!(joined >= 20, "{joined} of 100");
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
            (
                joined as f64 / steps as f64,
                (steps as u64 * alone) as f64 / spent as f64,
            )
        };
        for (alone, with_others) in [(10, 11), (10, 12), (10, 15), (10, 20), (10, 40)] {
            let (joined, kept) = rate(alone, with_others);
            assert!(
                kept >= CHAT_SHARE,
                "{alone} ms alone, {with_others} ms with others: {kept}"
            );
            assert!(joined > 0.05, "the others go on: {joined}");
        }
        assert!(rate(10, 12).0 > 0.95, "what costs little is not held back");
    }
}
