//! The one thread that touches MLX: it loads, computes and drops, one command after another.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use protocol::{
    AnswerNowFlag, CancelFlag, Done, EndedBy, EngineEvent, LoadEvent, MemoryFigures, MemoryWatch, ModelInfo, ModelSource, Request, Sender,
    Stop,
};
use tokio::sync::oneshot;

use crate::error::{Error, Result};
use crate::load::{LoadedModel, Opened, Progress};
use crate::tensor::device;
use crate::warm::Warming;
use crate::{blas, kernels, memory, tensor};

/// What other threads may look at while the worker works.
#[derive(Debug, Default)]
pub struct Shared {
    loaded: Mutex<Option<ModelInfo>>,
    /// Set when the engine is being dropped: the running job ends, waiting ones are not begun.
    closing: AtomicBool,
    /// How many calls for reading ahead are waiting or at work.
    ahead: AtomicUsize,
    /// Who wants to know the memory. Each is kept alive by its command in the queue, so that it hears of a worker that is gone.
    askers: Mutex<Vec<Weak<MemoryAsker>>>,
    /// Knows this computer's memory.
    watch: Option<Arc<dyn MemoryWatch>>,
}

/// Takes the answer about the memory, once.
pub type MemoryAsker = Mutex<Option<oneshot::Sender<Result<MemoryFigures>>>>;

impl Shared {
    /// Nothing is loaded, nobody waits.
    pub fn new(watch: Option<Arc<dyn MemoryWatch>>) -> Self {
        Self { watch, ..Self::default() }
    }

    /// Who knows this computer's memory.
    pub fn watch(&self) -> Option<&dyn MemoryWatch> {
        self.watch.as_deref()
    }

    /// The loaded model.
    pub fn loaded(&self) -> Option<ModelInfo> {
        self.lock().clone()
    }

    /// Whether something is being read ahead, or will be.
    pub fn reading_ahead(&self) -> bool {
        self.ahead.load(Ordering::Acquire) > 0
    }

