//! Decode steps: their members, their input, their tokens, and what happens if one fails.

use std::time::Instant;

use mlx::memory;
use mlx::ops::join;
use protocol::Priority;

use crate::error::{Error, Result};
use crate::kernels::begin;
use crate::schedule::limits::MAX_BATCH;
use crate::schedule::scheduler::{Running, Scheduler};
use crate::schedule::step::{Choice, Step};
use crate::sequence::{decode_logits, decode_step, Sequence, Tokens};

/// Steps after which buffers that were kept for reuse are given back.
const CLEAR_EVERY: usize = 256;

impl Scheduler {
    /// Begins the next step, then takes the tokens of the one before it.
    pub(super) fn step(&mut self) -> Result<()> {
        let previous = self.in_flight.take();
        let members = self.members(previous.as_ref());
        self.stepping = members.iter().map(|(id, _)| *id).collect();
        self.stepping
            .extend(previous.iter().flat_map(|step| step.rows.iter().flatten()));
        let mut next = match members.is_empty() {
            true => None,
            false => Some(self.begin_step(&members, previous.as_ref())?),
        };
        if let Some(previous) = previous {
            self.accept(&previous, next.as_mut())?;
        }
        if let Some(next) = &mut next {
            self.choose(next)?;
        }
        self.in_flight = next;
        Ok(())
    }

    /// The members of the next step, in the order of admission and class, each with the row of the step in flight that
    /// computes its input.
    fn members(&self, in_flight: Option<&Step>) -> Vec<(u64, Option<usize>)> {
        let row = |id: u64| in_flight.and_then(|step| step.rows.iter().position(|row| *row == Some(id)));
        let able = self.running.iter().filter_map(|running| {
            let (row, generation) = (row(running.id), &running.generation);
            let able = if row.is_some() {
                generation.wants_another()
            } else {
                generation.ready()
            };
            able.then_some((running, row))
        });
        let able: Vec<(&Running, Option<usize>)> = able.collect();
        let member = |(running, row): &(&Running, Option<usize>)| (running.id, *row);
        // An isolated answer decodes alone until a token of it is known, which shows whether the step failed because of
        // it.
        let mut isolated = self.running.iter().filter(|running| running.generation.is_isolated());
        let first = || {
            able.iter()
                .map(|(running, _)| *running)
                .find(|running| running.generation.is_isolated())
        };
        if let Some(isolated) = isolated.find(|running| row(running.id).is_some()).or_else(first) {
            return able
                .iter()
                .filter(|(running, _)| running.id == isolated.id)
                .map(member)
                .collect();
        }
        let chat = |running: &Running| running.generation.priority() == Priority::Chat;
        let mixed = able.iter().any(|(running, _)| chat(running)) && able.iter().any(|(running, _)| !chat(running));
        let others_join = !mixed || self.pace.others_join(self.steps);
        able.iter()
            .filter(|(running, _)| others_join || chat(running))
            .take(MAX_BATCH)
            .map(member)
            .collect()
    }

    fn begin_step(&mut self, members: &[(u64, Option<usize>)], previous: Option<&Step>) -> Result<Step> {
        let input = self.input(members, previous)?;
        let rows: Vec<Option<u64>> = members.iter().map(|(id, _)| Some(*id)).collect();
        let (mut chat, mut others, mut waits) = (false, false, false);
        let mut sequences: Vec<&mut Sequence> = Vec::with_capacity(members.len());
        // Members stand in the same order.
        for running in self
            .running
            .iter_mut()
            .filter(|running| rows.contains(&Some(running.id)))
        {
            match running.generation.priority() {
                Priority::Chat => chat = true,
                Priority::Api | Priority::Background => others = true,
            }
            waits |= running.generation.constrained();
            sequences.push(running.generation.sequence());
        }
        let choice = if waits {
            let logits = decode_logits(self.loaded.stepping(), &input, &mut sequences)?;
            begin([&logits])?;
            let input = input.tensor()?;
            let members = rows.iter().copied().flatten().collect();
            Choice::Waiting { input, logits, members }
        } else {
            let decoded = decode_step(self.loaded.stepping(), &input, &mut sequences)?;
            begin(decoded.tensors())?;
            Choice::Made(decoded)
        };
        self.count_step()?;
        Ok(Step {
            choice,
            rows,
            chat,
            others,
        })
    }

