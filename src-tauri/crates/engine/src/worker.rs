//! The one thread that touches MLX: it loads, computes and drops, one command after another.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use protocol::{
    AnswerNowFlag, CancelFlag, Done, EndedBy, EngineEvent, FinishReason, FolderSource, LoadEvent, MemoryFigures, MemoryGuard, ModelInfo,
    Request, Sender,
};
use tokio::sync::{oneshot, watch};

use crate::error::{Error, Result};
use crate::load::{LoadedModel, ModelFiles};
use crate::prefetch::Prefetch;
use crate::tensor::device;
use crate::weights::LoadProgress;
use crate::{blas, kernels, memory, tensor};

/// What other threads may look at while the worker works.
#[derive(Debug, Default)]
pub struct Shared {
    loaded: Mutex<Option<ModelInfo>>,
    /// Set when the engine is being dropped: the running job ends, waiting ones do not start.
    closing: AtomicBool,
    /// How many prefetches are waiting or at work.
    prefetches: watch::Sender<usize>,
    /// Open queries for the memory. Each is kept alive by its command in the queue, so that it fails if the worker is gone.
    memory_queries: Mutex<Vec<Weak<MemoryQuery>>>,
    /// Knows this computer's memory.
    memory_guard: Option<Arc<dyn MemoryGuard>>,
}

/// Takes the answer about the memory, once.
pub type MemoryQuery = Mutex<Option<oneshot::Sender<Result<MemoryFigures>>>>;

impl Shared {
    /// Nothing is loaded, nobody waits.
    pub fn new(memory_guard: Option<Arc<dyn MemoryGuard>>) -> Self {
        Self {
            memory_guard,
            ..Self::default()
        }
    }

    /// What knows this computer's memory.
    pub fn memory_guard(&self) -> Option<&dyn MemoryGuard> {
        self.memory_guard.as_deref()
    }

    /// The loaded model.
    pub fn loaded(&self) -> Option<ModelInfo> {
        self.lock().clone()
    }

    /// Whether something is being prefetched, or will be.
    pub fn prefetching(&self) -> bool {
        *self.prefetches.borrow() > 0
    }

    /// Waits until nothing is being prefetched.
    pub async fn prefetched(&self) {
        // Fails if the sender is gone, which `self` holds.
        let _ = self.prefetches.subscribe().wait_for(|pending| *pending == 0).await;
    }

