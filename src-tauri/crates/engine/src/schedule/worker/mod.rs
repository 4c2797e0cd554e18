//! The one thread that touches MLX: it takes commands, loads models, and lets them compute in between, also while
//! another one loads.

mod embeddings;
mod listener;
#[cfg(feature = "bench")]
mod model_access;
mod unload;

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mlx::device::Device;
use mlx::{blas, device, memory};
use prompt::RenderLimits;
use protocol::{EngineEvent, FolderSource, LoadEvent, Priority, Request, Sender};

use crate::answer::generation::{planned_workload, Generation};
use crate::answer::job::JobContext;
use crate::answer::request::{self, PreparedPrompt};
use crate::error::{catch_panic, Error, Result};
use crate::kernels::kernels;
use crate::loaded::{LoadedModel, ModelFiles};
use crate::products::product_check;
use crate::schedule::command::Command;
use crate::schedule::limits::{self, MAX_WAITING};
use crate::schedule::loaded_models::{LoadPlan, LoadedModels};
use crate::schedule::prefetch::Prefetches;
use crate::schedule::queue::{Job, QueuedCommand};
use crate::state::EngineState;
use crate::weights::LoadStep;
use listener::Listener;

/// The state of the worker's thread. It holds tensors and therefore cannot leave.
pub struct Worker {
    models: LoadedModels,
    commands: Receiver<Command>,
    /// The waiting commands, in the order in which they came.
    queue: VecDeque<QueuedCommand>,
    /// True while a model is being loaded: until it is, nothing is done that needs another one or none at all.
    loading: bool,
    /// The prompts that are read while there is nothing else to do.
    prefetches: Prefetches,
    /// The slots that suit the device.
    device_slots: usize,
    shared: Arc<EngineState>,
}

impl Worker {
    /// Takes commands until every sender is gone.
    pub fn run(commands: Receiver<Command>, shared: Arc<EngineState>) {
        shared.use_metal_library();
        let connected = catch_panic(|| Ok((device::connect()?, device::version()?)));
        match &connected {
            Ok((device, mlx)) => {
                tracing::info!(mlx, device = device.name(), blas = blas::set_up(), "the engine started")
            }
            Err(error) => tracing::error!(%error, "MLX cannot be used"),
        }
        // Were MLX unusable, every job would say so.
        let device = connected.map_or(Device::Cpu, |(device, _)| device);
        product_check::open(shared.cache_dir());
        let mut worker = Self {
            models: LoadedModels::new(shared.clone()),
            commands,
            queue: VecDeque::new(),
            loading: false,
            prefetches: Prefetches::new(shared.clone()),
            device_slots: limits::slots(device),
            shared,
        };
        while worker.take_commands() {
            worker.serve();
            if worker.models.running() > 0 {
                worker.tick();
            } else if worker.queue.is_empty() {
                worker.prefetches.advance(&worker.models);
            }
            worker.unload_due();
        }
        worker.models.end_cancelled();
        worker.unload_all();
        drop(worker);
        kernels().clear();
        device::disconnect();
    }

