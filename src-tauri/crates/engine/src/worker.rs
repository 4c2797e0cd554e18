//! The one thread that touches MLX: it takes commands, loads models, and lets the scheduler compute in between.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::Arc;
use std::time::{Duration, Instant};

use protocol::{Done, EndedBy, EngineEvent, FinishReason, FolderSource, LoadEvent, Priority, Request, Sender, Stage};

use crate::answer;
use crate::error::{catch_panic, Error, Result};
use crate::generation::Generation;
use crate::job::{JobContext, MemoryQuery, PendingPrefetch, Shared};
use crate::load::{LoadedModel, ModelFiles};
use crate::prefetch::Prefetch;
use crate::scheduler::Scheduler;
use crate::tensor::{device, Device};
use crate::weights::LoadProgress;
use crate::{blas, folder, kernels, memory, tensor};

/// Requests of programs that wait at most; more are refused.
const MAX_WAITING: usize = 32;

/// Who has waited so long is served like the class above, and nobody passes a request for another model any more.
const PATIENCE: Duration = Duration::from_secs(30);

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
        /// To what.
        request: Box<Request>,
        /// Where it sends its events.
        job: JobContext,
    },
    /// Read, at idle priority, what the next prompt of this conversation will begin with.
    Prefetch(Box<Request>, PendingPrefetch),
    /// Answer the queries for the memory; keeps one of them alive.
    Memory(Arc<MemoryQuery>),
    /// Any other call, when no answer runs; it answers by itself and does not panic.
    Call(Box<dyn FnOnce(&mut Worker) + Send>),
}

/// A command that waits for its turn.
struct Waiting {
    work: Work,
    since: Instant,
}

enum Work {
    Load(FolderSource, Sender<LoadEvent>),
    Generate(Box<Request>, JobContext),
    Call(Box<dyn FnOnce(&mut Worker) + Send>),
}

impl Waiting {
    /// The class it is served in.
    fn class(&self) -> Priority {
        match &self.work {
            Work::Generate(request, _) if request.priority == Priority::Background && self.since.elapsed() > PATIENCE => Priority::Api,
            Work::Generate(request, _) => request.priority,
            Work::Load(..) | Work::Call(_) => Priority::Chat,
        }
    }
}

