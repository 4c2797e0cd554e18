//! Answers conversations with models on MLX. The only room that knows MLX: worker, loader, layers, models, caches,
//! sampling.
//!
//! One thread owns everything MLX, from load to drop; [`MlxEngine`] is the handle that any thread may hold. Messages to and
//! from that thread carry text, numbers and events, never an array: [`tensor::Tensor`] cannot be sent.

mod answer;
mod answer_constraint;
mod answer_prefix;
mod bench;
mod blas;
mod cache;
mod call_constraint;
mod count;
mod embedding;
mod error;
mod generation;
mod images;
mod job;
mod kernels;
mod layers;
mod load;
mod loaded_models;
mod logits;
mod logprobs;
mod memory;
mod models;
mod ops;
mod output_constraint;
mod output_stream;
mod pace;
mod parameters;
mod prefetch;
mod product_check;
mod prompt_lookup;
mod repetition_detector;
mod sampler;
mod scheduler;
mod sequence;
mod step;
mod tensor;
#[cfg(feature = "test-support")]
pub mod test_support;
mod thinking_budget;
mod waiting;
mod weights;
mod worker;

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use futures::future::BoxFuture;
use prompt::ChatProcessor;
use protocol::{
    AnswerNowFlag, CancelFlag, CancelOnDrop, Capabilities, EmbeddingRequest, Embeddings, Engine, EngineActivity, EngineEvent, FolderSource,
    JobHandle, KvBits, LoadEvent, LocalEngine, MemoryFigures, MemoryGuard, Message, ModelInfo, ModelSource, Receiver, Request, TokenCount,
};
use tokio::sync::{oneshot, watch};

pub use bench::{bench_prompt, BatchFigures, BenchFigures, LookupFigures};
use count::Counter;
use embedding::{EmbeddingJob, InputReader};
use error::catch_panic;
pub use error::Error;
use images::RequestImages;
use job::{JobContext, PendingPrefetch, Shared};
pub use prompt_lookup::PromptLookup;
pub use sequence::{ImageViews, PromptImage};
use worker::{Command, Worker};

/// What a host gives its engine.
#[derive(Debug, Clone, Default)]
pub struct EngineOptions {
    /// Is asked before a model is loaded and before a chunk is read.
    pub memory_guard: Option<Arc<dyn MemoryGuard>>,
    /// A folder for what is found out and compiled once for this computer's device; everything in it can be made again.
    pub cache_dir: Option<PathBuf>,
    /// MLX's compiled Metal kernels, if they come with the app; MLX looks for them itself otherwise. Only Macs have them.
    pub metal_library: Option<PathBuf>,
    /// When answers are drafted from what they repeat.
    pub prompt_lookup: PromptLookup,
}

/// The engine. Clones share one worker; when the last one is dropped, the running job is cancelled and the worker ends.
#[derive(Clone)]
pub struct MlxEngine(Arc<Handle>);

struct Handle {
    /// `None` only while the handle is being dropped.
    commands: Option<mpsc::Sender<Command>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    shared: Arc<Shared>,
    counter: Counter,
    inputs: InputReader,
}

impl MlxEngine {
    /// Starts the worker without options. Nothing is loaded; MLX is touched for the first time by the worker.
    pub fn start() -> Self {
        Self::with_options(EngineOptions::default())
    }

    /// Sets what MLX reads of the environment; what is set already stays. The engine's start does this too. A program that has other threads by then
    /// does it before them: whoever reads the environment while it is set may read memory that was freed.
    pub fn set_environment(cache_dir: Option<&Path>) {
        if let Some(cache) = cache_dir {
            kernels::keep_compiled(cache);
        }
        kernels::disable_cache_thrashing_check();
    }

    /// Starts the worker.
    pub fn with_options(options: EngineOptions) -> Self {
        Self::set_environment(options.cache_dir.as_deref());
        let (sender, commands) = channel();
        let shared = Arc::new(Shared::new(options));
        let workers = shared.clone();
        let thread = std::thread::Builder::new()
            .name("engine".into())
            .spawn(move || Worker::run(commands, workers));
        let thread = thread
            .map_err(|error| tracing::error!(%error, "the engine's thread could not be started"))
            .ok();
        Self(Arc::new(Handle {
            commands: Some(sender),
            thread: Mutex::new(thread),
            shared,
            counter: Counter::default(),
            inputs: InputReader::default(),
        }))
    }