    /// Asks the worker to end soon.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Release);
    }

    fn closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Asks for the memory; the answer fails when the asker is dropped unanswered.
    pub fn ask_memory(&self) -> (Arc<MemoryAsker>, oneshot::Receiver<Result<MemoryFigures>>) {
        let (sender, answer) = oneshot::channel();
        let asker = Arc::new(Mutex::new(Some(sender)));
        self.askers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Arc::downgrade(&asker));
        (asker, answer)
    }

    /// Answers everybody who asked; called on the worker's thread.
    fn tell_memory(&self) {
        let askers = std::mem::take(&mut *self.askers.lock().unwrap_or_else(PoisonError::into_inner));
        for asker in askers.iter().filter_map(Weak::upgrade) {
            if let Some(sender) = asker.lock().unwrap_or_else(PoisonError::into_inner).take() {
                // Nobody may listen any more.
                let _ = sender.send(guard(memory::figures));
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<ModelInfo>> {
        // Nothing that can panic runs under this lock, so a poisoned value is still whole.
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts as one call for reading ahead as long as it lives.
pub struct Ahead(Arc<Shared>);

impl Ahead {
    /// One call more.
    pub fn new(shared: &Arc<Shared>) -> Self {
        shared.ahead.fetch_add(1, Ordering::AcqRel);
        Self(shared.clone())
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.0.ahead.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Work of a job: it may load a model first, and reports while it goes on.
pub type Work = Box<dyn FnOnce(&mut Worker, &Report) -> Result<Done> + Send>;

/// What the worker is asked for.
pub enum Command {
    /// Load a model.
    Load {
        /// Which.
        source: ModelSource,
        /// Who listens.
        events: Sender<LoadEvent>,
    },
    /// Make an answer.
    Job {
        /// How.
        work: Work,
        /// Who listens.
        report: Report,
    },
    /// Read, while nothing else is to be done, what the next prompt of this conversation will begin with.
    Warm(Box<Request>, Ahead),
    /// Answer those who asked for the memory; keeps one of them alive.
    TellMemory(Arc<MemoryAsker>),
    /// Anything else; it answers by itself and does not panic.
    Verb(Box<dyn FnOnce(&mut Worker) + Send>),
}

/// Where a job reports, and where it hears that it shall end.
pub struct Report {
    /// Who listens.
    pub events: Sender<EngineEvent>,
    /// The job's own flag.
    pub cancel: CancelFlag,
    /// The flag that ends the job's thinking.
    pub end_thinking: AnswerNowFlag,
    /// The engine's.
    pub shared: Arc<Shared>,
}

impl Report {
    /// Tells the listener.
    pub fn send(&self, event: EngineEvent) {
        self.events.send(event);
    }

    /// Whether the job shall end. Asked between any two steps of a job, and what others ask is answered then.
    pub fn cancelled(&self) -> bool {
        self.shared.tell_memory();
        self.cancel.is_cancelled() || self.shared.closing()
    }

    /// [`Error::Cancelled`] where the job shall end.
    pub fn go_on(&self) -> Result<()> {
        if self.cancelled() {
            return Err(Error::Cancelled);
        }
        Ok(())
    }
}

/// What lives on the thread. It holds tensors and therefore cannot leave.
pub struct Worker {
    loaded: Option<LoadedModel>,
    /// What is read while nothing else is to be done.
    warming: Option<(Warming, Ahead)>,
    shared: Arc<Shared>,
}

impl Worker {
    /// Takes commands until nobody can send any.
    pub fn run(commands: &Receiver<Command>, shared: Arc<Shared>) {
        // Were MLX unusable, every job would say so.
        match guard(|| Ok((tensor::connect()?, tensor::version()?))) {
            Ok((device, mlx)) => tracing::info!(mlx, device = device.name(), blas = blas::set_up(), "the engine started"),
            Err(error) => tracing::error!(%error, "MLX cannot be used"),
        }
        let mut worker = Self {
            loaded: None,
            warming: None,
            shared,
        };
        loop {
            let command = match commands.try_recv() {
                Err(TryRecvError::Empty) if worker.warming.is_some() => {
                    worker.warm_on();
                    continue;
                }
                Err(TryRecvError::Empty) => commands.recv().ok(),
                waiting => waiting.ok(),
            };
            let Some(command) = command else { break };
            if worker.shared.closing() {
                // Dropping the command tells its listener that the engine is gone.
                continue;
            }
            worker.obey(command);
        }
        worker.unload();
        drop(worker);
        kernels::forget();
        tensor::disconnect();
    }

    fn obey(&mut self, command: Command) {
        if !matches!(command, Command::TellMemory(_)) {
            self.stop_warming();
        }
        match command {
            Command::Warm(request, ahead) => {
                let begun = guard(|| match &self.loaded {
                    Some(loaded) if loaded.opened.is(&request.model) => Warming::begin(loaded, &request),
                    _ => Ok(None),
                });
                self.warming = self.unless_failed(begun).flatten().map(|warming| (warming, ahead));
            }
            Command::TellMemory(asker) => {
                self.shared.tell_memory();
                drop(asker);
            }
            Command::Load { source, events } => {
                let shared = self.shared.clone();
                let mut progress = |done, total| {
                    events.send(LoadEvent::Progress { done, total });
                    if shared.closing() {
                        Err(Error::Gone)
                    } else {
                        Ok(())
                    }
                };
                let loaded = guard(|| self.ensure(&source, &mut progress));
                events.send(match loaded {
                    Ok(_) => LoadEvent::Ready(Box::new(self.loaded.as_ref().expect("just loaded").info.clone())),
                    Err(error) => {
                        self.recover();
                        LoadEvent::Failed(error.into())
                    }
                });
            }
            Command::Job { work, report } => {
                let done = guard(|| work(self, &report));
                self.tell_peak();
                report.send(match done {
                    Ok(done) => EngineEvent::Done(done),
                    Err(Error::Cancelled) => {
                        self.recover();
                        EngineEvent::Done(Done {
                            stop: Stop::Cancelled,
                            ended_by: EndedBy::Cancelled,
                            usage: Default::default(),
                            timing: Default::default(),
                            tokens: Vec::new(),
                        })
                    }
                    Err(error) => {
                        self.forget();
                        self.recover();
                        EngineEvent::Failed(error.into())
                    }
                });
            }
            Command::Verb(verb) => verb(self),
        }
    }

    /// Tells the watch what the loaded model took at most.
    fn tell_peak(&self) {
        if let (Some(watch), Some(loaded)) = (self.shared.watch(), &self.loaded) {
            if let Ok(figures) = guard(memory::figures) {
                watch.took(&loaded.opened.source, figures.peak);
            }
        }
    }

    /// Reads a little of what is to be read ahead.
    fn warm_on(&mut self) {
        let (Some(loaded), Some((warming, _))) = (&self.loaded, &mut self.warming) else {
            self.warming = None;
            return;
        };
        let read = guard(|| warming.read_on(loaded));
        if self.unless_failed(read) != Some(true) {
            self.warming = None;
        }
    }

    /// Gives reading ahead up and keeps what was read.
    fn stop_warming(&mut self) {
        if let (Some(loaded), Some((mut warming, _ahead))) = (&self.loaded, self.warming.take()) {
            let kept = guard(move || warming.keep(loaded));
            self.unless_failed(kept);
        }
    }

    /// What came of work that nobody waits for. A failure costs what has been read, because it may lie in there.
    fn unless_failed<T>(&self, outcome: Result<T>) -> Option<T> {
        match outcome {
            Ok(value) => Some(value),
            Err(error) => {
                tracing::warn!(%error, "reading ahead failed");
                self.forget();
                self.recover();
                None
            }
        }
    }

    /// Drops the copies of what was read.
    fn forget(&self) {
        if let Some(loaded) = &self.loaded {
            loaded.snapshots.borrow_mut().clear();
        }
    }

    /// The small files of a model: those of the loaded one, or read now.
    pub fn open(&self, source: &ModelSource) -> Result<Rc<Opened>> {
        match &self.loaded {
            Some(loaded) if loaded.opened.is(source) => Ok(loaded.opened.clone()),
            _ => Ok(Rc::new(Opened::open(source)?)),
        }
    }

    /// Makes a model the loaded one; `progress` hears resident and total bytes. The result are the milliseconds it took,
    /// 0 where it was loaded already.
    pub fn ensure(&mut self, source: &ModelSource, progress: &mut Progress<'_>) -> Result<f64> {
        let opened = self.open(source)?;
        self.ensure_opened(opened, progress)
    }

    /// [`Worker::ensure`] of a model whose small files have been read.
    pub fn ensure_opened(&mut self, opened: Rc<Opened>, progress: &mut Progress<'_>) -> Result<f64> {
        if self.loaded.as_ref().is_some_and(|loaded| loaded.opened.is(&opened.source)) {
            return Ok(0.0);
        }
        self.unload();
        if let Some(watch) = self.shared.watch() {
            watch.before_load(&opened.source, device().name()).map_err(Error::MemoryShort)?;
        }
        memory::reset_peak()?;
        let loaded = LoadedModel::load(opened, progress)?;
        let load_ms = loaded.info.load_ms;
        *self.shared.lock() = Some(loaded.info.clone());
        self.loaded = Some(loaded);
        Ok(load_ms)
    }

    /// Frees the loaded model.
    pub fn unload(&mut self) {
        *self.shared.lock() = None;
        self.warming = None;
        self.loaded = None;
        self.recover();
    }

    /// The loaded model.
    pub fn loaded(&self) -> Option<&LoadedModel> {
        self.loaded.as_ref()
    }

    /// After an end that may have left work in flight or buffers behind.
    fn recover(&self) {
        let cleared = guard(|| tensor::synchronize().and_then(|()| memory::clear_cache()));
        if let Err(error) = cleared {
            tracing::warn!(%error, "MLX reported an error of work that was given up");
        }
    }
}

/// Turns a panic into an error.
pub fn guard<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Err(Error::Panicked(text.unwrap_or_else(|| "no reason given".into())))
    })
}
