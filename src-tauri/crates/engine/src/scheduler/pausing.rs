//! Pausing answers of programs, so that those of chats are begun at once.

use std::time::Instant;

use protocol::Priority;

use crate::error::{catch_panic, Error};
use crate::generation::Generation;
use crate::memory;
use crate::scheduler::{Running, Scheduler};

/// By which paused answers are compared: the class, then the moment of admission, then the number.
pub type Precedence = (Priority, Instant, u64);

/// How often answers were paused so far, and how often their caches were dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pauses {
    /// Times that an answer was paused.
    pub paused: usize,
    /// Times that caches were dropped, and read again later.
    pub dropped: usize,
}

/// What pausing an answer and dropping its caches would free.
pub struct Candidate {
    /// Its class, and since when it has been admitted.
    pub precedence: Precedence,
    /// The bytes of its caches.
    pub held: u64,
    /// The bytes that they will grow by, if it is not paused already.
    pub growth: u64,
}

impl Scheduler {
    /// How many answers are paused.
    pub fn paused(&self) -> usize {
        self.running.iter().filter(|running| running.generation.paused()).count()
    }

    /// How many answers of chats and of programs are running and not paused.
    pub fn active_counts(&self) -> (usize, usize) {
        let made = self.running.iter().filter(|running| !running.generation.paused());
        let (chats, programs): (Vec<_>, Vec<_>) = made.partition(|running| is_chat(&running.generation));
        (chats.len(), programs.len())
    }

    /// How often answers were paused.
    #[cfg(feature = "test-support")]
    pub fn pauses(&self) -> Pauses {
        self.pauses
    }

    /// The answer of a program that is paused first: of the last class the youngest.
    pub fn first_to_pause(&self) -> Option<Precedence> {
        let made = self.running.iter().filter(|running| !running.generation.paused());
        made.filter(|running| !is_chat(&running.generation)).map(Running::precedence).max()
    }

    /// The paused answer that goes on first, and the bytes that it will take then.
    pub fn first_to_resume(&self) -> Option<(Precedence, u64)> {
        let paused = self.running.iter().filter(|running| running.generation.paused());
        let first = paused.min_by_key(|running| running.precedence())?;
        Some((first.precedence(), first.generation.resume_bytes()))
    }

    /// The answers of programs that hold or will hold memory.
    pub fn candidates(&self) -> impl Iterator<Item = Candidate> + '_ {
        let programs = self.running.iter().filter(|running| !is_chat(&running.generation));
        programs.map(|running| Candidate {
            precedence: running.precedence(),
            held: running.generation.cache_bytes(),
            growth: match running.generation.paused() {
                true => 0,
                false => running.generation.cache_growth(),
            },
        })
    }

    /// Pauses an answer, which keeps its tokens and its caches.
    pub fn pause(&mut self, (_, _, id): Precedence) {
        if let Some(running) = self.running.iter_mut().find(|running| running.id == id) {
            self.pauses.paused += usize::from(!running.generation.paused());
            running.generation.pause();
        }
    }

    /// Pauses an answer and drops its caches; its tokens will be read again.
    pub fn pause_and_drop(&mut self, precedence: Precedence) {
        self.pause(precedence);
        let id = Some(precedence.2);
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
        self.pauses.dropped += 1;
        if let Err(error) = catch_panic(memory::clear_cache) {
            tracing::warn!(%error, "memory was not given back");
        }
    }

    /// Lets a paused answer go on.
    pub fn resume(&mut self, (_, _, id): Precedence) {
        if let Some(running) = self.running.iter_mut().find(|running| running.id == id) {
            running.generation.resume();
        }
    }

    /// Pauses an answer of a program if there was no memory for what a chat has to read; whether it did.
    pub(super) fn preempt_for_chat(&mut self, id: u64, error: &Error) -> bool {
        let mut by_chat = self.running.iter().filter(|running| running.id == id);
        let short = matches!(error, Error::MemoryShort(_)) && by_chat.any(|running| is_chat(&running.generation));
        let holding = self.candidates().filter(|candidate| candidate.held > 0);
        let Some(youngest) = holding.map(|candidate| candidate.precedence).max().filter(|_| short) else {
            return false;
        };
        self.pause_and_drop(youngest);
        true
    }
}

impl Running {
    fn precedence(&self) -> Precedence {
        (self.generation.priority(), self.admitted, self.id)
    }
}

fn is_chat(generation: &Generation) -> bool {
    generation.priority() == Priority::Chat
}