    /// Makes at most so many answers of programs at once from now on, those of chats on top; 0: as many as suits the device.
    pub fn set_max_sequences(&self, most: usize) {
        self.0.shared.set_max_sequences(most);
    }

    /// Logits after the last of `tokens`, or after each of them if `all`, read in chunks of `chunk` tokens (by default
    /// all at once). Loads the model if it is not loaded. Blocks; not for async code.
    pub fn logits(&self, model: FolderSource, tokens: Vec<u32>, all: bool, chunk: Option<usize>) -> protocol::Result<Vec<Vec<f32>>> {
        self.kv_logits(model, tokens, all, chunk, None)
    }

    /// [`MlxEngine::logits`] with keys and values of full attention in so many bits.
    pub fn kv_logits(
        &self,
        model: FolderSource,
        tokens: Vec<u32>,
        all: bool,
        chunk: Option<usize>,
        kv_bits: Option<KvBits>,
    ) -> protocol::Result<Vec<Vec<f32>>> {
        self.image_logits(model, (tokens, Vec::new()), all, chunk, kv_bits)
    }

    /// [`MlxEngine::kv_logits`] with pictures among the tokens.
    pub fn image_logits(
        &self,
        model: FolderSource,
        (tokens, images): (Vec<u32>, Vec<PromptImage>),
        all: bool,
        chunk: Option<usize>,
        kv_bits: Option<KvBits>,
    ) -> protocol::Result<Vec<Vec<f32>>> {
        self.call(move |worker| logits::logits(worker, &model, (&tokens, images), all, chunk, kv_bits))
    }

    /// [`MlxEngine::kv_logits`] after the prompt of a request, its pictures among it.
    pub fn prompt_logits(&self, mut request: Request, all: bool, chunk: Option<usize>) -> protocol::Result<Vec<Vec<f32>>> {
        let source = folder(&request)?.clone();
        let (images, _) = catch_panic(|| images::prepare(&mut request))?;
        let processor = ChatProcessor::open(&source.path).map_err(Error::from)?;
        let prompt = answer::read_prompt(&processor, &request, &images.plans())?;
        let images = images.placed(&prompt.images);
        self.image_logits(source, (prompt.ids, images), all, chunk, request.kv_bits)
    }

    /// Loads the model anew and measures, for each length of prompt, reading it and generating `generate` tokens. Blocks;
    /// not for async code.
    pub fn bench(&self, model: FolderSource, prompts: Vec<usize>, generate: usize) -> protocol::Result<Vec<BenchFigures>> {
        self.call(move |worker| bench::bench(worker, &model, &prompts, generate))
    }

    /// Measures, for each number of sequences, how fast so many decode `generate` tokens together, after prompts of `prompt`
    /// tokens. Blocks; not for async code.
    pub fn bench_batch(
        &self,
        model: FolderSource,
        sizes: Vec<usize>,
        prompt: usize,
        generate: usize,
    ) -> protocol::Result<Vec<BatchFigures>> {
        self.call(move |worker| bench::bench_batch(worker, &model, &sizes, prompt, generate))
    }

    /// Measures, for each length of drafts that prompt lookup makes, how fast one sequence generates `generate` tokens in single
    /// steps and with drafts that are right, after a prompt of `prompt` tokens. Blocks; not for async code.
    pub fn bench_lookup(&self, model: FolderSource, prompt: usize, generate: usize) -> protocol::Result<Vec<LookupFigures>> {
        self.call(move |worker| bench::bench_lookup(worker, &model, prompt, generate))
    }

    /// The most memory that MLX held since this was asked the last time, in bytes. Blocks; not for async code.
    pub fn take_peak(&self) -> protocol::Result<u64> {
        self.call(|_| {
            let peak = memory::figures()?.peak;
            memory::reset_peak()?;
            Ok(peak)
        })
    }

