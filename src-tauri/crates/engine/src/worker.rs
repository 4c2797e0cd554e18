//! The one thread that touches MLX: it takes commands, loads models, and lets them compute in between, also while another one
//! loads.

mod embeddings;
mod listener;
mod memory_release;

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::Arc;
use std::time::{Duration, Instant};

use protocol::{Done, EndedBy, EngineEvent, FinishReason, FolderSource, LoadEvent, Priority, Request, Sender};
use tokio::sync::oneshot;

use crate::answer::{self, PreparedPrompt};
use crate::embedding::{EmbeddingJob, PreparedTexts};
use crate::error::{catch_panic, Error, Result};
use crate::generation::{planned_workload, Generation};
use crate::images::RequestImages;
use crate::job::{JobContext, MemoryQuery, PendingPrefetch, Shared};
use crate::load::{LoadedModel, ModelFiles};
use crate::loaded_models::{LoadedModels, Room};
use crate::prefetch::Prefetches;
use crate::product_check;
use crate::tensor::{device, Device};
use crate::waiting::{Waiting, Work};
use crate::weights::LoadStep;
use crate::{blas, folder, kernels, memory, tensor};
use listener::Listener;

/// Requests of programs that wait at most; more are refused.
const MAX_WAITING: usize = 32;

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
    /// Make vectors of texts.
    Embed(Box<PreparedTexts>, EmbeddingJob),
    /// Read, at idle priority, what the next prompt of this conversation will begin with.
    Prefetch(Box<Request>, RequestImages, PendingPrefetch),
    /// Answer the queries for the memory; keeps one of them alive.
    Memory(Arc<MemoryQuery>),
    /// Free the model of this reference, when its answers have ended.
    Unload(String, oneshot::Sender<Result<()>>),
    /// Free the model of this reference, if it has been idle for so long.
    UnloadIdle(String, Duration, oneshot::Sender<Result<bool>>),
    /// Free what is kept only to be faster.
    FreeCaches(oneshot::Sender<Result<()>>),
    /// Any other call, when no answer runs; it answers by itself and does not panic.
    Call(Box<dyn FnOnce(&mut Worker) + Send>),
}

/// What lives on the thread. It holds tensors and therefore cannot leave.
pub struct Worker {
    models: LoadedModels,
    commands: Receiver<Command>,
    /// What waits, in the order in which it came.
    waiting: VecDeque<Waiting>,
    /// Whether a model is being loaded: until it is, nothing is done that needs another one or none at all.
    loading: bool,
    /// What is read while there is nothing else to do.
    prefetches: Prefetches,
    shared: Arc<Shared>,
}

impl Worker {
    /// Takes commands until nobody can send any.
    pub fn run(commands: Receiver<Command>, shared: Arc<Shared>) {
        shared.use_metal_library();
        // Were MLX unusable, every job would say so.
        match catch_panic(|| Ok((tensor::connect()?, tensor::version()?))) {
            Ok((device, mlx)) => tracing::info!(mlx, device = device.name(), blas = blas::set_up(), "the engine started"),
            Err(error) => tracing::error!(%error, "MLX cannot be used"),
        }
        product_check::open(shared.cache_dir());
        let mut worker = Self {
            models: LoadedModels::new(shared.clone()),
            commands,
            waiting: VecDeque::new(),
            loading: false,
            prefetches: Prefetches::new(shared.clone()),
            shared,
        };
        while worker.take_commands() {
            worker.serve();
            if worker.models.running() > 0 {
                worker.tick();
            } else if worker.waiting.is_empty() {
                worker.prefetches.advance(&worker.models);
            }
        }
        worker.models.end_cancelled();
        worker.unload_all();
        drop(worker);
        kernels::clear();
        tensor::disconnect();
    }