    pub(super) fn count_step(&mut self) -> Result<()> {
        self.steps += 1;
        if self.steps.is_multiple_of(CLEAR_EVERY) {
            memory::clear_cache()?;
        }
        Ok(())
    }

    /// The last token of each member, of which some are still being computed.
    fn input(&self, members: &[(u64, Option<usize>)], previous: Option<&Step>) -> Result<Tokens> {
        if let Some(previous) = previous {
            let same = members.len() == previous.rows.len()
                && members.iter().enumerate().all(|(index, (_, row))| *row == Some(index));
            if same {
                return Ok(previous.made()?.tokens.clone());
            }
        }
        let known = |id: u64| {
            let running = self.running.iter().find(|running| running.id == id);
            running.and_then(|running| running.generation.tokens().last().copied())
        };
        let parts = members
            .iter()
            .map(|(id, row)| match (row, previous) {
                (Some(row), Some(step)) => Ok(step.made()?.tokens.row(*row)?),
                _ => {
                    let ids = self.loaded.model().ids(known(*id).as_slice())?;
                    if members.len() == 1 {
                        Ok(ids)
                    } else {
                        Ok(ids.astype(mlx::Dtype::Uint32)?)
                    }
                }
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Tokens::Computed(join(&parts, 0)?))
    }

    /// Waits for the tokens of a step, once for all, and hands them out. A row of the step after it is dropped if its
    /// answer has ended or goes on with other tokens than sampled ones.
    pub(super) fn accept(&mut self, step: &Step, mut next: Option<&mut Step>) -> Result<()> {
        let decoded = step.made()?;
        let tokens = decoded.tokens.to_u32()?;
        self.record_step(step);
        for (row, (id, token)) in step.rows.iter().zip(tokens).enumerate() {
            let Some(running) = self.running.iter_mut().find(|running| Some(running.id) == *id) else {
                continue;
            };
            let logprobs = decoded.logprobs.get(row).and_then(Option::as_ref);
            let end = running.generation.accept(token, logprobs)?;
            let wanted = end.is_none() && running.generation.in_step();
            if let Some(row) = next
                .as_mut()
                .and_then(|next| next.rows.iter_mut().find(|row| *row == id))
            {
                if !wanted {
                    *row = None;
                }
            }
            let id = running.id;
            if let Some(end) = end {
                self.end(id, Ok(end));
            }
        }
        Ok(())
    }

    fn record_step(&mut self, step: &Step) {
        let now = Instant::now();
        if let (Some(last), true) = (self.last_step, step.chat) {
            self.pace.record_step(step.others, now - last);
        }
        if let (Some(last), 1) = (self.last_step, step.rows.len()) {
            self.tuner.record_step(now - last);
        }
        self.last_step = Some(now);
    }

    /// After a failed step everybody who took part begins anew, one at a time. Who fails alone is who it was.
    pub(super) fn step_failed(&mut self, error: Error) {
        tracing::warn!(%error, sequences = self.stepping.len(), "a decode step failed");
        self.in_flight = None;
        let mut stepping = std::mem::take(&mut self.stepping);
        stepping.sort_unstable();
        stepping.dedup();
        self.recover();
        let alone = stepping.len() == 1;
        for running in &mut self.running {
            if stepping.contains(&running.id) && !(alone && running.generation.is_isolated()) {
                running.generation.restart();
                stepping.retain(|id| *id != running.id);
            }
        }
        if let Some(id) = stepping.first() {
            self.end(*id, Err(error));
        }
    }
}