    /// The version of MLX. Blocks; not for async code.
    pub fn mlx_version(&self) -> protocol::Result<String> {
        self.call(|_| tensor::version())
    }

    /// The library that multiplies matrices on a CPU, its version and its number of threads. Blocks; not for async code.
    pub fn blas(&self) -> protocol::Result<String> {
        self.call(|_| Ok(blas::set_up().to_owned()))
    }

    /// Whether something is being prefetched.
    pub fn prefetching(&self) -> bool {
        self.0.shared.prefetching()
    }

    /// Waits until nothing is being prefetched.
    pub async fn prefetched(&self) {
        self.0.shared.prefetched().await;
    }

    fn job(&self, mut request: Request, change: impl FnOnce(&mut JobContext)) -> JobHandle {
        let takes_long = request.schema.is_some() || request.messages.iter().any(Message::has_media);
        let (sender, events) = protocol::mailbox();
        let (cancel, end_thinking) = (CancelFlag::default(), AnswerNowFlag::default());
        let mut job = JobContext {
            events: sender,
            cancel: cancel.clone(),
            end_thinking: end_thinking.clone(),
            shared: self.0.shared.clone(),
            images: RequestImages::default(),
            #[cfg(feature = "test-support")]
            fails_after: None,
        };
        change(&mut job);
        // Whoever closes the engine does not wait for a schema or a picture.
        let handle = Arc::downgrade(&self.0);
        let begin = move || {
            let mut check = || {
                let schema = request.schema.as_ref();
                schema.map_or(Ok(()), |schema| job.shared.check_schema(schema))?;
                images::prepare(&mut request)
            };
            let notices = match catch_panic(&mut check) {
                Ok((images, notices)) => {
                    job.images = images;
                    notices
                }
                Err(error) => return job.send(EngineEvent::Failed(error.into())),
            };
            notices.into_iter().for_each(|notice| job.send(EngineEvent::Notice(notice)));
            if let Some(handle) = handle.upgrade() {
                let request = Box::new(request);
                Self(handle).send(Command::Generate { request, job });
            }
        };
        if takes_long {
            // Some schemas take seconds to compile, which nobody else has to wait for. If there is no thread, the events end.
            let _ = std::thread::Builder::new().name("request".into()).spawn(begin);
        } else {
            begin();
        }
        JobHandle {
            events,
            cancel,
            end_thinking,
        }
    }

    /// If the worker is gone, the command is dropped, and with it the sender, so that its receiver hears of it.
    fn send(&self, command: Command) {
        if let Some(commands) = &self.0.commands {
            let _ = commands.send(command);
        }
    }

    fn call<T: Send + 'static>(&self, call: impl FnOnce(&mut Worker) -> error::Result<T> + Send + 'static) -> protocol::Result<T> {
        let (sender, answer) = channel();
        self.send(Command::Call(Box::new(move |worker| {
            let _ = sender.send(catch_panic(|| call(worker)));
        })));
        Ok(answer.recv().unwrap_or(Err(Error::WorkerGone))?)
    }

    fn call_async<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Worker) -> error::Result<T> + Send + 'static,
    ) -> BoxFuture<'static, protocol::Result<T>> {
        let (sender, answer) = oneshot::channel();
        self.send(Command::Call(Box::new(move |worker| {
            let _ = sender.send(catch_panic(|| call(worker)));
        })));
        Box::pin(async move { Ok(answer.await.unwrap_or(Err(Error::WorkerGone))?) })
    }
}

impl Engine for MlxEngine {
    fn generate(&self, request: Request) -> JobHandle {
        self.job(request, |_| {})
    }

    fn capabilities(&self, model: &ModelSource) -> Capabilities {
        match model {
            ModelSource::Folder(folder) => {
                let (images, vision_problem) = images::sees(&folder.path);
                Capabilities {
                    continue_answer: true,
                    end_thinking: true,
                    prefetch: true,
                    memory: true,
                    logprobs: true,
                    images,
                    vision_problem,
                    tools: true,
                    kv_bits: true,
                    leaves_computer: false,
                    thinking: None,
                }
            }
            ModelSource::Remote { .. } => Capabilities::default(),
        }
    }

