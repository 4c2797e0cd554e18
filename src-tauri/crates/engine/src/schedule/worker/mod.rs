//! The one thread that touches MLX: it takes commands, loads models, and lets them compute in between, also while
//! another one loads.

mod admission;
mod draft_model;
mod embeddings;
mod listener;
mod model_access;
mod unload;

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mlx::device::Device;
use mlx::{blas, device, memory};
use protocol::{ComputeDevice, EngineEvent, FolderSource, LoadEvent, Sender};

use crate::error::{catch_panic, Error, Result};
use crate::kernels::kernels;
use crate::loaded::{LoadedModel, ModelFiles, OpenFiles};
use crate::pool::Pool;
use crate::products::product_check;
use crate::schedule::command::Command;
use crate::schedule::limits::{self, POLL};
use crate::schedule::loaded_models::{LoadPlan, LoadedModels};
use crate::schedule::prefetch::Prefetches;
use crate::schedule::queue::{Job, QueuedCommand};
use crate::state::EngineState;
use crate::weights::LoadStep;
use listener::Listener;

/// The state of the worker's thread. It holds tensors and therefore cannot leave.
pub struct Worker {
    models: LoadedModels,
    open_files: OpenFiles,
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
    pub fn run(commands: Receiver<Command>, shared: Arc<EngineState>, open_files: OpenFiles, pool: Pool) {
        shared.use_metal_library();
        // Were MLX unusable, every job would say so.
        let device = connect(&shared).unwrap_or(Device::Cpu);
        let mut worker = Self {
            models: LoadedModels::new(shared.clone()),
            open_files,
            commands,
            queue: VecDeque::new(),
            loading: false,
            prefetches: Prefetches::new(shared.clone(), pool),
            device_slots: limits::slots(device),
            shared,
        };
        while worker.take_commands() {
            worker.serve();
            if worker.models.running() > 0 {
                worker.tick();
            } else if worker.queue.is_empty() {
                match worker.models.cold() {
                    Some(loaded) if !worker.prefetches.has_work(&worker.models) => loaded.warm_up(),
                    _ => worker.prefetches.advance(&worker.models),
                }
            }
            worker.unload_due();
            worker.drop_unused_prompts();
        }
        worker.models.end_cancelled();
        worker.unload_all();
        drop(worker);
        kernels().clear();
        device::disconnect();
    }

    /// Takes the commands that have come, or waits for one if there is nothing to do; returns false if no more may come.
    fn take_commands(&mut self) -> bool {
        let computing = self.loading || self.models.running() > 0;
        self.shared
            .set_activity(computing || !self.queue.is_empty(), self.slots());
        let nothing_else = match self.queue.is_empty() {
            true => !self.prefetches.has_work(&self.models) && self.models.cold().is_none(),
            false => self.preparing(),
        };
        let mut idle = !computing && nothing_else;
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

    /// True if a request that waits is still being prepared.
    fn preparing(&self) -> bool {
        self.queue.iter().any(QueuedCommand::preparing)
    }

    /// Waits for a command, for a moment if a request is being prepared, or until a model or a
    /// copy of a prompt has been idle for its time.
    fn wait(&self) -> std::result::Result<Command, RecvTimeoutError> {
        if self.preparing() {
            return self.commands.recv_timeout(POLL);
        }
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
            Command::Compute(compute) => {
                compute();
                return;
            }
            Command::FreeCaches(done) => {
                let _ = done.send(catch_panic(|| self.free_caches()));
                return;
            }
            Command::UnloadAll(done) => Job::UnloadAll(done),
            Command::LimitPrefixCaches(bytes) => Job::LimitPrefixCaches(bytes),
            Command::Connect => Job::Connect,
            Command::Call(call) => Job::Call(call),
        };
        self.prefetches.stop(&self.models);
        self.queue.push_back(QueuedCommand::new(job));
    }

    /// The number of answers of programs that run at the same time; those of chats come on top.
    fn slots(&self) -> usize {
        self.shared.max_sequences().unwrap_or(self.device_slots)
    }

    /// Does what can be done of what waits.
    fn serve(&mut self) {
        self.end_cancelled();
        self.queue.iter_mut().for_each(QueuedCommand::poll);
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
                Job::Connect => self.connect_anew(),
                Job::Call(call) => call(self),
            }
        }
        if self.shared.closing() {
            self.queue.clear();
        }
    }

    /// Computes on the device that is set; called when no answer runs.
    fn connect_anew(&mut self) {
        self.unload_all();
        kernels().clear();
        if let Some(device) = connect(&self.shared) {
            self.device_slots = limits::slots(device);
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
    fn model_files(&self, source: &FolderSource) -> Result<Arc<ModelFiles>> {
        match self.models.find(source) {
            Some(scheduler) => Ok(scheduler.loaded().files.clone()),
            None => self.open_files.open(source),
        }
    }

    /// A model, and the milliseconds that it took to load it, 0 if it was loaded already.
    fn load_unless_loaded(
        &mut self,
        files: Arc<ModelFiles>,
        listener: &Listener<'_>,
    ) -> Result<(Rc<LoadedModel>, f64)> {
        if let Some(scheduler) = self.models.touch(&files.source) {
            return Ok((scheduler.loaded().clone(), 0.0));
        }
        if let Some(other) = self.models.with_weights_of(&files.source) {
            let beside = catch_panic(|| LoadedModel::beside(&other, files, self.shared.prefix_cache()))?;
            return Ok(self.add(beside));
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
        Ok(self.add(loaded))
    }

    fn add(&mut self, loaded: LoadedModel) -> (Rc<LoadedModel>, f64) {
        let loaded = Rc::new(loaded);
        self.models.add(loaded.clone());
        let load_ms = loaded.info.load_ms;
        (loaded, load_ms)
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

/// Connects this thread with the device that is set; `None` if MLX cannot, and what was connected before stays.
fn connect(shared: &EngineState) -> Option<Device> {
    let connected = catch_panic(|| {
        shared.set_has_card(device::gpu_kind()? == Some(Device::Cuda));
        let device = match shared.device() {
            ComputeDevice::Auto => device::connect()?,
            ComputeDevice::Cpu => device::connect_to_processor()?,
        };
        Ok((device, device::version()?))
    });
    match &connected {
        Ok((device, mlx)) => tracing::info!(
            mlx,
            device = device.name(),
            blas = blas::set_up(),
            "the engine computes"
        ),
        Err(error) => tracing::error!(%error, "MLX cannot be used"),
    }
    product_check::open(shared.cache_dir());
    connected.ok().map(|(device, _)| device)
}
