//! The commands of the worker.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use protocol::{FolderSource, LoadEvent, Request, Sender};
use tokio::sync::oneshot;

use crate::answer::images::RequestImages;
use crate::answer::job::JobContext;
use crate::answer::request::WaitingRequest;
use crate::error::Result;
use crate::loaded::LoadedModel;
use crate::schedule::embeddings::{EmbeddingJob, PreparedTexts};
use crate::state::{MemoryQuery, PendingPrefetch};

/// A command of the worker.
pub enum Command {
    /// Load a model.
    Load {
        /// Which.
        source: FolderSource,
        /// Receives the progress and the end of the load.
        events: Sender<LoadEvent>,
    },
    /// Generate an answer.
    Generate {
        /// To what.
        request: Box<WaitingRequest>,
        /// The job that receives the answer's events.
        job: JobContext,
    },
    /// Make vectors of texts.
    Embed(Box<PreparedTexts>, EmbeddingJob),
    /// Read, at idle priority, what the next prompt of this conversation will begin with.
    Prefetch(Arc<Request>, RequestImages, PendingPrefetch),
    /// Answer the queries for the memory; keeps one of them alive.
    Memory(Arc<MemoryQuery>),
    /// Free the model of this reference, when its answers have ended.
    Unload(String, oneshot::Sender<Result<()>>),
    /// Free the model of this reference now, if no command needs it.
    UnloadIdle(String, oneshot::Sender<Result<bool>>),
    /// Free each model that was not used for this long, from now on.
    UnloadAfter(Duration),
    /// Free the data that is kept only for speed.
    FreeCaches(oneshot::Sender<Result<()>>),
    /// Free every model, when no answer runs.
    UnloadAll(oneshot::Sender<Result<()>>),
    /// Limit the prefix cache of each loaded model to this many bytes, when no answer runs.
    LimitPrefixCaches(Option<u64>),
    /// Free every model, when no answer runs, and compute on the device that is set.
    Connect,
    /// Compute something that needs no model, between two steps.
    Compute(WorkerTask),
    /// Any other call.
    Call(Call),
}

/// A call that is made when no answer runs; it answers by itself and does not panic.
pub type Call = Box<dyn FnOnce(&mut dyn ModelAccess) + Send>;

/// A computation that takes no longer than a few steps; it answers by itself and does not panic.
pub type WorkerTask = Box<dyn FnOnce() + Send>;

/// The models of an engine with no running answers, as calls use them.
pub trait ModelAccess {
    /// A model, loaded now if it is not.
    ///
    /// # Errors
    /// If it cannot be loaded.
    fn ensure_loaded(&mut self, source: &FolderSource) -> Result<Rc<LoadedModel>>;

    /// The loaded models.
    #[cfg(feature = "test-support")]
    fn loaded(&self) -> Vec<Rc<LoadedModel>>;

    /// Frees every model.
    fn unload_all(&mut self);

    /// How often answers of the loaded models were preempted, and how often their caches were dropped.
    #[cfg(feature = "test-support")]
    fn preemptions(&self) -> (usize, usize);

    /// Limits the time that a token of a running answer of the loaded models waits.
    #[cfg(feature = "test-support")]
    fn set_gaps(&mut self, gap: Duration);
}