    fn count(&self, request: Request) -> BoxFuture<'static, protocol::Result<TokenCount>> {
        self.0.counter.count(request)
    }

    fn embed(&self, request: EmbeddingRequest) -> BoxFuture<'static, protocol::Result<Embeddings>> {
        let cancel = CancelFlag::default();
        let (job, answer) = EmbeddingJob::new(cancel.clone(), self.0.shared.clone());
        self.0.inputs.read(request, job, self.0.commands.clone());
        let cancel = CancelOnDrop(cancel);
        Box::pin(async move {
            let result = answer.await.unwrap_or(Err(Error::WorkerGone));
            drop(cancel);
            Ok(result?)
        })
    }

    fn local(&self) -> Option<&dyn LocalEngine> {
        Some(self)
    }
}

impl LocalEngine for MlxEngine {
    fn load(&self, model: FolderSource) -> Receiver<LoadEvent> {
        let (events, receiver) = protocol::mailbox();
        self.send(Command::Load { source: model, events });
        receiver
    }

    fn prefetch(&self, mut request: Request) {
        let (handle, pending) = (Arc::downgrade(&self.0), PendingPrefetch::new(&self.0.shared));
        let takes_long = !request.images.is_empty();
        let begin = move || {
            // If something is wrong with a picture, the request that follows will say so.
            let Ok((images, _)) = catch_panic(|| images::prepare(&mut request)) else {
                return;
            };
            if let Some(handle) = handle.upgrade() {
                Self(handle).send(Command::Prefetch(Box::new(request), images, pending));
            }
        };
        if takes_long {
            let _ = std::thread::Builder::new().name("prefetch".into()).spawn(begin);
        } else {
            begin();
        }
    }

    fn unload(&self, reference: &str) -> BoxFuture<'static, protocol::Result<()>> {
        let (done, unloaded) = oneshot::channel();
        self.send(Command::Unload(reference.to_owned(), done));
        Box::pin(async move { Ok(unloaded.await.unwrap_or(Err(Error::WorkerGone))?) })
    }

    fn unload_idle(&self, reference: &str, idle: Duration) -> BoxFuture<'static, protocol::Result<bool>> {
        let (done, unloaded) = oneshot::channel();
        self.send(Command::UnloadIdle(reference.to_owned(), idle, done));
        Box::pin(async move { Ok(unloaded.await.unwrap_or(Err(Error::WorkerGone))?) })
    }

    fn unload_all(&self) -> BoxFuture<'static, protocol::Result<()>> {
        self.call_async(|worker| {
            worker.unload_all();
            Ok(())
        })
    }

    fn free_caches(&self) -> BoxFuture<'static, protocol::Result<()>> {
        let (done, freed) = oneshot::channel();
        self.send(Command::FreeCaches(done));
        Box::pin(async move { Ok(freed.await.unwrap_or(Err(Error::WorkerGone))?) })
    }

    fn limit_prefix_caches(&self, bytes: Option<u64>) {
        if !self.0.shared.set_prefix_cache(bytes) {
            return;
        }
        self.send(Command::Call(Box::new(move |worker| {
            for loaded in worker.loaded() {
                if let Err(error) = loaded.prefix_cache.borrow_mut().limit(bytes) {
                    tracing::warn!(%error, "the prefix cache keeps its budget");
                }
            }
        })));
    }

    fn loaded(&self) -> Vec<ModelInfo> {
        self.0.shared.loaded()
    }

    fn follow(&self) -> watch::Receiver<EngineActivity> {
        self.0.shared.follow()
    }

    fn memory(&self) -> BoxFuture<'static, protocol::Result<MemoryFigures>> {
        // Answered also between two tokens and while a model loads, so that a window that asks does not wait for that.
        let (query, answer) = self.0.shared.query_memory();
        self.send(Command::Memory(query));
        Box::pin(async move { Ok(answer.await.unwrap_or(Err(Error::WorkerGone))?) })
    }
}

/// The folder of a request's model.
fn folder(request: &Request) -> error::Result<&FolderSource> {
    request.model.folder().ok_or_else(|| Error::NotAFolder(request.model.reference()))
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.close();
        self.commands = None;
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}
