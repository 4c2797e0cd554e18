//! Giving memory back: models that nobody needs now, and what is kept only to be faster.

use std::time::Duration;

use crate::error::Result;
use crate::memory;
use crate::waiting::Waiting;
use crate::worker::Worker;

impl Worker {
    /// Frees the model of this reference; called when it does not answer.
    pub(super) fn unload(&mut self, reference: &str) {
        self.prefetches.stop(&self.models);
        self.models.unload(|loaded| loaded.info.reference == reference);
        memory::recover();
        memory::trim();
    }

    /// Frees the model of this reference if nobody waits for it and it was not used for so long; tells whether it did.
    pub(super) fn unload_idle(&mut self, reference: &str, idle: Duration) -> bool {
        let mut asked = self.waiting.iter().filter_map(Waiting::model);
        if self.loading || asked.any(|model| model.reference == reference) || !self.models.is_idle(reference, idle) {
            return false;
        }
        self.unload(reference);
        true
    }

    /// Frees every model; called when no answer runs.
    pub fn unload_all(&mut self) {
        self.prefetches.stop(&self.models);
        self.models.unload(|_| true);
        memory::recover();
        memory::trim();
    }

    /// Frees what is kept only to be faster: what prefetches have read, the prefix caches, what towers made of pictures, and buffers
    /// that wait to be used again. Answers that run hold what they need themselves.
    pub(super) fn free_caches(&mut self) -> Result<()> {
        self.prefetches.drop_all();
        for loaded in self.models.iter() {
            // While somebody uses one, what lies in it is needed.
            if let Ok(mut prefix_cache) = loaded.prefix_cache.try_borrow_mut() {
                prefix_cache.clear();
            }
            if let Ok(mut features) = loaded.features.try_borrow_mut() {
                features.clear();
            }
        }
        memory::clear_cache()?;
        memory::trim();
        Ok(())
    }
}
