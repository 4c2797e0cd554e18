//! The traits of engines: MLX in this process, and endpoints of other programs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use ts_rs::TS;

use crate::{
    Capabilities, EmbeddingRequest, Embeddings, EngineEvent, Error, ErrorCode, FolderSource, LoadEvent, MemoryFigures,
    ModelInfo, ModelSource, Receiver, Request, Result, TokenCount,
};

/// Cancels a job; checked between prefill chunks and between tokens. Clones cancel the same job.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag(CancellationToken);

impl CancelFlag {
    /// Ends the job soon. Has no effect a second time, or after the end.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// True after a request to cancel.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits for a request to cancel.
    pub async fn cancelled(&self) {
        self.0.cancelled().await;
    }
}

/// Cancels its job when dropped, so that nothing is computed without a reader.
#[derive(Debug)]
pub struct CancelOnDrop(pub CancelFlag);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Ends a job's thinking, so that it answers; checked between tokens. Clones address the same job.
#[derive(Debug, Clone, Default)]
pub struct AnswerNowFlag(Arc<AtomicBool>);

impl AnswerNowFlag {
    /// Ends the current or next thought; after it, nothing changes. It cannot be undone.
    pub fn answer_now(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// True after a request to answer now.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A running job: its events and the handles that cancel it or end its thinking. Dropping the events does not cancel.
#[derive(Debug)]
pub struct JobHandle {
    /// The engine's events; the last is exactly one `Done` or `Failed`.
    pub events: Receiver<EngineEvent>,
    /// Cancels the job.
    pub cancel: CancelFlag,
    /// Ends the job's thinking.
    pub end_thinking: AnswerNowFlag,
}

/// Answers conversations. The interface speaks of messages, options and events, never of arrays, weights or sockets.
/// Every call returns at once and may come from any thread.
pub trait Engine: Send + Sync + 'static {
    /// Generates an answer. An engine of this computer loads the request's model first if needed; a model that is not
    /// this engine's ends the job with `ModelNotFound`.
    fn generate(&self, request: Request) -> JobHandle;

    /// The features that the engine supports for a model.
    fn capabilities(&self, model: &ModelSource) -> Capabilities;

    /// Counts the prompt tokens of a request. Loads nothing and does not wait for running answers; an engine without
    /// the model's tokenizer estimates. Fails as [`Engine::generate`] does before the first token.
    fn count(&self, request: Request) -> BoxFuture<'static, Result<TokenCount>>;

    /// Computes a vector for each input. The model is loaded first if needed; dropping the future cancels the job.
    ///
    /// # Errors
    /// `BadRequest` if the model is not an embedding model, does not support these dimensions, or an input is empty or
    /// has an invalid token; `ContextFull`, with the input's index, if one is longer than the model's context; any
    /// error of loading a model. An engine without embedding models refuses every request.
    fn embed(&self, request: EmbeddingRequest) -> BoxFuture<'static, Result<Embeddings>> {
        let message = format!(
            "{} cannot be asked for embeddings; choose an embedding model of this computer",
            request.model.reference()
        );
        Box::pin(std::future::ready(Err(Error::new(ErrorCode::BadRequest, message))))
    }

    /// The engine of this computer, if this is one or forwards to one.
    fn local(&self) -> Option<&dyn LocalEngine> {
        None
    }
}

/// The activity of this computer's engine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EngineActivity {
    /// True while an answer, an embedding or a model load is pending.
    pub busy: bool,
    /// The references of the loaded models, the most recently used last.
    pub loaded: Vec<String>,
    /// The number of answers of programs that run at the same time; 0: unknown.
    pub slots: usize,
}

/// The choice of the device that computes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ComputeDevice {
    /// The GPU, if there is one.
    #[default]
    Auto,
    /// The processor.
    Cpu,
}