    /// Asks the worker to end soon.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Release);
    }

    fn closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Asks for the memory; the answer fails if the query is dropped unanswered.
    pub fn query_memory(&self) -> (Arc<MemoryQuery>, oneshot::Receiver<Result<MemoryFigures>>) {
        let (sender, answer) = oneshot::channel();
        let query = Arc::new(Mutex::new(Some(sender)));
        self.memory_queries
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Arc::downgrade(&query));
        (query, answer)
    }

    /// Answers all queries for the memory; called on the worker's thread.
    fn answer_memory_queries(&self) {
        let queries = std::mem::take(&mut *self.memory_queries.lock().unwrap_or_else(PoisonError::into_inner));
        for query in queries.iter().filter_map(Weak::upgrade) {
            if let Some(sender) = query.lock().unwrap_or_else(PoisonError::into_inner).take() {
                // Nobody may listen any more.
                let _ = sender.send(catch_panic(memory::figures));
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<ModelInfo>> {
        // Nothing that can panic runs under this lock, so a poisoned value is still whole.
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts as one prefetch as long as it lives.
pub struct PendingPrefetch(Arc<Shared>);

impl PendingPrefetch {
    /// One more prefetch.
    pub fn new(shared: &Arc<Shared>) -> Self {
        shared.prefetches.send_modify(|pending| *pending += 1);
        Self(shared.clone())
    }
}

impl Drop for PendingPrefetch {
    fn drop(&mut self) {
        self.0.prefetches.send_modify(|pending| *pending -= 1);
    }
}

/// The work of a job: it may load a model first, and sends events while it runs.
pub type Work = Box<dyn FnOnce(&mut Worker, &JobContext) -> Result<Done> + Send>;

/// What the worker is asked for.
pub enum Command {
    /// Load a model.
    Load {
        /// Which.
        source: FolderSource,
        /// Who listens.
        events: Sender<LoadEvent>,
    },
    /// Generate an answer.
    Generate {
        /// How.
        work: Work,
        /// Where it sends its events.
        job: JobContext,
    },
    /// Read, at idle priority, what the next prompt of this conversation will begin with.
    Prefetch(Box<Request>, PendingPrefetch),
    /// Answer the queries for the memory; keeps one of them alive.
    Memory(Arc<MemoryQuery>),
    /// Any other call; it answers by itself and does not panic.
    Call(Box<dyn FnOnce(&mut Worker) + Send>),
}

/// Where a job sends its events, and where it hears that it has to end.
pub struct JobContext {
    /// What the job says.
    pub events: Sender<EngineEvent>,
    /// The job's own flag.
    pub cancel: CancelFlag,
    /// The flag that ends the job's thinking.
    pub end_thinking: AnswerNowFlag,
    /// What the engine's handle sees.
    pub shared: Arc<Shared>,
}

impl JobContext {
    /// Sends an event.
    pub fn send(&self, event: EngineEvent) {
        self.events.send(event);
    }

    /// Whether the job has to end. Asked between any two steps of a job; queries for the memory are answered then.
    pub fn cancelled(&self) -> bool {
        self.shared.answer_memory_queries();
        self.cancel.is_cancelled() || self.shared.closing()
    }

    /// [`Error::Cancelled`] if the job has to end.
    pub fn check_cancelled(&self) -> Result<()> {
        if self.cancelled() {
            return Err(Error::Cancelled);
        }
        Ok(())
    }
}

/// What lives on the thread. It holds tensors and therefore cannot leave.
pub struct Worker {
    loaded: Option<LoadedModel>,
    /// What is read while there is nothing else to do.
    prefetch: Option<(Prefetch, PendingPrefetch)>,
    shared: Arc<Shared>,
}

impl Worker {
    /// Takes commands until nobody can send any.
    pub fn run(commands: &Receiver<Command>, shared: Arc<Shared>) {
        // Were MLX unusable, every job would say so.
        match catch_panic(|| Ok((tensor::connect()?, tensor::version()?))) {
            Ok((device, mlx)) => tracing::info!(mlx, device = device.name(), blas = blas::set_up(), "the engine started"),
            Err(error) => tracing::error!(%error, "MLX cannot be used"),
        }
        let mut worker = Self {
            loaded: None,
            prefetch: None,
            shared,
        };
        loop {
            let command = match commands.try_recv() {
                Err(TryRecvError::Empty) if worker.prefetch.is_some() => {
                    worker.continue_prefetch();
                    continue;
                }
                Err(TryRecvError::Empty) => commands.recv().ok(),
                waiting => waiting.ok(),
            };
            let Some(command) = command else { break };
            if worker.shared.closing() {
                // Dropping the command tells its receiver that the engine is gone.
                continue;
            }
            worker.handle(command);
        }
        worker.unload();
        drop(worker);
        kernels::clear();
        tensor::disconnect();
    }

    fn handle(&mut self, command: Command) {
        if !matches!(command, Command::Memory(_)) {
            self.stop_prefetch();
        }
        match command {
            Command::Prefetch(request, pending) => {
                let prefetch = catch_panic(|| match &self.loaded {
                    Some(loaded) if request.model.folder().is_some_and(|folder| loaded.files.is_of(folder)) => {
                        Prefetch::begin(loaded, &request)
                    }
                    _ => Ok(None),
                });
                self.prefetch = self.unless_failed(prefetch).flatten().map(|prefetch| (prefetch, pending));
            }
            Command::Memory(query) => {
                self.shared.answer_memory_queries();
                drop(query);
            }
            Command::Load { source, events } => {
                let shared = self.shared.clone();
                let mut progress = |done, total| {
                    events.send(LoadEvent::Progress { done, total });
                    if shared.closing() {
                        Err(Error::WorkerGone)
                    } else {
                        Ok(())
                    }
                };
                let loaded = catch_panic(|| self.ensure_loaded(&source, &mut progress));
                events.send(match loaded {
                    Ok(_) => LoadEvent::Ready(Box::new(self.loaded.as_ref().expect("just loaded").info.clone())),
                    Err(error) => {
                        self.recover();
                        LoadEvent::Failed(error.into())
                    }
                });
            }
            Command::Generate { work, job } => {
                let done = catch_panic(|| work(self, &job));
                self.record_peak();
                job.send(match done {
                    Ok(done) => EngineEvent::Done(done),
                    Err(Error::Cancelled) => {
                        self.recover();
                        EngineEvent::Done(Done {
                            finish_reason: FinishReason::Cancelled,
                            ended_by: EndedBy::Cancelled,
                            usage: Some(Default::default()),
                            timing: Default::default(),
                            tokens: Vec::new(),
                        })
                    }
                    Err(error) => {
                        self.clear_prefix_cache();
                        self.recover();
                        EngineEvent::Failed(error.into())
                    }
                });
            }
            Command::Call(call) => call(self),
        }
    }

    /// Tells the memory guard what the loaded model took at most.
    fn record_peak(&self) {
        if let (Some(guard), Some(loaded)) = (self.shared.memory_guard(), &self.loaded) {
            if let Ok(figures) = catch_panic(memory::figures) {
                guard.record_peak(&loaded.files.source, figures.peak);
            }
        }
    }

    /// Reads one chunk of what is prefetched.
    fn continue_prefetch(&mut self) {
        let (Some(loaded), Some((prefetch, _))) = (&self.loaded, &mut self.prefetch) else {
            self.prefetch = None;
            return;
        };
        let more = catch_panic(|| prefetch.read_chunk(loaded));
        if self.unless_failed(more) != Some(true) {
            self.prefetch = None;
        }
    }

    /// Gives the prefetch up and keeps what was read.
    fn stop_prefetch(&mut self) {
        if let (Some(loaded), Some((mut prefetch, _pending))) = (&self.loaded, self.prefetch.take()) {
            let stored = catch_panic(move || prefetch.store(loaded));
            self.unless_failed(stored);
        }
    }

    /// The result of work that nobody waits for. A failure empties the prefix cache, because its cause may lie in there.
    fn unless_failed<T>(&self, outcome: Result<T>) -> Option<T> {
        match outcome {
            Ok(value) => Some(value),
            Err(error) => {
                tracing::warn!(%error, "a prefetch failed");
                self.clear_prefix_cache();
                self.recover();
                None
            }
        }
    }

    /// Drops the copies of what was read.
    fn clear_prefix_cache(&self) {
        if let Some(loaded) = &self.loaded {
            loaded.prefix_cache.borrow_mut().clear();
        }
    }

    /// The small files of a model: those of the loaded one, or read now.
    pub fn model_files(&self, source: &FolderSource) -> Result<Rc<ModelFiles>> {
        match &self.loaded {
            Some(loaded) if loaded.files.is_of(source) => Ok(loaded.files.clone()),
            _ => Ok(Rc::new(ModelFiles::open(source)?)),
        }
    }

    /// Makes a model the loaded one; `progress` gets resident and total bytes. Returns the milliseconds it took, 0 if it was
    /// loaded already.
    pub fn ensure_loaded(&mut self, source: &FolderSource, progress: &mut LoadProgress<'_>) -> Result<f64> {
        let files = self.model_files(source)?;
        self.ensure_loaded_files(files, progress)
    }

    /// [`Worker::ensure_loaded`] of a model whose small files have been read.
    pub fn ensure_loaded_files(&mut self, files: Rc<ModelFiles>, progress: &mut LoadProgress<'_>) -> Result<f64> {
        if self.loaded.as_ref().is_some_and(|loaded| loaded.files.is_of(&files.source)) {
            return Ok(0.0);
        }
        self.unload();
        if let Some(guard) = self.shared.memory_guard() {
            guard.before_load(&files.source, device().name()).map_err(Error::MemoryShort)?;
        }
        memory::reset_peak()?;
        let loaded = LoadedModel::load(files, progress)?;
        let load_ms = loaded.info.load_ms;
        *self.shared.lock() = Some(loaded.info.clone());
        self.loaded = Some(loaded);
        Ok(load_ms)
    }

    /// Frees the loaded model.
    pub fn unload(&mut self) {
        *self.shared.lock() = None;
        self.prefetch = None;
        self.loaded = None;
        self.recover();
    }

    /// The loaded model.
    pub fn loaded(&self) -> Option<&LoadedModel> {
        self.loaded.as_ref()
    }

    /// Waits for work that an abnormal end may have left in flight, and frees its buffers.
    fn recover(&self) {
        let cleared = catch_panic(|| tensor::synchronize().and_then(|()| memory::clear_cache()));
        if let Err(error) = cleared {
            tracing::warn!(%error, "MLX reported an error of work that was given up");
        }
    }
}

/// Turns a panic into an error.
pub fn catch_panic<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Err(Error::Panicked(text.unwrap_or_else(|| "no reason given".into())))
    })
}
