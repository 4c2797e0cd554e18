//! Giving memory back: models that are not needed now, and data kept only for speed.

use std::time::Duration;

use mlx::memory;

use crate::error::Result;
use crate::schedule::queue::QueuedCommand;
use crate::schedule::worker::Worker;

impl Worker {
    /// Frees the model of this reference; called when it does not answer.
    pub(super) fn unload(&mut self, reference: &str) {
        self.prefetches.stop(&self.models);
        self.models.unload(|loaded| loaded.info.reference == reference);
        memory::drain();
        memory::trim_heap();
    }

    /// Frees the model of this reference if no command needs it and it was not used for this long; returns whether it
    /// did.
    pub(super) fn unload_idle(&mut self, reference: &str, idle: Duration) -> bool {
        let mut asked = self.queue.iter().filter_map(QueuedCommand::model);
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
        memory::drain();
        memory::trim_heap();
    }

    /// Limits the prefix cache of each loaded model to this many bytes.
    pub(super) fn limit_prefix_caches(&self, bytes: Option<u64>) {
        for loaded in self.models.iter() {
            if let Err(error) = loaded.prefix_cache.borrow_mut().limit(bytes) {
                tracing::warn!(%error, "the prefix cache keeps its budget");
            }
        }
    }

    /// Frees the data that is kept only for speed: prefetched prompts, prefix caches, image embeddings, and buffers
    /// that wait to be used again. Answers that run hold what they need themselves.
    pub(super) fn free_caches(&mut self) -> Result<()> {
        self.prefetches.drop_all();
        for loaded in self.models.iter() {
            // A cache in use is needed.
            if let Ok(mut prefix_cache) = loaded.prefix_cache.try_borrow_mut() {
                prefix_cache.clear();
            }
            if let Ok(mut features) = loaded.features.try_borrow_mut() {
                features.clear();
            }
        }
        memory::clear_cache()?;
        memory::trim_heap();
        Ok(())
    }
}