/// An engine that loads models from folders into this computer's memory.
pub trait LocalEngine: Engine {
    /// Loads a model, replacing the least recently used ones if it does not fit next to them; a model that is answering
    /// is never replaced. Exactly one `Ready` or `Failed` follows any number of `Progress`. Jobs that arrive meanwhile
    /// wait.
    fn load(&self, model: FolderSource) -> Receiver<LoadEvent>;

    /// Prefetches ("reads ahead"), at idle priority, the beginning of this conversation's next request: `request` holds
    /// the messages so far, and a question will follow. Nothing is loaded for it: it waits for the model to be loaded.
    /// The newest call replaces earlier ones, and every other call takes precedence. An engine without a prefix cache
    /// does nothing.
    fn prefetch(&self, request: Request);

    /// Unloads the model of this reference after its running jobs have ended; does nothing if it is not loaded.
    fn unload(&self, reference: &str) -> BoxFuture<'static, Result<()>>;

    /// Frees the model of this reference now if no request waits for it; returns true if it did. A model that answers
    /// stays, and so does one next to which another is being loaded.
    fn unload_idle(&self, reference: &str) -> BoxFuture<'static, Result<bool>>;

    /// Sets the time after which the engine frees a model that nothing used meanwhile, whatever
    /// [`Request::keep_alive`] allows; `None`: models stay until another one needs the memory, as at first. A model
    /// that answers stays, and so does one next to which another is being loaded.
    fn unload_after(&self, idle: Option<Duration>);

    /// Unloads every model after the running jobs have ended.
    fn unload_all(&self) -> BoxFuture<'static, Result<()>>;

    /// Frees caches, such as the prefix cache. Done between two steps: running answers go on unchanged, and the next
    /// prompts are prefilled in full. An engine without caches does nothing.
    fn free_caches(&self) -> BoxFuture<'static, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Limits the prefix cache of each loaded model to this many bytes, from now on; `None` for a limit that suits this
    /// computer. An engine without a prefix cache does nothing.
    fn limit_prefix_caches(&self, _bytes: Option<u64>) {}

    /// Lets so many threads compute on the processor from now on; `None` for as many as suit this computer. An engine
    /// that computes elsewhere does nothing.
    fn set_threads(&self, _threads: Option<u32>) {}

    /// Computes on this device from now on. If that is a change, every model is unloaded after the running jobs have
    /// ended, and jobs that arrive meanwhile wait. An engine without a choice does nothing.
    fn set_device(&self, _device: ComputeDevice) {}

    /// True if there is a graphics card with a memory of its own, whether it is used or not. Known once the engine has
    /// answered a call.
    fn has_card(&self) -> bool {
        false
    }

    /// The loaded models, the most recently used last.
    fn loaded(&self) -> Vec<ModelInfo>;

    /// The engine's activity and its changes. An engine in another process reports none.
    fn follow(&self) -> watch::Receiver<EngineActivity> {
        watch::channel(EngineActivity::default()).1
    }

    /// The engine's memory.
    fn memory(&self) -> BoxFuture<'static, Result<MemoryFigures>>;
}

/// Knows this computer's memory, so that an engine can stop before the system stops it. Called on the engine's thread,
/// never between tokens. Devices are named as in [`ModelInfo::device`].
pub trait MemoryGuard: std::fmt::Debug + Send + Sync + 'static {
    /// Checks that a model may be loaded once the engine has freed `freed` bytes and keeps `kept` bytes of other
    /// models. Next to other models it has to fit comfortably, because they can be unloaded for it.
    ///
    /// # Errors
    /// `MemoryShort` if it clearly will not fit.
    fn before_load(&self, model: &FolderSource, device: &str, kept: u64, freed: u64) -> Result<()>;

    /// Checks that prefill may go on: the next chunk takes `bytes` in addition to the engine's `held` bytes.
    ///
    /// # Errors
    /// `MemoryShort` if they clearly are not available.
    fn before_chunk(&self, bytes: u64, device: &str, held: u64) -> Result<()>;

    /// Records the peak memory of a model so far, in bytes; called after each answer.
    fn record_peak(&self, model: &FolderSource, bytes: u64);
}
