//! Pausing an answer.

use std::time::Instant;

use checkpoint::memory::Workload;

use super::{planned_workload, Generation};

impl Generation {
    /// Whether it neither reads nor takes part in steps for now.
    pub fn paused(&self) -> bool {
        self.paused
    }

    /// Lets it neither read nor take part in further steps until [`resume`](Self::resume).
    pub fn pause(&mut self) {
        self.paused = true;
    }

    /// Lets it go on after it was paused.
    pub fn resume(&mut self) {
        self.paused = false;
        self.last_chunk = Instant::now();
    }

    /// Frees the caches of a paused one; what they held is read again when it goes on. No step of it may be in flight.
    pub fn drop_caches(&mut self) {
        if let Some(sequence) = self.sequence.take() {
            // The sampler stays, because its draws and penalties depend on all that it has seen.
            self.told = sequence.state.offset().max(self.told - 1) + 1;
            self.sampler = Some(sequence.into_sampler());
        }
    }

    /// The bytes that it will take when it goes on after a pause, and reads anew what is missing.
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
        let workload = planned_workload(&self.request, self.prefilled, config.context);
        let context = self.read().unwrap_or(0) as u32;
        config.cache_growth(0, &Workload { context, ..workload })
    }
}
