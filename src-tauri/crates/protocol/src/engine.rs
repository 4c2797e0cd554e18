//! The traits that engines fulfil: MLX in this process, and endpoints of other programs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::{watch, Notify};

use crate::{
    Capabilities, EmbeddingRequest, Embeddings, EngineEvent, Error, ErrorCode, FolderSource, LoadEvent, MemoryFigures,
    ModelInfo, ModelSource, Receiver, Request, Result, TokenCount,
};

/// Asks a job to end; it is looked at between prefill chunks and between tokens. Clones ask the same job.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag(Arc<Cancel>);

#[derive(Debug, Default)]
struct Cancel {
    asked: AtomicBool,
    waiting: Notify,
}

impl CancelFlag {
    /// Ends the job soon. Doing it twice, or after the end, changes nothing.
    pub fn cancel(&self) {
        self.0.asked.store(true, Ordering::Release);
        self.0.waiting.notify_waiters();
    }

    /// Whether somebody asked.
    pub fn is_cancelled(&self) -> bool {
        self.0.asked.load(Ordering::Acquire)
    }

    /// Waits until somebody asks.
    pub async fn cancelled(&self) {
        let waiting = self.0.waiting.notified();
        tokio::pin!(waiting);
        // Registered before looking, so that no call falls between the two.
        waiting.as_mut().enable();
        if !self.is_cancelled() {
            waiting.await;
        }
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

/// Something that answers conversations. It speaks of messages, options and events, never of arrays, weights or sockets, and
/// every call returns at once; calls may come from any thread.
pub trait Engine: Send + Sync + 'static {
    /// Makes an answer. An engine of this computer loads the request's model first if it is not loaded; a model that is not
    /// this engine's ends the job with `ModelNotFound`.
    fn generate(&self, request: Request) -> JobHandle;

    /// What can be done with a model.
    fn capabilities(&self, model: &ModelSource) -> Capabilities;

    /// How many tokens the prompt of a request has. Nothing is loaded for it and no running answer is waited for; an engine
    /// that does not have the model's tokenizer estimates. Fails as [`Engine::generate`] does before the first token.
    fn count(&self, request: Request) -> BoxFuture<'static, Result<TokenCount>>;

    /// Makes a vector of each input. The model is loaded first if it is not loaded; dropping the future ends the job.
    ///
    /// # Errors
    /// `BadRequest` if the model makes no vectors, or not of these dimensions, or an input is empty or holds what is no token;
    /// `ContextFull`, with the input's index, if one is longer than the model reads; what loading a model may fail with. An engine
    /// without embedding models refuses everything.
    fn embed(&self, request: EmbeddingRequest) -> BoxFuture<'static, Result<Embeddings>> {
        let message = format!(
            "{} cannot be asked for embeddings; choose an embedding model of this computer",
            request.model.reference()
        );
        Box::pin(std::future::ready(Err(Error::new(ErrorCode::BadRequest, message))))
    }

    /// The engine of this computer, if this is one or sends to one.
    fn local(&self) -> Option<&dyn LocalEngine> {
        None
    }
}

/// What an engine of this computer does at the moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EngineActivity {
    /// Whether somebody waits for it: for an answer, for vectors, for a model.
    pub busy: bool,
    /// The references of the loaded models, the one used last at the end.
    pub loaded: Vec<String>,
    /// The number of answers of programs that run at the same time; 0: unknown.
    pub slots: usize,
}

/// An engine that loads models from folders into this computer's memory.
pub trait LocalEngine: Engine {
    /// Loads a model, replacing those used least recently if it does not fit beside them; one that answers is never replaced. Exactly one `Ready` or `Failed` follows any number of
    /// `Progress`. Jobs that are asked for meanwhile wait.
    fn load(&self, model: FolderSource) -> Receiver<LoadEvent>;

    /// Prefetches ("reads ahead"), at idle priority, what the next request of this conversation will begin with: the messages of
    /// `request` are those so far, and a question will follow. Nothing is loaded for it: a model that is not loaded is waited for. The
    /// newest call replaces earlier ones, and every other call comes first. An engine without a prefix cache does nothing.
    fn prefetch(&self, request: Request);

    /// Frees the model of this reference and all its memory, after its running jobs have ended; changes nothing if it is not loaded.
    fn unload(&self, reference: &str) -> BoxFuture<'static, Result<()>>;

    /// Frees the model of this reference now if no request waits for it; returns true if it did. A model that answers
    /// stays, and so does one next to which another is being loaded.
    fn unload_idle(&self, reference: &str) -> BoxFuture<'static, Result<bool>>;

    /// Sets the time after which the engine frees a model that nothing used meanwhile, whatever
    /// [`Request::keep_alive`] allows; `None`: models stay until another one needs the memory, as at first. A model
    /// that answers stays, and so does one next to which another is being loaded.
    fn unload_after(&self, idle: Option<Duration>);

    /// Frees every model. Running jobs end first.
    fn unload_all(&self) -> BoxFuture<'static, Result<()>>;

    /// Frees what is kept only to be faster, such as what was read of earlier prompts. Done between two steps: answers that run go on as
    /// they would have, and the next prompts are read whole. An engine that keeps nothing does nothing.
    fn free_caches(&self) -> BoxFuture<'static, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Lets each loaded model keep at most so many bytes of conversations that it has read, from now on; `None`: as many as suit this
    /// computer. An engine without a prefix cache does nothing.
    fn limit_prefix_caches(&self, _bytes: Option<u64>) {}

    /// The loaded models, the one used last at the end.
    fn loaded(&self) -> Vec<ModelInfo>;

    /// What the engine does, and whenever that changes. Of an engine in another process nothing is heard.
    fn follow(&self) -> watch::Receiver<EngineActivity> {
        watch::channel(EngineActivity::default()).1
    }

    /// The engine's memory.
    fn memory(&self) -> BoxFuture<'static, Result<MemoryFigures>>;
}

/// Knows this computer's memory, so that an engine can stop before the system stops it. Asked on the engine's thread, never
/// between tokens. Devices are named as in [`ModelInfo::device`].
pub trait MemoryGuard: std::fmt::Debug + Send + Sync + 'static {
    /// Whether a model may be loaded, once the engine has given `freed` bytes back and holds `kept` bytes of other models. Beside
    /// others it has to fit comfortably, because they can make room for it.
    ///
    /// # Errors
    /// `MemoryShort` if it clearly will not fit.
    fn before_load(&self, model: &FolderSource, device: &str, kept: u64, freed: u64) -> Result<()>;

    /// Whether reading may go on, which is about to take so many bytes more than the `held` bytes that the engine has.
    ///
    /// # Errors
    /// `MemoryShort` if they clearly are not there.
    fn before_chunk(&self, bytes: u64, device: &str, held: u64) -> Result<()>;

    /// Records the most that a model took so far, in bytes; called after each answer.
    fn record_peak(&self, model: &FolderSource, bytes: u64);
}
