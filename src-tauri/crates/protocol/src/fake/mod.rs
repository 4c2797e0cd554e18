//! A scripted engine for the tests of other crates; it records its requests.

mod injections;
mod toolbox;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;

pub use injections::injections;
pub use toolbox::{FakeCall, FakeToolbox};

use crate::{
    mailbox, AnswerNowFlag, CancelFlag, Capabilities, ComputeDevice, EmbeddingInput, EmbeddingRequest, Embeddings,
    Engine, EngineEvent, Error, ErrorCode, FolderSource, JobHandle, LoadEvent, LocalEngine, MemoryFigures, ModelInfo,
    ModelSource, Reason, Receiver, Request, Result, Sender, ThinkingControl, TokenCount,
};

/// A job that the test controls.
#[derive(Debug)]
pub struct FakeJob {
    /// The request of the job.
    pub request: Request,
    /// The events that the test sends as the engine.
    pub events: Sender<EngineEvent>,
    /// Set when the code under test cancels.
    pub cancel: CancelFlag,
    /// Set when the code under test ends the thinking.
    pub end_thinking: AnswerNowFlag,
}

#[derive(Debug, Default)]
struct State {
    jobs: VecDeque<FakeJob>,
    prefetched: Vec<Request>,
    loaded: Vec<ModelInfo>,
    /// References of models without vision, with the reason if their encoder is broken; all others support it.
    without_vision: BTreeMap<String, Option<Error>>,
    /// The time since the last use of what is loaded; `None` while it answers.
    idle: Option<Duration>,
    /// The time that requests gave each model, by reference.
    keep_alive: BTreeMap<String, Duration>,
    /// The time that every model has, if it was set.
    unload_after: Option<Duration>,
    threads: Option<u32>,
    device: ComputeDevice,
    memory: MemoryFigures,
}

impl State {
    fn keep_alive(&mut self, model: &ModelSource, time: Option<Duration>) {
        if let Some(time) = time {
            self.keep_alive.insert(model.reference(), time);
            self.unload_due();
        }
    }

    /// Frees what has been idle for its time. There is no clock: tests set the idle time.
    fn unload_due(&mut self) {
        let Some(idle) = self.idle else { return };
        let (keep_alive, unload_after) = (&self.keep_alive, self.unload_after.unwrap_or(Duration::MAX));
        self.loaded.retain(|loaded| {
            let own = keep_alive.get(&loaded.reference).copied().unwrap_or(Duration::MAX);
            let time = own.min(unload_after);
            time == Duration::MAX || idle < time
        });
    }
}

/// The fake. Clones share one state.
#[derive(Debug, Clone, Default)]
pub struct FakeEngine(Arc<Mutex<State>>);

impl FakeEngine {
    /// A fake with nothing loaded.
    pub fn new() -> Self {
        Self::default()
    }

    /// The oldest job that the test has not taken.
    pub fn take_job(&self) -> Option<FakeJob> {
        self.state().jobs.pop_front()
    }

    /// The prefetches since the last call.
    pub fn take_prefetched(&self) -> Vec<Request> {
        std::mem::take(&mut self.state().prefetched)
    }

    /// Makes the model of this reference one without vision.
    pub fn make_blind(&self, reference: &str) {
        self.state().without_vision.insert(reference.to_owned(), None);
    }

    /// Makes the model of this reference one with a broken vision encoder, for this reason.
    pub fn break_vision(&self, reference: &str, problem: &str) {
        let message = format!("this model's vision part cannot be read: {problem}");
        let error = Error::because(Reason::ModelVision, message).with("reason", problem);
        self.state().without_vision.insert(reference.to_owned(), Some(error));
    }

    /// Sets the time since the last use of what is loaded; `None` while it answers, as at first.
    pub fn set_idle(&self, idle: Option<Duration>) {
        let mut state = self.state();
        state.idle = idle;
        state.unload_due();
    }

    /// The number that [`LocalEngine::set_threads`] set last.
    pub fn threads(&self) -> Option<u32> {
        self.state().threads
    }

    /// The device that [`LocalEngine::set_device`] set last.
    pub fn device(&self) -> ComputeDevice {
        self.state().device
    }

    /// The time that [`LocalEngine::unload_after`] set last.
    pub fn unloads_after(&self) -> Option<Duration> {
        self.state().unload_after
    }

