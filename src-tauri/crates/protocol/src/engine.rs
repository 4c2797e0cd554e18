//! The trait that every engine fulfils: MLX in this process now, other endpoints later.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use futures::future::BoxFuture;

use crate::{EngineEvent, LoadEvent, MemoryFigures, ModelInfo, ModelSource, Receiver, Request, Result};

/// Asks a job to end; it is looked at between prefill chunks and between tokens. Clones ask the same job.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// Ends the job soon. Doing it twice, or after the end, changes nothing.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether somebody asked.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Cancels its job when it is dropped, so that nothing is computed that nobody waits for any more.
#[derive(Debug)]
pub struct CancelOnDrop(pub CancelFlag);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Asks a job to end its thinking and to answer; it is looked at between tokens. Clones ask the same job.
#[derive(Debug, Clone, Default)]
pub struct AnswerNowFlag(Arc<AtomicBool>);

impl AnswerNowFlag {
    /// Ends the thought that runs or is about to begin; after it, nothing changes. There is no way back.
    pub fn answer_now(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether somebody asked.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A running job: its events and the handles that end it or its thinking. Dropping the events does not cancel.
#[derive(Debug)]
pub struct JobHandle {
    /// What the engine says; ends with exactly one `Done` or `Failed`.
    pub events: Receiver<EngineEvent>,
    /// Ends the job.
    pub cancel: CancelFlag,
    /// Ends the job's thinking.
    pub end_thinking: AnswerNowFlag,
}

/// Something that answers conversations. It speaks of messages, options and events, never of arrays or weights, and every
/// call returns at once; calls may come from any thread.
pub trait Engine: Send + Sync + 'static {
    /// Loads a model, replacing the one that is loaded. Exactly one `Ready` or `Failed` follows any number of `Progress`.
    /// Jobs that are asked for meanwhile wait.
    fn load(&self, model: ModelSource) -> Receiver<LoadEvent>;

    /// Makes an answer; loads the request's model first if it is not the loaded one.
    fn generate(&self, request: Request) -> JobHandle;

    /// Prefetches ("reads ahead"), at idle priority, what the next request of this conversation will begin with: the messages of
    /// `request` are those so far, and a question will follow. Nothing is loaded for it, the newest call replaces earlier ones,
    /// and every other call comes first. An engine without a prefix cache does nothing.
    fn prefetch(&self, _request: Request) {}

    /// Frees the loaded model and all its memory.
    fn unload(&self) -> BoxFuture<'static, Result<()>>;

    /// The loaded model.
    fn loaded(&self) -> Option<ModelInfo>;

    /// The engine's memory.
    fn memory(&self) -> BoxFuture<'static, Result<MemoryFigures>>;
}

/// Knows this computer's memory, so that an engine can stop before the system stops it. Asked on the engine's thread, never
/// between tokens. Devices are named as in [`ModelInfo::device`].
pub trait MemoryGuard: std::fmt::Debug + Send + Sync + 'static {
    /// Whether a model may be loaded; nothing else is loaded when this is asked.
    ///
    /// # Errors
    /// `MemoryShort` if it clearly will not fit.
    fn before_load(&self, model: &ModelSource, device: &str) -> Result<()>;

    /// Whether reading may go on, which is about to take so many bytes more.
    ///
    /// # Errors
    /// `MemoryShort` if they clearly are not there.
    fn before_chunk(&self, bytes: u64, device: &str) -> Result<()>;

    /// Records the most that a model took so far, in bytes; called after each answer.
    fn record_peak(&self, model: &ModelSource, bytes: u64);
}

/// Finds the model that a reference means. Lies between chat and the model folder, so that neither knows the other.
pub trait ModelShelf: Send + Sync + 'static {
    /// The model of this reference; errors: `ModelNotFound`, `ModelBroken`.
    fn resolve(&self, reference: &str) -> Result<ModelSource>;

    /// Notes that the model of this reference answers, for the list of models; who keeps no such list does nothing.
    fn used(&self, _reference: &str) {}
}
