//! Decode steps of an answer that is alone, with drafts of the tokens that may follow.

use std::time::Instant;

use super::Scheduler;
use crate::answer::generation::Generation;
use crate::error::Result;
use crate::sequence::drafts::NextDraft;
use crate::sequence::verify;

impl Scheduler {
    /// Verifies a draft for the only answer in place of a step, or waits for the step in flight if a draft may follow
    /// its token; returns whether it did either.
    pub(super) fn speculate(&mut self) -> Result<bool> {
        let [running] = &mut self.running[..] else {
            return Ok(false);
        };
        let (id, generation) = (running.id, &mut running.generation);
        if generation.decoding() {
            generation.catch_up(&self.tuner);
        }
        if let Some(step) = &self.in_flight {
            // The step after it would be one of a single token.
            if step.rows[..] != [Some(id)] || generation.next_draft(&self.tuner).is_none() {
                return Ok(false);
            }
            self.stepping = vec![id];
            let expected = Expected::of(generation);
            if let Some(step) = self.in_flight.take() {
                self.accept(&step, None)?;
            }
            if let [running] = &mut self.running[..] {
                let generation = &mut running.generation;
                expected.follow(generation, 1);
                if generation.ready() && generation.next_draft(&self.tuner).is_none() {
                    let (drafts, length) = generation.drafts();
                    drafts.miss(length, &self.tuner);
                }
            }
            return Ok(true);
        }
        if !generation.ready() {
            return Ok(false);
        }
        let Some(next) = generation.next_draft(&self.tuner) else {
            return Ok(false);
        };
        self.stepping = vec![id];
        // The time that is measured now is not that of a step.
        self.last_step = None;
        let (start, drafter) = (Instant::now(), next.drafter());
        let draft = match next {
            NextDraft::LookedUp(draft) => Some(draft),
            NextDraft::ByModel(count) => generation.draft_by_model(count),
        };
        let Some(draft) = draft.filter(|draft| !draft.is_empty()) else {
            return Ok(false);
        };
        let drafted = draft.len();
        let ids: Vec<u32> = generation.tokens().last().copied().into_iter().chain(draft).collect();
        let mut verification = verify(self.loaded.model(), generation.sequence(), ids)?;
        let (mut kept, mut end);
        kept = 0;
        loop {
            if generation.constrained() {
                if let Err(error) = generation.limit_choice() {
                    self.end(id, Err(error));
                    return Ok(true);
                }
            }
            let token = verification.choose(generation.sequence(), kept)?;
            let (expected, row) = (Expected::of(generation), kept);
            kept += 1;
            end = generation.accept(token, None)?;
            let forced = end.is_none() && expected.follow(generation, 1);
            if end.is_some() || forced || !verification.goes_on(row, token) {
                break;
            }
        }
        verification.keep(self.loaded.model(), generation.sequence(), kept)?;
        generation.settle_draft();
        self.tuner.record_verified(drafter, drafted, start.elapsed());
        let (drafts, length) = generation.drafts();
        drafts.record(drafter, drafted, kept - 1, length, &self.tuner);
        if let Some(end) = end {
            self.end(id, Ok(end));
        }
        self.count_step()?;
        Ok(true)
    }
}

/// An answer before a token of it is accepted with no step in flight.
struct Expected {
    known: usize,
    /// True if single steps would have drawn the token after that one already.
    draws: bool,
}

impl Expected {
    fn of(generation: &Generation) -> Self {
        Self {
            known: generation.tokens().len(),
            draws: generation.wants_another(),
        }
    }

    /// Returns whether other tokens than the `accepted` ones follow. Ending a thought drops a draw that is in flight, so
    /// that it is passed over here: a seed gives the same answer with and without drafts.
    fn follow(&self, generation: &mut Generation, accepted: usize) -> bool {
        let forced = generation.tokens().len() > self.known + accepted;
        if forced && self.draws {
            generation.sequence().skip_draw();
        }
        forced
    }
}
