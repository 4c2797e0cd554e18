//! The handle to the engine, which any thread may hold.

use std::path::Path;
use std::sync::mpsc::{self, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use futures::future::BoxFuture;
use mlx::{compiled_kernels, memory};
use protocol::{
    AnswerNowFlag, CancelFlag, CancelOnDrop, Capabilities, ComputeDevice, EmbeddingRequest, Embeddings, Engine,
    EngineActivity, EngineEvent, FolderSource, JobHandle, LoadEvent, LocalEngine, MemoryFigures, ModelInfo,
    ModelSource, Priority, Receiver, Request, TokenCount,
};
use tokio::sync::{oneshot, watch};

use crate::answer::count::Counter;
use crate::answer::images;
use crate::answer::job::JobContext;
use crate::answer::request::{self, WaitingRequest};
use crate::error::{catch_panic, Error, Result};
use crate::kernels;
use crate::loaded::{vision_support, OpenFiles};
use crate::options::EngineOptions;
use crate::pool::Pool;
use crate::schedule::command::{Command, ModelAccess};
use crate::schedule::embeddings::{EmbeddingJob, InputReader};
use crate::schedule::worker::Worker;
use crate::state::{EngineState, PendingPrefetch};

/// The engine. Clones share one worker; when the last one is dropped, the running job is cancelled and the worker ends.
#[derive(Clone)]
pub struct MlxEngine(Arc<Handle>);

struct Handle {
    /// `None` only while the handle is being dropped.
    commands: Option<mpsc::Sender<Command>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    shared: Arc<EngineState>,
    open_files: OpenFiles,
    pool: Pool,
    counter: Counter,
    inputs: InputReader,
}

impl MlxEngine {
    /// Starts the worker without options. Nothing is loaded; MLX is touched for the first time by the worker.
    pub fn start() -> Self {
        Self::with_options(EngineOptions::default())
    }

    /// Sets what MLX reads of the environment, where what is set already stays, and lets threads share their heaps. The
    /// engine's start does this too. A program that has other threads by then does it before them: they would have
    /// heaps of their own, and whoever reads the environment while it is set may read memory that was freed.
    pub fn prepare_process(cache_dir: Option<&Path>) {
        memory::share_heaps();
        if let Some(cache) = cache_dir {
            compiled_kernels::keep(cache);
        }
        compiled_kernels::disable_cache_thrashing_check();
        compiled_kernels::multiply_in_32_bits();
    }

    /// Starts the worker.
    pub fn with_options(options: EngineOptions) -> Self {
        Self::prepare_process(options.cache_dir.as_deref());
        let (sender, commands) = channel();
        let shared = Arc::new(EngineState::new(options));
        let (open_files, pool) = (OpenFiles::default(), Pool::default());
        let workers = (shared.clone(), open_files.clone(), pool.clone());
        let thread = std::thread::Builder::new().name("engine".into()).spawn(move || {
            let (shared, open_files, pool) = workers;
            Worker::run(commands, shared, open_files, pool);
        });
        let thread = thread
            .map_err(|error| tracing::error!(%error, "the engine's thread could not be started"))
            .ok();
        Self(Arc::new(Handle {
            commands: Some(sender),
            thread: Mutex::new(thread),
            counter: Counter::new(pool.clone(), shared.clone()),
            inputs: InputReader::new(pool.clone()),
            shared,
            open_files,
            pool,
        }))
    }

    /// Limits the answers of programs that run at the same time, not counting those of chats; 0: as many as suits the
    /// device.
    pub fn set_max_sequences(&self, most: usize) {
        self.0.shared.set_max_sequences(most);
    }

    /// The state of the worker that other threads see.
    #[cfg(feature = "bench")]
    pub(crate) fn shared(&self) -> &EngineState {
        &self.0.shared
    }

    /// Begins the answer to a request, after `change` of its job.
    pub(crate) fn job(&self, request: Request, change: impl FnOnce(&mut JobContext)) -> JobHandle {
        let (sender, events) = protocol::mailbox();
        let (cancel, end_thinking) = (CancelFlag::default(), AnswerNowFlag::default());
        let mut job = JobContext {
            events: sender,
            cancel: cancel.clone(),
            end_thinking: end_thinking.clone(),
            shared: self.0.shared.clone(),
            #[cfg(feature = "test-support")]
            fails_after: None,
        };
        change(&mut job);
        match request.schema.clone() {
            None => self.answer(request, job),
            Some(schema) => {
                // Closing the engine does not wait for a schema.
                let handle = Arc::downgrade(&self.0);
                let check = move || match catch_panic(|| job.shared.check_schema(&schema)) {
                    Err(error) => job.send(EngineEvent::Failed(error.into())),
                    Ok(()) => {
                        if let Some(handle) = handle.upgrade() {
                            Self(handle).answer(request, job);
                        }
                    }
                };
                // Some take seconds to compile, which no other request has to wait for. If there is no thread, the
                // events end.
                let _ = std::thread::Builder::new().name("schema".into()).spawn(check);
            }
        }
        JobHandle {
            events,
            cancel,
            end_thinking,
        }
    }

    /// Gives a request its place in the worker's queue, and begins to prepare it.
    fn answer(&self, request: Request, job: JobContext) {
        let (cancel, shared, open_files) = (job.cancel.clone(), job.shared.clone(), self.0.open_files.clone());
        let waiting = WaitingRequest {
            model: request.model.clone(),
            priority: request.priority,
            prepared: self.0.pool.submit(
                request.priority,
                move || cancel.is_cancelled() || shared.closing(),
                move || request::prepare(&open_files, request),
            ),
        };
        self.send(Command::Generate {
            request: Box::new(waiting),
            job,
        });
    }

    /// If the worker is gone, the command is dropped, and with it the sender, so that its receiver hears of it.
    pub(crate) fn send(&self, command: Command) {
        if let Some(commands) = &self.0.commands {
            let _ = commands.send(command);
        }
    }

    /// Makes a call on the worker's thread when no answer runs, and waits for it.
    pub(crate) fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut dyn ModelAccess) -> Result<T> + Send + 'static,
    ) -> protocol::Result<T> {
        let (sender, answer) = channel();
        self.send(Command::Call(Box::new(move |worker| {
            let _ = sender.send(catch_panic(|| call(worker)));
        })));
        Ok(answer.recv().unwrap_or(Err(Error::WorkerGone))?)
    }

    /// Computes something that needs no model, between two steps of what runs. Blocks; not for async code.
    pub(crate) fn compute<T: Send + 'static>(&self, compute: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
        let (sender, answer) = channel();
        self.send(Command::Compute(Box::new(move || {
            let _ = sender.send(catch_panic(compute));
        })));
        answer.recv().unwrap_or(Err(Error::WorkerGone))
    }

    /// Sends a command and waits for its answer.
    fn ask<T: Send + 'static>(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<T>>) -> Command,
    ) -> BoxFuture<'static, protocol::Result<T>> {
        let (done, answer) = oneshot::channel();
        self.send(command(done));
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
                let (images, vision_problem) = vision_support(&folder.path);
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
        let handle = Arc::downgrade(&self.0);
        self.0.inputs.read(request, job, move |texts, job| {
            // If the engine is gone, the job is dropped, and its caller learns of it.
            if let Some(handle) = handle.upgrade() {
                Self(handle).send(Command::Embed(Box::new(texts), job));
            }
        });
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
        let images = !request.images.is_empty();
        let begin = move || {
            // If something is wrong with an image, the request that follows will say so.
            let Ok((images, _)) = catch_panic(|| images::prepare(&mut request)) else {
                return;
            };
            if let Some(handle) = handle.upgrade() {
                Self(handle).send(Command::Prefetch(request.into(), images, pending));
            }
        };
        if images {
            self.0.pool.run(Priority::Background, begin);
        } else {
            begin();
        }
    }

    fn unload(&self, reference: &str) -> BoxFuture<'static, protocol::Result<()>> {
        self.ask(|done| Command::Unload(reference.to_owned(), done))
    }

    fn unload_idle(&self, reference: &str) -> BoxFuture<'static, protocol::Result<bool>> {
        self.ask(|done| Command::UnloadIdle(reference.to_owned(), done))
    }

    fn unload_after(&self, idle: Option<Duration>) {
        self.send(Command::UnloadAfter(idle.unwrap_or(Duration::MAX)));
    }

    fn unload_all(&self) -> BoxFuture<'static, protocol::Result<()>> {
        self.ask(Command::UnloadAll)
    }

    fn free_caches(&self) -> BoxFuture<'static, protocol::Result<()>> {
        self.ask(Command::FreeCaches)
    }

    fn limit_prefix_caches(&self, bytes: Option<u64>) {
        if self.0.shared.set_prefix_cache(bytes) {
            self.send(Command::LimitPrefixCaches(bytes));
        }
    }

    fn set_threads(&self, threads: Option<u32>) {
        kernels::set_threads(threads);
    }

    fn set_device(&self, device: ComputeDevice) {
        if self.0.shared.set_device(device) {
            self.send(Command::Connect);
        }
    }

    fn has_card(&self) -> bool {
        self.0.shared.has_card()
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