    /// Takes the commands that have come, or waits for one if there is nothing to do, at most until a model has been
    /// idle for its time; returns false if no more may come.
    fn take_commands(&mut self) -> bool {
        let busy = self.loading || self.models.running() > 0 || !self.queue.is_empty();
        self.shared.set_activity(busy, self.slots());
        let mut idle = !busy && !self.prefetches.has_work(&self.models);
        loop {
            let command = match self.commands.try_recv() {
                Err(TryRecvError::Empty) if !idle => return true,
                Err(TryRecvError::Empty) => match self.wait() {
                    Err(RecvTimeoutError::Timeout) => return true,
                    command => command.ok(),
                },
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

    /// Waits for a command, or until a model has been idle for its time.
    fn wait(&self) -> std::result::Result<Command, RecvTimeoutError> {
        let Some(due) = self.next_unload() else {
            return self.commands.recv().map_err(|_| RecvTimeoutError::Disconnected);
        };
        let left = due.saturating_duration_since(Instant::now());
        let command = self.commands.recv_timeout(left);
        if matches!(command, Err(RecvTimeoutError::Timeout)) {
            self.shared.count_wakeup();
        }
        command
    }

    fn take(&mut self, command: Command) {
        let job = match command {
            Command::Memory(query) => {
                self.shared.answer_memory_queries();
                drop(query);
                return;
            }
            Command::Prefetch(request, images, pending) => {
                // A user who is typing is about to ask.
                if let Some(folder) = request.model.folder() {
                    self.models.touch(folder);
                }
                self.prefetches.replace(request, images, pending, &self.models);
                return;
            }
            Command::Generate { request, job } => {
                if let Err(error) = self.check_queue(request.priority) {
                    job.send(EngineEvent::Failed(error.into()));
                    return;
                }
                Job::Generate(request, Rc::new(job))
            }
            Command::Embed(texts, job) => {
                if let Err(error) = self.check_queue(texts.priority) {
                    job.end(Err(error));
                    return;
                }
                Job::Embed(texts, job)
            }
            Command::Load { source, events } => Job::Load(source, events),
            Command::Unload(reference, done) => Job::Unload(reference, done),
            Command::UnloadIdle(reference, done) => {
                // The receiver may be gone.
                let _ = done.send(Ok(self.unload_idle(&reference)));
                return;
            }
            Command::UnloadAfter(idle) => {
                self.models.unload_after(idle);
                return;
            }
            Command::FreeCaches(done) => {
                let _ = done.send(catch_panic(|| self.free_caches()));
                return;
            }
            Command::UnloadAll(done) => Job::UnloadAll(done),
            Command::LimitPrefixCaches(bytes) => Job::LimitPrefixCaches(bytes),
            #[cfg(feature = "bench")]
            Command::Call(call) => Job::Call(call),
        };
        self.prefetches.stop(&self.models);
        self.queue.push_back(QueuedCommand::new(job));
    }

    /// The number of answers of programs that run at the same time; those of chats come on top.
    fn slots(&self) -> usize {
        self.shared.max_sequences().unwrap_or(self.device_slots)
    }

    /// Refuses a program's request if too many wait.
    fn check_queue(&self, priority: Priority) -> Result<()> {
        let by_programs = |waiting: &&QueuedCommand| match &waiting.job {
            Job::Generate(request, _) => request.priority != Priority::Chat,
            Job::Embed(..) => true,
            _ => false,
        };
        let waiting = self.queue.iter().filter(by_programs).count();
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
        while let Some(waiting) = self.next().and_then(|index| self.queue.remove(index)) {
            match waiting.job {
                Job::Generate(..) => self.begin(waiting),
                Job::Embed(texts, job) => self.begin_embeddings(*texts, job),
                Job::Load(source, events) => self.load(&source, &events),
                Job::Unload(reference, done) => {
                    self.unload(&reference);
                    // The receiver may be gone.
                    let _ = done.send(Ok(()));
                }
                Job::UnloadAll(done) => {
                    let _ = done.send(catch_panic(|| {
                        self.unload_all();
                        Ok(())
                    }));
                }
                Job::LimitPrefixCaches(bytes) => self.limit_prefix_caches(bytes),
                #[cfg(feature = "bench")]
                Job::Call(call) => call(self),
            }
        }
        if self.shared.closing() {
            self.queue.clear();
        }
    }

    /// One step of everybody who answers.
    fn tick(&mut self) {
        let slots = self.slots();
        self.models.resume(slots);
        if self.models.tick() {
            self.queue.iter_mut().for_each(QueuedCommand::retry_now);
        }
    }

    /// Ends waiting requests that were cancelled.
    fn end_cancelled(&mut self) {
        self.queue.retain(|waiting| match &waiting.job {
            Job::Generate(_, job) if job.cancel.is_cancelled() => {
                job.end_cancelled();
                false
            }
            Job::Embed(_, job) => !job.cancelled(),
            _ => true,
        });
    }

    /// The index of the next command, if any can be done. Requests are admitted by class, a chat's at once and others
    /// while there are slots; a model is loaded when there is room for it, and a command that needs the engine idle
    /// runs when no answer does. Nothing passes such a command.
    fn next(&mut self) -> Option<usize> {
        if self.shared.closing() {
            return None;
        }
        let running = self.models.running();
        let by_index = self.queue.iter().enumerate();
        let draining: Vec<(usize, FolderSource)> = by_index
            .flat_map(|(index, waiting)| waiting.draining().iter().map(move |model| (index, model.clone())))
            .collect();
        let is_draining = |model: &FolderSource, to: usize| {
            running > 0 && draining.iter().any(|(by, draining)| *by != to && draining == model)
        };
        let mut leaving: Vec<String> = Vec::new();
        let mut best: Option<(Priority, usize)> = None;
        for index in 0..self.queue.len() {
            let waiting = &self.queue[index];
            let class = waiting.class();
            let ready = match (&waiting.job, waiting.model()) {
                (job, _) if job.needs_idle() => {
                    best = best.or((running == 0 && !self.loading).then_some((Priority::Chat, index)));
                    break;
                }
                (Job::Unload(reference, _), _) => {
                    leaving.push(reference.clone());
                    !self.loading && !self.models.answers(reference)
                }
                (_, Some(model)) if leaving.contains(&model.reference) || !waiting.due() => false,
                (Job::Generate(..), _) if class != Priority::Chat && !self.models.takes_programs(self.slots()) => false,
                (job, Some(model)) if self.models.find(model).is_some() => {
                    matches!(job, Job::Load(..)) || !is_draining(model, index)
                }
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

    /// True if a model can be loaded for the command at this index. If it does not fit at all, the load will report
    /// that.
    fn has_room(&mut self, index: usize) -> bool {
        let Some(model) = self.queue[index].model() else {
            return true;
        };
        match catch_panic(|| self.models.plan_load(model)) {
            Ok(LoadPlan::WaitFor(others)) => {
                self.queue[index].wait_on(others);
                false
            }
            Ok(LoadPlan::Evict(_)) | Err(_) => true,
        }
    }

    /// Admits a request after its model is loaded, or lets it wait on while there is no room for its sequence next to
    /// those that run.
    fn begin(&mut self, mut waiting: QueuedCommand) {
        let Job::Generate(request, job) = &waiting.job else {
            return;
        };
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
            Ok(Some((source, generation))) => match self.models.touch(&source) {
                Some(scheduler) => {
                    scheduler.admit(generation);
                    let slots = self.slots();
                    self.models.preempt_to_slots(slots);
                }
                None => job.send(EngineEvent::Failed(Error::WorkerGone.into())),
            },
            Ok(None) => {
                waiting.wait_on(self.models.answering());
                let place = self.queue.partition_point(|other| other.came_before(&waiting));
                self.queue.insert(place, waiting);
            }
            Err(Error::Cancelled) => job.end_cancelled(),
            Err(error) => {
                if matches!(error, Error::Mlx(_) | Error::Panicked(_)) {
                    memory::drain();
                }
                job.send(EngineEvent::Failed(error.into()));
            }
        }
    }

    fn prepare(&mut self, request: &Request, job: &JobContext) -> Result<(Rc<LoadedModel>, PreparedPrompt, f64)> {
        job.check_cancelled()?;
        request::check(request)?;
        let files = self.model_files(request::folder(request)?)?;
        let (cancel, shared) = (job.cancel.clone(), job.shared.clone());
        let patience = RenderLimits::request().cancelled_by(move || cancel.is_cancelled() || shared.closing());
        let prepared = patience.within(|| request::prepare(&files, request, &job.images));
        // A template that was stopped with its job is no failure.
        job.check_cancelled()?;
        let prepared = prepared?;
        let (loaded, load_ms) = self.load_unless_loaded(files, &Listener::Job(job))?;
        self.models.keep_alive(&loaded.files.source, request.keep_alive);
        job.check_cancelled()?;
        Ok((loaded, prepared, load_ms))
    }

    /// True if there is memory for the sequence of a request next to those that run, by the plans for all of them; room
    /// is made for a chat's. A request that does not fit alone ends while it is read, with the figures.
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

    /// A model, and the milliseconds that it took to load it, 0 if it was loaded already.
    fn load_unless_loaded(&mut self, files: Rc<ModelFiles>, listener: &Listener<'_>) -> Result<(Rc<LoadedModel>, f64)> {
        if let Some(scheduler) = self.models.touch(&files.source) {
            return Ok((scheduler.loaded().clone(), 0.0));
        }
        match self.models.plan_load(&files.source)? {
            LoadPlan::Evict(others) if others.is_empty() => {}
            LoadPlan::Evict(others) => {
                self.prefetches.stop(&self.models);
                self.models.unload(|loaded| others.contains(&loaded.files.source));
                memory::drain();
            }
            // Memory that was free a moment ago is gone.
            LoadPlan::WaitFor(others) => {
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
                let wanted = |waiting: &QueuedCommand| waiting.model() == Some(&source);
                if self.shared.closing() || (listener.has_left() && !self.queue.iter().any(wanted)) {
                    return Err(Error::Cancelled);
                }
                Ok(())
            })
        });
        self.loading = false;
        // Frees the loaded part of a model that is given up.
        let mut loaded = loaded.inspect_err(|_| memory::drain())?;
        let resident = loaded.info.resident_bytes;
        loaded.info.resident_bytes = resident.saturating_add_signed(-taken_by_others);
        let loaded = Rc::new(loaded);
        self.models.add(loaded.clone());
        Ok((loaded.clone(), loaded.info.load_ms))
    }

    /// Lets the loaded models go on between two tensors of one that is being loaded, half of the time; returns the
    /// bytes that they took.
    fn serve_while_loading(&mut self, source: &FolderSource, step: LoadStep, next_tick: &mut Instant) -> Result<i64> {
        self.take_commands();
        for waiting in self.queue.iter().filter(|waiting| waiting.model() == Some(source)) {
            match &waiting.job {
                Job::Generate(_, job) => Listener::Job(job).progress(step),
                Job::Load(_, events) => Listener::Load(events).progress(step),
                _ => {}
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
}
