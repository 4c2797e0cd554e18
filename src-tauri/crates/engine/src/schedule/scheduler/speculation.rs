//! Decode steps of an answer that is alone, with drafts of the tokens that may follow.

use std::time::Instant;

use super::Scheduler;
use crate::error::Result;
use crate::sequence::verify;

impl Scheduler {
    /// Verifies a draft for the only answer in place of a step, or waits for the step in flight if a draft may follow
    /// its token; returns whether it did either.
    pub(super) fn speculate(&mut self) -> Result<bool> {
        let [running] = &mut self.running[..] else {
            return Ok(false);
        };
        let (id, generation) = (running.id, &mut running.generation);
        if let Some(step) = &self.in_flight {
            // The step after it would be one of a single token.
            if step.rows[..] != [Some(id)] || generation.draft(&self.tuner).is_none() {
                return Ok(false);
            }
            self.stepping = vec![id];
            if let Some(step) = self.in_flight.take() {
                self.accept(&step, None)?;
            }
            if let [running] = &mut self.running[..] {
                if running.generation.ready() && running.generation.draft(&self.tuner).is_none() {
                    let (drafts, length) = running.generation.drafts();
                    drafts.miss(length, &self.tuner);
                }
            }
            return Ok(true);
        }
        if !generation.ready() {
            return Ok(false);
        }
        let Some(draft) = generation.draft(&self.tuner) else {
            return Ok(false);
        };
        self.stepping = vec![id];
        // The time that is measured now is not that of a step.
        self.last_step = None;
        let (start, drafted, known) = (Instant::now(), draft.len(), generation.tokens().len());
        let ids = generation.tokens().last().copied().into_iter().chain(draft).collect();
        let verified = verify(self.loaded.model(), generation.sequence(), ids)?;
        let (mut kept, mut end) = (0, None);
        for token in verified.chosen() {
            kept += 1;
            end = generation.accept(*token, None)?;
            // The answer may go on with other tokens than sampled ones.
            if end.is_some() || generation.tokens().len() != known + kept {
                break;
            }
        }
        verified.keep(self.loaded.model(), generation.sequence(), kept)?;
        self.tuner.record_verified(drafted, start.elapsed());
        let (drafts, length) = generation.drafts();
        drafts.record(drafted, kept - 1, length, &self.tuner);
        if let Some(end) = end {
            self.end(id, Ok(end));
        }
        self.count_step()?;
        Ok(true)
    }
}
