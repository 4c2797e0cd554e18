//! Giving memory back: models that are not needed now, and data kept only for speed.

use std::time::Instant;

use protocol::FolderSource;

use mlx::memory;

use crate::error::Result;
use crate::loaded::LoadedModel;
use crate::schedule::queue::QueuedCommand;
use crate::schedule::worker::Worker;

impl Worker {
    /// Frees the model of this reference; called when it does not answer.
    pub(super) fn unload(&mut self, reference: &str) {
        self.free(|loaded| loaded.info.reference == reference);
    }

    fn free(&mut self, which: impl Fn(&LoadedModel) -> bool) {
        self.prefetches.stop(&self.models);
        self.models.unload(which);
        memory::drain();
        memory::trim_heap();
    }

    /// Frees the model of this reference if no command needs it; returns true if it did.
    pub(super) fn unload_idle(&mut self, reference: &str) -> bool {
        let mut asked = self.queue.iter().filter_map(QueuedCommand::model);
        if self.loading || asked.any(|model| model.reference == reference) || !self.models.is_idle(reference) {
            return false;
        }
        self.unload(reference);
        true
    }

    /// The time at which the next model, or the next copy of a prompt, will have been idle for its time, if nothing uses
    /// it before.
    pub(super) fn next_unload(&self) -> Option<Instant> {
        let models = self.models.unload_times().map(|(_, at)| at);
        let copies = self.models.iter();
        models
            .chain(copies.filter_map(|loaded| loaded.prefix_cache.borrow().expiry()))
            .min()
    }

    /// Drops the copies of prompts that nothing continued for their time.
    pub(super) fn drop_unused_prompts(&self) {
        let now = Instant::now();
        let drop_unused = |loaded: &LoadedModel| loaded.prefix_cache.borrow_mut().drop_unused(now);
        // Every model's, so it is counted and not looked for.
        if self.models.iter().filter(|loaded| drop_unused(loaded)).count() > 0 {
            memory::drain();
            memory::trim_heap();
        }
    }

    /// Frees the models that have been idle for their time and that no command needs; called while none is being
    /// loaded.
    pub(super) fn unload_due(&mut self) {
        let now = Instant::now();
        let due = self.models.unload_times().filter(|(_, at)| *at <= now);
        let unused = |source: &FolderSource| !self.queue.iter().any(|waiting| waiting.model() == Some(source));
        let due: Vec<FolderSource> = due.map(|(source, _)| source.clone()).filter(unused).collect();
        if due.is_empty() {
            return;
        }
        for model in &due {
            tracing::info!(
                model = model.reference,
                "unloaded, because nothing used it for its time"
            );
        }
        self.free(|loaded| due.contains(&loaded.files.source));
    }

    /// Frees every model; called when no answer runs.
    pub fn unload_all(&mut self) {
        self.free(|_| true);
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
