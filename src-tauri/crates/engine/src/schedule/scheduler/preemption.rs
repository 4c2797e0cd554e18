//! Preempting answers of programs, so that those of chats are begun at once.

use std::time::Instant;

use mlx::memory;
use protocol::Priority;

use crate::answer::generation::Generation;
use crate::error::{catch_panic, Error};
use crate::schedule::scheduler::{Running, Scheduler};

/// By which preempted answers are compared: the class, then the moment of admission, then the number.
pub type PreemptionOrder = (Priority, Instant, u64);

/// How often answers were preempted so far, and how often their caches were dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Preemptions {
    /// Times that an answer was preempted.
    pub preempted: usize,
    /// Times that caches were dropped, and read again later.
    pub dropped: usize,
}

/// The gain of preempting an answer and dropping its caches.
pub struct PreemptionCandidate {
    /// Its class, and since when it has been admitted.
    pub order: PreemptionOrder,
    /// The bytes of its caches.
    pub held: u64,
    /// The bytes that they will grow by, if it is not preempted already.
    pub growth: u64,
}

impl Scheduler {
    /// The number of preempted answers.
    pub fn preempted(&self) -> usize {
        self.running
            .iter()
            .filter(|running| running.generation.preempted())
            .count()
    }

    /// How many answers of chats and of programs are running and not preempted.
    pub fn active_counts(&self) -> (usize, usize) {
        let made = self.running.iter().filter(|running| !running.generation.preempted());
        let (chats, programs): (Vec<_>, Vec<_>) = made.partition(|running| is_chat(&running.generation));
        (chats.len(), programs.len())
    }

    /// The number of preemptions.
    #[cfg(feature = "test-support")]
    pub fn preemptions(&self) -> Preemptions {
        self.preemptions
    }

    /// The answer of a program that is preempted first: of the last class the youngest.
    pub fn first_to_preempt(&self) -> Option<PreemptionOrder> {
        let made = self.running.iter().filter(|running| !running.generation.preempted());
        made.filter(|running| !is_chat(&running.generation))
            .map(Running::order)
            .max()
    }

    /// The preempted answer that goes on first, and the bytes that it will take then.
    pub fn first_to_resume(&self) -> Option<(PreemptionOrder, u64)> {
        let preempted = self.running.iter().filter(|running| running.generation.preempted());
        let first = preempted.min_by_key(|running| running.order())?;
        Some((first.order(), first.generation.resume_bytes()))
    }

    /// The answers of programs that hold or will hold memory.
    pub fn candidates(&self) -> impl Iterator<Item = PreemptionCandidate> + '_ {
        let programs = self.running.iter().filter(|running| !is_chat(&running.generation));
        programs.map(|running| PreemptionCandidate {
            order: running.order(),
            held: running.generation.cache_bytes(),
            growth: match running.generation.preempted() {
                true => 0,
                false => running.generation.cache_growth(),
            },
        })
    }

    /// Preemptions an answer, which keeps its tokens and its caches.
    pub fn preempt(&mut self, (_, _, id): PreemptionOrder) {
        if let Some(running) = self.running.iter_mut().find(|running| running.id == id) {
            self.preemptions.preempted += usize::from(!running.generation.preempted());
            running.generation.preempt();
        }
    }

    /// Preemptions an answer and drops its caches; its tokens will be read again.
    pub fn preempt_and_drop(&mut self, order: PreemptionOrder) {
        self.preempt(order);
        let id = Some(order.2);
        if self.in_flight.as_ref().is_some_and(|step| step.rows.contains(&id)) {
            // A token of it is being computed, which will be known after the next step.
            if let Err(error) = catch_panic(|| self.step()) {
                self.step_failed(error);
            }
        }
        // It may have ended with that token.
        let Some(running) = self.running.iter_mut().find(|running| Some(running.id) == id) else {
            return;
        };
        running.generation.drop_caches();
        self.preemptions.dropped += 1;
        if let Err(error) = catch_panic(|| Ok(memory::clear_cache()?)) {
            tracing::warn!(%error, "memory was not given back");
        }
    }

    /// Lets a preempted answer go on.
    pub fn resume(&mut self, (_, _, id): PreemptionOrder) {
        if let Some(running) = self.running.iter_mut().find(|running| running.id == id) {
            running.generation.resume();
        }
    }

    /// Preemptions an answer of a program if there was no memory for what a chat has to read; whether it did.
    pub(super) fn preempt_for_chat(&mut self, id: u64, error: &Error) -> bool {
        let mut by_chat = self.running.iter().filter(|running| running.id == id);
        let short = matches!(error, Error::MemoryShort(_)) && by_chat.any(|running| is_chat(&running.generation));
        let holding = self.candidates().filter(|candidate| candidate.held > 0);
        let Some(youngest) = holding.map(|candidate| candidate.order).max().filter(|_| short) else {
            return false;
        };
        self.preempt_and_drop(youngest);
        true
    }
}

impl Running {
    fn order(&self) -> PreemptionOrder {
        (self.generation.priority(), self.admitted, self.id)
    }
}

fn is_chat(generation: &Generation) -> bool {
    generation.priority() == Priority::Chat
}
