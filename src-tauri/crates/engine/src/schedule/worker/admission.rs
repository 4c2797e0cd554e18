//! The order in which what waits is done, and the beginning of answers.

use mlx::memory;
use protocol::{EngineEvent, FolderSource, Priority};

use super::{Listener, Worker};
use crate::answer::generation::{planned_workload, Generation};
use crate::answer::request::PreparedRequest;
use crate::error::{catch_panic, Error, Result};
use crate::loaded::LoadedModel;
use crate::pool::Pending;
use crate::schedule::limits::MAX_WAITING;
use crate::schedule::loaded_models::LoadPlan;
use crate::schedule::queue::{Job, QueuedCommand};

impl Worker {
    /// Refuses a program's request if too many wait.
    pub(super) fn check_queue(&self, priority: Priority) -> Result<()> {
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

    /// The index of the next command, if any can be done. Requests that have been prepared are admitted by class, a
    /// chat's at once and others while there are slots; a model is loaded when there is room for it, and a command that
    /// needs the engine idle runs when no answer does. Nothing passes such a command.
    pub(super) fn next(&mut self) -> Option<usize> {
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
                    let idle = running == 0 && !self.loading && !self.prepares_before(index, |_| true);
                    best = best.or(idle.then_some((Priority::Chat, index)));
                    break;
                }
                (Job::Unload(reference, _), _) => {
                    leaving.push(reference.clone());
                    let wanted = |model: &FolderSource| model.reference == *reference;
                    let prepares = |earlier: &QueuedCommand| earlier.model().is_some_and(wanted);
                    !self.loading && !self.models.answers(reference) && !self.prepares_before(index, prepares)
                }
                (_, Some(model)) if leaving.contains(&model.reference) || !waiting.due() => false,
                (Job::Generate(..), _) if waiting.preparing() => false,
                (Job::Generate(..), _) if self.prepares_before(index, |earlier| earlier.keeps_order(class)) => false,
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

    /// True if one of these requests is still being prepared and came before the command at this index.
    fn prepares_before(&self, index: usize, which: impl Fn(&QueuedCommand) -> bool) -> bool {
        let mut earlier = self.queue.iter().take(index);
        earlier.any(|earlier| earlier.preparing() && which(earlier))
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
    pub(super) fn begin(&mut self, mut waiting: QueuedCommand) {
        let Job::Generate(request, job) = &mut waiting.job else {
            return;
        };
        let job = job.clone();
        let begun = catch_panic(|| {
            job.check_cancelled()?;
            let mut prepared = request.prepared.take()?;
            let notices = std::mem::take(&mut prepared.notices);
            notices
                .into_iter()
                .for_each(|notice| job.send(EngineEvent::Notice(notice)));
            let (loaded, load_ms) = self.load_unless_loaded(prepared.files.clone(), &Listener::Job(&job))?;
            self.models
                .keep_alive(&loaded.files.source, prepared.request.keep_alive);
            job.check_cancelled()?;
            if !self.fits_beside(&loaded, &prepared) {
                request.prepared = Pending::Ready(Ok(prepared));
                return Ok(None);
            }
            let source = loaded.files.source.clone();
            let draft_files = prepared.draft_files.take();
            let draft_model = draft_files
                .map(|files| self.draft_model(&loaded, files, &job))
                .transpose()?
                .flatten();
            let drafted_by = draft_model.as_ref().map(|model| model.files.source.clone());
            let generation = Generation::begin(loaded, draft_model, prepared, load_ms, job.clone())?;
            Ok(Some((source, drafted_by, generation)))
        });
        match begun {
            Ok(Some((source, drafted_by, generation))) => match self.models.touch(&source) {
                Some(scheduler) => {
                    scheduler.draft_with(drafted_by.as_ref());
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

    /// True if there is memory for the sequence of a request next to those that run, by the plans for all of them; room
    /// is made for a chat's. A request that does not fit alone ends while it is read, with the figures.
    fn fits_beside(&mut self, loaded: &LoadedModel, prepared: &PreparedRequest) -> bool {
        if self.shared.memory_guard().is_none() || self.models.running() == 0 {
            return true;
        }
        let (config, request) = (&loaded.files.config, &prepared.request);
        let more = config.additional_memory(0, &planned_workload(request, prepared.tokens(), config.context));
        self.models.fits(more) || (request.priority == Priority::Chat && self.models.make_room(more))
    }
}
