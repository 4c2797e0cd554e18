//! Steps with answers that follow a schema: what may be chosen depends on the token before.

use crate::error::Result;
use crate::kernels::begin;
use crate::schedule::scheduler::Scheduler;
use crate::schedule::step::{Choice, Step};
use crate::sequence::{choose_rows, Sequence};

impl Scheduler {
    /// Chooses the tokens of a step that waited for the one before it, each among those that may come there.
    pub(super) fn choose(&mut self, step: &mut Step) -> Result<()> {
        let Choice::Waiting { input, logits, members } = &step.choice else {
            return Ok(());
        };
        for row in &mut step.rows {
            let wanted = self.running.iter_mut().find(|running| Some(running.id) == *row);
            if let Some((id, Err(error))) = wanted.map(|running| (running.id, running.generation.limit_choice())) {
                *row = None;
                self.end(id, Err(error));
            }
        }
        // Members stand in the same order as the answers that still run.
        let mut running = self
            .running
            .iter_mut()
            .filter(|running| members.contains(&running.id))
            .peekable();
        let sequences: Vec<Option<&mut Sequence>> = members
            .iter()
            .map(|id| {
                running
                    .next_if(|running| running.id == *id)
                    .map(|running| running.generation.sequence())
            })
            .collect();
        let decoded = choose_rows(input, logits, sequences.into_iter())?;
        begin(decoded.tensors())?;
        step.choice = Choice::Made(decoded);
        Ok(())
    }
}