/// What lives on the thread. It holds tensors and therefore cannot leave.
pub struct Worker {
    loaded: Option<Rc<LoadedModel>>,
    /// The answers of the loaded model.
    scheduler: Option<Scheduler>,
    /// What waits, in the order in which it came.
    waiting: VecDeque<Waiting>,
    /// What is to be read when there is nothing else to do.
    next_prefetch: Option<(Box<Request>, PendingPrefetch)>,
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
            scheduler: None,
            waiting: VecDeque::new(),
            next_prefetch: None,
            prefetch: None,
            shared,
        };
        while worker.take_commands(commands) {
            worker.serve();
            if let Some(scheduler) = worker.scheduler.as_mut().filter(|scheduler| !scheduler.is_empty()) {
                scheduler.tick();
            } else if worker.waiting.is_empty() {
                worker.continue_prefetch();
            }
        }
        if let Some(scheduler) = &mut worker.scheduler {
            scheduler.end_cancelled();
        }
        worker.unload();
        drop(worker);
        kernels::clear();
        tensor::disconnect();
    }

    /// Takes the commands that have come, or waits for one if there is nothing to do; returns whether more may come.
    fn take_commands(&mut self, commands: &Receiver<Command>) -> bool {
        let mut idle = !self.answering() && self.waiting.is_empty() && self.prefetch.is_none() && self.next_prefetch.is_none();
        loop {
            let command = match commands.try_recv() {
                Err(TryRecvError::Empty) if !idle => return true,
                Err(TryRecvError::Empty) => commands.recv().ok(),
                command => command.ok(),
            };
            idle = false;
            let Some(command) = command else { return false };
            // Dropping a command tells its receiver that the engine is gone.
            if !self.shared.closing() {
                self.take(command);
            }
        }
    }

    fn take(&mut self, command: Command) {
        let work = match command {
            Command::Memory(query) => {
                self.shared.answer_memory_queries();
                drop(query);
                return;
            }
            Command::Prefetch(request, pending) => {
                self.stop_prefetch();
                self.next_prefetch = Some((request, pending));
                return;
            }
            Command::Generate { request, job } => {
                if let Err(error) = self.check_queue(&request) {
                    job.send(EngineEvent::Failed(error.into()));
                    return;
                }
                Work::Generate(request, job)
            }
            Command::Load { source, events } => Work::Load(source, events),
            Command::Call(call) => Work::Call(call),
        };
        self.stop_prefetch();
        self.waiting.push_back(Waiting {
            work,
            since: Instant::now(),
        });
    }

    /// Refuses a program's request if too many wait.
    fn check_queue(&self, request: &Request) -> Result<()> {
        let by_programs = |waiting: &&Waiting| matches!(&waiting.work, Work::Generate(request, _) if request.priority != Priority::Chat);
        let waiting = self.waiting.iter().filter(by_programs).count();
        if request.priority == Priority::Chat || waiting < MAX_WAITING {
            return Ok(());
        }
        let seconds = self.scheduler.as_ref().map_or(1.0, Scheduler::mean_seconds) * waiting as f64 / self.slots() as f64;
        Err(Error::Busy {
            waiting,
            retry_after: seconds.ceil().clamp(1.0, 60.0) as u32,
        })
    }

    /// Does what can be done of what waits.
    fn serve(&mut self) {
        self.end_cancelled();
        while let Some(waiting) = self.next().and_then(|index| self.waiting.remove(index)) {
            match waiting.work {
                Work::Generate(request, job) => self.begin(*request, Rc::new(job)),
                Work::Load(source, events) => self.load(&source, &events),
                Work::Call(call) => call(self),
            }
        }
        if self.shared.closing() {
            self.waiting.clear();
        }
    }

    /// Ends waiting requests that were cancelled.
    fn end_cancelled(&mut self) {
        self.waiting.retain(|waiting| match &waiting.work {
            Work::Generate(_, job) if job.cancel.is_cancelled() => {
                job.send(cancelled());
                false
            }
            _ => true,
        });
    }

    /// What is to be done next, if anything can be. Requests for the loaded model are admitted by class, a chat's at once and
    /// others while there are slots; another model is loaded, and a call made, when no answer runs. Nothing passes a call, and
    /// nothing passes for long what asks for another model.
    fn next(&self) -> Option<usize> {
        if self.shared.closing() {
            return None;
        }
        let (idle, running) = (!self.answering(), self.scheduler.as_ref().map_or(0, Scheduler::len));
        let mut best: Option<(Priority, usize)> = None;
        for (index, waiting) in self.waiting.iter().enumerate() {
            let model = match &waiting.work {
                Work::Call(_) => {
                    best = best.or(idle.then_some((Priority::Chat, index)));
                    break;
                }
                Work::Load(source, _) => Some(source),
                Work::Generate(request, _) => request.model.folder(),
            };
            let present = model.is_none_or(|model| self.loaded.as_ref().is_some_and(|loaded| loaded.files.is_of(model)));
            let class = waiting.class();
            if idle || (present && (class == Priority::Chat || running < self.slots())) {
                best = Some(best.map_or((class, index), |best| best.min((class, index))));
            } else if !present && waiting.since.elapsed() > PATIENCE {
                break;
            }
        }
        best.map(|(_, index)| index)
    }

    /// How many answers of programs are made at once; those of chats come on top.
    fn slots(&self) -> usize {
        self.shared.max_sequences().unwrap_or_else(|| match device() {
            Device::Cpu => 4,
            Device::Metal | Device::Cuda => 8,
        })
    }

    /// Whether an answer runs.
    fn answering(&self) -> bool {
        self.scheduler.as_ref().is_some_and(|scheduler| !scheduler.is_empty())
    }

    /// Admits a request, after its model is loaded.
    fn begin(&mut self, request: Request, job: Rc<JobContext>) {
        let begun = catch_panic(|| self.prepare(request, &job));
        match (begun, &mut self.scheduler) {
            (Ok(generation), Some(scheduler)) => scheduler.admit(generation),
            (Ok(_), None) => job.send(EngineEvent::Failed(Error::WorkerGone.into())),
            (Err(Error::Cancelled), _) => {
                self.recover();
                job.send(cancelled());
            }
            (Err(error), _) => {
                self.recover();
                job.send(EngineEvent::Failed(error.into()));
            }
        }
    }

    fn prepare(&mut self, request: Request, job: &Rc<JobContext>) -> Result<Generation> {
        job.check_cancelled()?;
        answer::check(&request)?;
        let files = self.model_files(folder(&request)?)?;
        let prepared = answer::prepare(&files, &request)?;
        if let Some(notice) = request.unseen_media() {
            job.send(EngineEvent::Notice(notice));
        }
        let mut progress = |done, total| {
            job.send(EngineEvent::Progress {
                stage: Stage::Load,
                done,
                total,
            });
            job.check_cancelled()
        };
        let load_ms = self.ensure_loaded_files(files, &mut progress)?;
        let loaded = self.loaded.clone().expect("just loaded");
        Generation::begin(loaded, request, prepared, load_ms, job.clone())
    }

    fn load(&mut self, source: &FolderSource, events: &Sender<LoadEvent>) {
        let shared = self.shared.clone();
        let mut progress = |done, total| {
            events.send(LoadEvent::Progress { done, total });
            if shared.closing() {
                Err(Error::WorkerGone)
            } else {
                Ok(())
            }
        };
        let loaded = catch_panic(|| self.ensure_loaded(source, &mut progress));
        events.send(match (loaded, &self.loaded) {
            (Ok(_), Some(loaded)) => LoadEvent::Ready(Box::new(loaded.info.clone())),
            (Ok(_), None) => LoadEvent::Failed(Error::WorkerGone.into()),
            (Err(error), _) => {
                self.recover();
                LoadEvent::Failed(error.into())
            }
        });
    }

    /// Reads one chunk of what is prefetched.
    fn continue_prefetch(&mut self) {
        if let Some((request, pending)) = self.next_prefetch.take() {
            let prefetch = catch_panic(|| match &self.loaded {
                Some(loaded) if request.model.folder().is_some_and(|folder| loaded.files.is_of(folder)) => {
                    Prefetch::begin(loaded, &request)
                }
                _ => Ok(None),
            });
            self.prefetch = self.unless_failed(prefetch).flatten().map(|prefetch| (prefetch, pending));
        }
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
        self.next_prefetch = None;
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
                if let Some(loaded) = &self.loaded {
                    loaded.prefix_cache.borrow_mut().clear();
                }
                self.recover();
                None
            }
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
        self.shared.set_loaded(vec![loaded.info.clone()]);
        let loaded = Rc::new(loaded);
        self.scheduler = Some(Scheduler::new(loaded.clone()));
        self.loaded = Some(loaded);
        Ok(load_ms)
    }

    /// Frees the loaded model; called when no answer runs.
    pub fn unload(&mut self) {
        self.shared.set_loaded(Vec::new());
        (self.prefetch, self.next_prefetch) = (None, None);
        self.scheduler = None;
        self.loaded = None;
        self.recover();
    }

    /// The loaded model.
    pub fn loaded(&self) -> Option<&LoadedModel> {
        self.loaded.as_deref()
    }

    /// Waits for work that an abnormal end may have left in flight, and frees its buffers.
    fn recover(&self) {
        let cleared = catch_panic(|| tensor::synchronize().and_then(|()| memory::clear_cache()));
        if let Err(error) = cleared {
            tracing::warn!(%error, "MLX reported an error of work that was given up");
        }
    }
}

/// The end of a job that was cancelled before it began.
fn cancelled() -> EngineEvent {
    EngineEvent::Done(Done {
        finish_reason: FinishReason::Cancelled,
        ended_by: EndedBy::Cancelled,
        usage: Some(Default::default()),
        timing: Default::default(),
        tokens: Vec::new(),
    })
}
