//! Preemption of an answer.

use std::time::Instant;

use checkpoint::memory::Workload;

use super::{planned_workload, Generation};

impl Generation {
    /// True if it neither reads nor takes part in steps for now.
    pub fn preempted(&self) -> bool {
        !self.state.is_active()
    }

    /// Lets it neither read nor take part in further steps until [`resume`](Self::resume).
    pub fn preempt(&mut self) {
        self.state.preempt();
    }

    /// Lets it go on after it was preempted.
    pub fn resume(&mut self) {
        self.state.resume();
        self.prompt.last_chunk = Instant::now();
    }

    /// Frees the caches of a preempted answer; their tokens are read again when it goes on. No step of it may be in
    /// flight.
    pub fn drop_caches(&mut self) {
        if let Some(held) = self.state.drop_caches() {
            self.sampler_seen = held.max(self.sampler_seen - 1) + 1;
            self.draft_model = None;
        }
    }

    /// The bytes that it will take when it resumes and reads what is missing.
    pub fn resume_bytes(&self) -> u64 {
        let config = &self.loaded.files.config;
        match self.read() {
            Some(_) => self.cache_growth(),
            None => config.additional_memory(0, &planned_workload(&self.request, self.tokens.len(), config.context)),
        }
    }

    /// The bytes that its caches take.
    pub fn cache_bytes(&self) -> u64 {
        let config = &self.loaded.files.config;
        let workload = planned_workload(&self.request, self.prompt.prefilled, config.context);
        let context = self.read().unwrap_or(0) as u32;
        config.cache_growth(0, &Workload { context, ..workload })
    }
}