    /// Sets the memory figures: `active` for models, freed with the last of them, and `cache` for caches.
    pub fn set_memory(&self, memory: MemoryFigures) {
        self.state().memory = memory;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine for FakeEngine {
    fn generate(&self, request: Request) -> JobHandle {
        let (sender, events) = mailbox();
        let (cancel, end_thinking) = (CancelFlag::default(), AnswerNowFlag::default());
        self.state().keep_alive(&request.model, request.keep_alive);
        if request.messages.is_empty() && request.raw_prompt.is_none() {
            sender.send(EngineEvent::Failed(Error::new(
                ErrorCode::BadRequest,
                "there is nothing to answer",
            )));
        } else {
            self.state().jobs.push_back(FakeJob {
                request,
                events: sender,
                cancel: cancel.clone(),
                end_thinking: end_thinking.clone(),
            });
        }
        JobHandle {
            events,
            cancel,
            end_thinking,
        }
    }

    fn capabilities(&self, model: &ModelSource) -> Capabilities {
        let local = model.folder().is_some();
        let without_vision = self.state().without_vision.get(&model.reference()).cloned();
        Capabilities {
            continue_answer: local,
            end_thinking: local,
            prefetch: local,
            memory: local,
            images: without_vision.is_none(),
            vision_problem: without_vision.flatten(),
            tools: true,
            kv_bits: local,
            leaves_computer: !local,
            ..Capabilities::default()
        }
    }

    /// Counts one token per byte of text.
    fn count(&self, request: Request) -> BoxFuture<'static, Result<TokenCount>> {
        let tokens: usize = request
            .messages
            .iter()
            .map(|message| message.text_with_placeholders().len())
            .sum();
        Box::pin(std::future::ready(Ok(TokenCount {
            tokens: u32::try_from(tokens).unwrap_or(u32::MAX),
            estimated: request.model.folder().is_none(),
        })))
    }

    /// Returns three numbers for each input: its number of tokens, 1 and 0. A text has one token per byte.
    fn embed(&self, request: EmbeddingRequest) -> BoxFuture<'static, Result<Embeddings>> {
        let tokens = |input: &EmbeddingInput| match input {
            EmbeddingInput::Text(text) => text.len(),
            EmbeddingInput::Tokens(ids) => ids.len(),
            EmbeddingInput::Pair { question, text } => question.len() + text.len(),
        };
        self.state().keep_alive(&request.model, request.keep_alive);
        let counts: Vec<usize> = request.inputs.iter().map(tokens).collect();
        let width = request.dimensions.map_or(3, |dimensions| dimensions as usize);
        Box::pin(std::future::ready(Ok(Embeddings {
            vectors: counts
                .iter()
                .map(|count| vec![*count as f32, 1.0, 0.0].into_iter().take(width).collect())
                .collect(),
            prompt_tokens: counts.iter().sum::<usize>() as u32,
        })))
    }

    fn local(&self) -> Option<&dyn LocalEngine> {
        Some(self)
    }
}

impl LocalEngine for FakeEngine {
    fn load(&self, model: FolderSource) -> Receiver<LoadEvent> {
        let (sender, receiver) = mailbox();
        let info = ModelInfo {
            reference: model.reference,
            revision: model.revision.unwrap_or_else(|| "fake".into()),
            family: "fake".into(),
            quantization: "none".into(),
            wrong_products: Vec::new(),
            parameters: 0,
            resident_bytes: 0,
            context: 4096,
            thinking: ThinkingControl::Switch { default_on: false },
            template_hash: "fake".into(),
            device: "cpu".into(),
            processor: None,
            load_ms: 0.0,
            supports_vision: false,
        };
        self.state().loaded = vec![info.clone()];
        sender.send(LoadEvent::Ready(Box::new(info)));
        receiver
    }

    fn prefetch(&self, request: Request) {
        self.state().prefetched.push(request);
    }

    fn unload(&self, reference: &str) -> BoxFuture<'static, Result<()>> {
        self.state().loaded.retain(|loaded| loaded.reference != reference);
        Box::pin(std::future::ready(Ok(())))
    }

    fn unload_idle(&self, reference: &str) -> BoxFuture<'static, Result<bool>> {
        let mut state = self.state();
        let at = state.loaded.iter().position(|loaded| loaded.reference == reference);
        let unloaded = at.filter(|_| state.idle.is_some()).map(|at| state.loaded.remove(at));
        if state.loaded.is_empty() {
            state.memory.active = 0;
        }
        Box::pin(std::future::ready(Ok(unloaded.is_some())))
    }

    fn set_threads(&self, threads: Option<u32>) {
        self.state().threads = threads;
    }

    fn set_device(&self, device: ComputeDevice) {
        self.state().device = device;
    }

    fn unload_after(&self, idle: Option<Duration>) {
        let mut state = self.state();
        state.unload_after = idle;
        state.unload_due();
    }

    fn unload_all(&self) -> BoxFuture<'static, Result<()>> {
        self.state().loaded.clear();
        Box::pin(std::future::ready(Ok(())))
    }

    fn free_caches(&self) -> BoxFuture<'static, Result<()>> {
        self.state().memory.cache = 0;
        Box::pin(std::future::ready(Ok(())))
    }

    fn loaded(&self) -> Vec<ModelInfo> {
        self.state().loaded.clone()
    }

    fn memory(&self) -> BoxFuture<'static, Result<MemoryFigures>> {
        Box::pin(std::future::ready(Ok(self.state().memory)))
    }
}