    /// Takes the commands that have come, or waits for one if there is nothing to do; returns whether more may come.
    fn take_commands(&mut self) -> bool {
        let busy = self.loading || self.models.running() > 0 || !self.waiting.is_empty();
        self.shared.set_busy(busy);
        let mut idle = !busy && !self.prefetches.has_work(&self.models);
        loop {
            let command = match self.commands.try_recv() {
                Err(TryRecvError::Empty) if !idle => return true,
                Err(TryRecvError::Empty) => self.commands.recv().ok(),
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
            Command::Prefetch(request, images, pending) => {
                // Who types is about to ask.
                if let Some(folder) = request.model.folder() {
                    self.models.use_now(folder);
                }
                self.prefetches.replace(request, images, pending, &self.models);
                return;
            }
            Command::Generate { request, job } => {
                if let Err(error) = self.check_queue(request.priority) {
                    job.send(EngineEvent::Failed(error.into()));
                    return;
                }
                Work::Generate(request, Rc::new(job))
            }
            Command::Embed(texts, job) => {
                if let Err(error) = self.check_queue(texts.priority) {
                    job.end(Err(error));
                    return;
                }
                Work::Embed(texts, job)
            }
            Command::Load { source, events } => Work::Load(source, events),
            Command::Unload(reference, done) => Work::Unload(reference, done),
            Command::UnloadIdle(reference, idle, done) => {
                // Nobody may wait any more.
                let _ = done.send(Ok(self.unload_idle(&reference, idle)));
                return;
            }
            Command::FreeCaches(done) => {
                let _ = done.send(catch_panic(|| self.free_caches()));
                return;
            }
            Command::Call(call) => Work::Call(call),
        };
        self.prefetches.stop(&self.models);
        self.waiting.push_back(Waiting::new(work));
    }

    /// How many answers of programs are made at once; those of chats come on top.
    fn slots(&self) -> usize {
        self.shared.max_sequences().unwrap_or_else(|| match device() {
            Device::Cpu => 4,
            Device::Metal | Device::Cuda => 8,
        })
    }

    /// Refuses a program's request if too many wait.
    fn check_queue(&self, priority: Priority) -> Result<()> {
        let by_programs = |waiting: &&Waiting| match &waiting.work {
            Work::Generate(request, _) => request.priority != Priority::Chat,
            Work::Embed(..) => true,
            Work::Load(..) | Work::Unload(..) | Work::Call(_) => false,
        };
        let waiting = self.waiting.iter().filter(by_programs).count();
        if priority == Priority::Chat || waiting < MAX_WAITING {
            return Ok(());
        }
        let seconds = self.models.mean_seconds() * waiting as f64 / self.slots() as f64;
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
                Work::Generate(..) => self.begin(waiting),
                Work::Embed(texts, job) => self.begin_embeddings(*texts, job),
                Work::Load(source, events) => self.load(&source, &events),
                Work::Unload(reference, done) => {
                    self.unload(&reference);
                    // Nobody may wait any more.
                    let _ = done.send(Ok(()));
                }
                Work::Call(call) => call(self),
            }
        }
        if self.shared.closing() {
            self.waiting.clear();
        }
    }

    /// One step of everybody who answers.
    fn tick(&mut self) {
        let slots = self.slots();
        self.models.resume(slots);
        if self.models.tick() {
            self.waiting.iter_mut().for_each(Waiting::look_again);
        }
    }

    /// Ends waiting requests that were cancelled.
    fn end_cancelled(&mut self) {
        self.waiting.retain(|waiting| match &waiting.work {
            Work::Generate(_, job) if job.cancel.is_cancelled() => {
                job.send(cancelled_event());
                false
            }
            Work::Embed(_, job) => !job.cancelled(),
            _ => true,
        });
    }

    /// What is to be done next, if anything can be. Requests are admitted by class, a chat's at once and others while there are
    /// slots; a model is loaded when there is room for it, and a call made when no answer runs. Nothing passes a call.
    fn next(&mut self) -> Option<usize> {
        if self.shared.closing() {
            return None;
        }
        let running = self.models.running();
        let by_index = self.waiting.iter().enumerate();
        let closed: Vec<(usize, FolderSource)> = by_index
            .flat_map(|(index, waiting)| waiting.closed().iter().map(move |model| (index, model.clone())))
            .collect();
        let is_closed = |model: &FolderSource, to: usize| running > 0 && closed.iter().any(|(by, closed)| *by != to && closed == model);
        let mut leaving: Vec<String> = Vec::new();
        let mut best: Option<(Priority, usize)> = None;
        for index in 0..self.waiting.len() {
            let waiting = &self.waiting[index];
            let class = waiting.class();
            let ready = match (&waiting.work, waiting.model()) {
                (Work::Call(_), _) => {
                    best = best.or((running == 0 && !self.loading).then_some((Priority::Chat, index)));
                    break;
                }
                (Work::Unload(reference, _), _) => {
                    leaving.push(reference.clone());
                    !self.loading && !self.models.answers(reference)
                }
                (_, Some(model)) if leaving.contains(&model.reference) || !waiting.due() => false,
                (Work::Generate(..), _) if class != Priority::Chat && !self.models.takes_programs(self.slots()) => false,
                (work, Some(model)) if self.models.find(model).is_some() => matches!(work, Work::Load(..)) || !is_closed(model, index),
                (_, Some(_)) => !self.loading && self.has_room(index),
                // It will be refused.
                (_, None) => true,
            };
            if ready {
                best = Some(best.map_or((class, index), |best| best.min((class, index))));
            }
        }
        best.map(|(_, index)| index)
    }

    /// Whether a model can be loaded for what waits here. If it does not fit at all, the load will say so.
    fn has_room(&mut self, index: usize) -> bool {
        let Some(model) = self.waiting[index].model() else { return true };
        match catch_panic(|| self.models.room_for(model)) {
            Ok(Room::After(others)) => {
                self.waiting[index].wait_on(others);
                false
            }
            Ok(Room::Without(_)) | Err(_) => true,
        }
    }

    /// Admits a request after its model is loaded, or lets it wait on while there is no room for its sequence beside those that
    /// run.
    fn begin(&mut self, mut waiting: Waiting) {
        let Work::Generate(request, job) = &waiting.work else { return };
        let job = job.clone();
        let prepared = catch_panic(|| self.prepare(request, &job));
        let begun = prepared.and_then(|(loaded, prepared, load_ms)| {
            if !self.fits_beside(&loaded, request, &prepared) {
                return Ok(None);
            }
            let request = Request::clone(request);
            let source = loaded.files.source.clone();
            let generation = catch_panic(|| Generation::begin(loaded, request, prepared, load_ms, job.clone()))?;
            Ok(Some((source, generation)))
        });
        match begun {
            Ok(Some((source, generation))) => match self.models.use_now(&source) {
                Some(scheduler) => {
                    scheduler.admit(generation);
                    let slots = self.slots();
                    self.models.keep_slots(slots);
                }
                None => job.send(EngineEvent::Failed(Error::WorkerGone.into())),
            },
            Ok(None) => {
                waiting.wait_on(self.models.answering());
                let place = self.waiting.partition_point(|other| other.came_before(&waiting));
                self.waiting.insert(place, waiting);
            }
            Err(Error::Cancelled) => job.send(cancelled_event()),
            Err(error) => {
                if matches!(error, Error::Mlx(_) | Error::Panicked(_)) {
                    memory::recover();
                }
                job.send(EngineEvent::Failed(error.into()));
            }
        }
    }

    fn prepare(&mut self, request: &Request, job: &JobContext) -> Result<(Rc<LoadedModel>, PreparedPrompt, f64)> {
        job.check_cancelled()?;
        answer::check(request)?;
        let files = self.model_files(folder(request)?)?;
        let prepared = answer::prepare(&files, request, &job.images)?;
        let (loaded, load_ms) = self.load_unless_loaded(files, &Listener::Job(job))?;
        job.check_cancelled()?;
        Ok((loaded, prepared, load_ms))
    }

    /// Whether there is memory for the sequence of a request beside those that run, by the plans for all of them; a chat's is made
    /// room for. What does not fit alone ends while it is read, with the figures.
    fn fits_beside(&mut self, loaded: &LoadedModel, request: &Request, prepared: &PreparedPrompt) -> bool {
        if self.shared.memory_guard().is_none() || self.models.running() == 0 {
            return true;
        }
        let config = &loaded.files.config;
        let more = config.additional_memory(0, &planned_workload(request, prepared.tokens(), config.context));
        self.models.fits(more) || (request.priority == Priority::Chat && self.models.make_room(more))
    }

    fn load(&mut self, source: &FolderSource, events: &Sender<LoadEvent>) {
        let loaded = catch_panic(|| {
            let files = self.model_files(source)?;
            self.load_unless_loaded(files, &Listener::Load(events))
        });
        events.send(match loaded {
            Ok((loaded, _)) => LoadEvent::Ready(Box::new(loaded.info.clone())),
            Err(error) => LoadEvent::Failed(error.into()),
        });
    }

    /// The small files of a model: those of the loaded one, or read now.
    fn model_files(&self, source: &FolderSource) -> Result<Rc<ModelFiles>> {
        match self.models.find(source) {
            Some(scheduler) => Ok(scheduler.loaded().files.clone()),
            None => Ok(Rc::new(ModelFiles::open(source)?)),
        }
    }

    /// A model, loaded now if it is not; for calls.
    pub fn ensure_loaded(&mut self, source: &FolderSource) -> Result<Rc<LoadedModel>> {
        let files = self.model_files(source)?;
        Ok(self.load_unless_loaded(files, &Listener::Nobody)?.0)
    }

    /// A model, and the milliseconds that it took to load it, 0 if it was loaded already.
    fn load_unless_loaded(&mut self, files: Rc<ModelFiles>, listener: &Listener<'_>) -> Result<(Rc<LoadedModel>, f64)> {
        if let Some(scheduler) = self.models.use_now(&files.source) {
            return Ok((scheduler.loaded().clone(), 0.0));
        }
        match self.models.room_for(&files.source)? {
            Room::Without(others) if others.is_empty() => {}
            Room::Without(others) => {
                self.prefetches.stop(&self.models);
                self.models.unload(|loaded| others.contains(&loaded.files.source));
                memory::recover();
            }
            // Memory that was free a moment ago is gone.
            Room::After(others) => {
                return Err(Error::Busy {
                    waiting: others.len(),
                    retry_after: 1,
                })
            }
        }
        memory::reset_peak()?;
        let source = files.source.clone();
        let (mut taken_by_others, mut next_tick) = (0, Instant::now());
        self.loading = true;
        let loaded = catch_panic(|| {
            LoadedModel::load(files, self.shared.prefix_cache(), &mut |step| {
                listener.progress(step);
                taken_by_others += self.serve_while_loading(&source, step, &mut next_tick)?;
                let wanted = |waiting: &Waiting| waiting.model() == Some(&source);
                if self.shared.closing() || (listener.has_left() && !self.waiting.iter().any(wanted)) {
                    return Err(Error::Cancelled);
                }
                Ok(())
            })
        });
        self.loading = false;
        // What was loaded of a model that is given up is freed now.
        let mut loaded = loaded.inspect_err(|_| memory::recover())?;
        let resident = loaded.info.resident_bytes;
        loaded.info.resident_bytes = resident.saturating_add_signed(-taken_by_others);
        let loaded = Rc::new(loaded);
        self.models.add(loaded.clone());
        Ok((loaded.clone(), loaded.info.load_ms))
    }

    /// Lets the loaded models go on between two tensors of one that is being loaded, half of the time; returns the bytes that they
    /// took.
    fn serve_while_loading(&mut self, source: &FolderSource, step: LoadStep, next_tick: &mut Instant) -> Result<i64> {
        self.take_commands();
        for waiting in self.waiting.iter().filter(|waiting| waiting.model() == Some(source)) {
            match &waiting.work {
                Work::Generate(_, job) => Listener::Job(job).progress(step),
                Work::Load(_, events) => Listener::Load(events).progress(step),
                Work::Embed(..) | Work::Unload(..) | Work::Call(_) => {}
            }
        }
        self.shared.answer_memory_queries();
        self.end_cancelled();
        if Instant::now() < *next_tick {
            return Ok(0);
        }
        let (start, before) = (Instant::now(), memory::figures()?.active);
        self.serve();
        if self.models.running() > 0 {
            self.tick();
        }
        *next_tick = Instant::now() + start.elapsed().max(Duration::from_millis(1));
        Ok(memory::figures()?.active as i64 - before as i64)
    }

    /// How often answers of the loaded models were paused, and how often their caches were dropped.
    #[cfg(feature = "test-support")]
    pub fn pauses(&self) -> (usize, usize) {
        let add = |sum: (usize, usize), pauses: crate::scheduler::Pauses| (sum.0 + pauses.paused, sum.1 + pauses.dropped);
        self.models.pauses().fold((0, 0), add)
    }

    /// Lets no token of a running answer of the loaded models be kept waiting for longer than this.
    #[cfg(feature = "test-support")]
    pub fn set_gaps(&mut self, gap: Duration) {
        self.models.set_gaps(gap);
    }

    /// The loaded models.
    pub fn loaded(&self) -> impl Iterator<Item = &Rc<LoadedModel>> {
        self.models.iter()
    }
}

/// The end of a job that was cancelled before it began.
fn cancelled_event() -> EngineEvent {
    EngineEvent::Done(Done {
        finish_reason: FinishReason::Cancelled,
        ended_by: EndedBy::Cancelled,
        usage: Some(Default::default()),
        timing: Default::default(),
        tokens: Vec::new(),
    })
}
