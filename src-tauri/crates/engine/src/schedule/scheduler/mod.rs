//! Decodes all admitted answers of a model together: each tick is one decode step for those whose prompts were read,
//! and one chunk of a prompt. One step is always in flight while the tokens of the one before it are read.

mod constrained;
mod decode;
mod embedding_queue;
mod embeddings;
mod preemption;
mod prefill;
mod speculation;

use std::rc::Rc;
use std::time::{Duration, Instant};

use mlx::memory;
use protocol::{EngineEvent, FolderSource, Priority};

use crate::answer::generation::Generation;
use crate::answer::job::JobContext;
use crate::error::{catch_panic, Error, Result};
use crate::loaded::LoadedModel;
use crate::options::EngineOptions;
use crate::schedule::limits::{GAPS, POLL};
use crate::schedule::pace::Pace;
use crate::schedule::step::Step;
use crate::sequence::drafts::Tuner;
use crate::sequence::LoopEnd;

use embedding_queue::EmbeddingQueue;
pub use preemption::{PreemptionCandidate, PreemptionOrder, Preemptions};

/// The demands of other models' answers on the same device.
pub struct OtherModels {
    /// True if there are none.
    pub alone: bool,
    /// The first class of those that decode.
    pub decoding: Option<Priority>,
    /// True if a prompt of this model may be read now.
    pub may_read: bool,
}

/// The admitted answers, all of one model, and the step in flight.
pub struct Scheduler {
    loaded: Rc<LoadedModel>,
    /// By class, then in the order of admission.
    running: Vec<Running>,
    embeddings: EmbeddingQueue,
    in_flight: Option<Step>,
    /// The answers that take part in the steps that are being described or in flight.
    stepping: Vec<u64>,
    pace: Pace,
    tuner: Tuner,
    /// The draft model that was measured last.
    draft_model: Option<FolderSource>,
    steps: usize,
    /// When the tokens of the last step were known, unless something else was computed since.
    last_step: Option<Instant>,
    /// When the model last had something to do.
    pub last_used: Instant,
    /// The time for which the model stays after that; [`Duration::MAX`]: until another one needs the memory.
    pub keep_alive: Duration,
    last_id: u64,
    /// Mean seconds from admission to end.
    mean_seconds: f64,
    preemptions: Preemptions,
    /// [`GAPS`], unless a test says otherwise.
    gaps: [Duration; 2],
}

struct Running {
    id: u64,
    generation: Generation,
    admitted: Instant,
}

impl Scheduler {
    /// Nothing is admitted.
    pub fn new(loaded: Rc<LoadedModel>, options: &EngineOptions) -> Self {
        Self {
            loaded,
            running: Vec::new(),
            embeddings: EmbeddingQueue::default(),
            in_flight: None,
            stepping: Vec::new(),
            pace: Pace::default(),
            tuner: Tuner::of(options),
            draft_model: None,
            steps: 0,
            last_step: None,
            last_used: Instant::now(),
            keep_alive: Duration::MAX,
            last_id: 0,
            mean_seconds: 5.0,
            preemptions: Preemptions::default(),
            gaps: GAPS,
        }
    }

    /// The model.
    pub fn loaded(&self) -> &Rc<LoadedModel> {
        &self.loaded
    }

    /// The first class of those that decode.
    pub fn decodes(&self) -> Option<Priority> {
        let decoding = |running: &&Running| running.generation.decoding();
        self.running
            .iter()
            .find(decoding)
            .map(|running| running.generation.priority())
    }

    /// True if a chat answer is admitted.
    pub fn serves_chat(&self) -> bool {
        let first = self.running.first();
        first.is_some_and(|running| running.generation.priority() == Priority::Chat)
    }

    /// The class of the prompt whose turn it is to be read, and since when it has read nothing.
    pub fn reads(&self) -> Option<(Priority, Instant)> {
        let reader = self.running.iter().find(|running| running.generation.reading());
        let answer = reader.map(|reader| (reader.generation.priority(), reader.generation.last_chunk()));
        answer.or(self.embeddings.reads())
    }

    /// The bytes that the caches of the admitted answers will grow by, without those that are preempted.
    pub fn cache_growth(&self) -> u64 {
        let made = self.running.iter().filter(|running| !running.generation.preempted());
        made.map(|running| running.generation.cache_growth()).sum()
    }

    /// How many answers and embedding jobs are admitted.
    pub fn len(&self) -> usize {
        self.running.len() + self.embeddings.len()
    }

    /// True if none is.
    pub fn is_empty(&self) -> bool {
        self.running.is_empty() && self.embeddings.is_empty()
    }

    /// The time at which the model is freed if nothing uses it before, at the latest this long after its last use.
    pub fn unload_at(&self, unload_after: Duration) -> Option<Instant> {
        let idle = self.is_empty().then(|| self.keep_alive.min(unload_after))?;
        self.last_used.checked_add(idle)
    }

    /// Mean seconds of an answer, from admission to end.
    pub fn mean_seconds(&self) -> f64 {
        self.mean_seconds
    }

    /// True if this model drafts an answer.
    pub fn is_drafted_by(&self, draft_model: &Rc<LoadedModel>) -> bool {
        let mut running = self.running.iter();
        running.any(|running| running.generation.is_drafted_by(draft_model))
    }

    /// Forgets the measurements of another draft model than this one.
    pub fn draft_with(&mut self, draft_model: Option<&FolderSource>) {
        if draft_model.is_some() && draft_model != self.draft_model.as_ref() {
            self.draft_model = draft_model.cloned();
            self.tuner.forget_draft_model();
        }
    }

    /// Admits an answer.
    pub fn admit(&mut self, generation: Generation) {
        self.last_id += 1;
        let after = self
            .running
            .partition_point(|other| other.generation.priority() <= generation.priority());
        let running = Running {
            id: self.last_id,
            generation,
            admitted: Instant::now(),
        };
        self.running.insert(after, running);
    }

    /// One decode step and one chunk, as far as there is something to do.
    pub fn tick(&mut self, others: &OtherModels) {
        self.end_cancelled();
        if !others.alone {
            self.last_step = None;
        }
        let step = |scheduler: &mut Self| match others.alone && scheduler.speculate()? {
            true => Ok(()),
            false => scheduler.step(),
        };
        if let Err(error) = catch_panic(|| step(self)) {
            self.step_failed(error);
        } else if others.alone
            && self.stepping.is_empty()
            && self.running.iter().any(|running| running.generation.awaits_grammar())
        {
            std::thread::sleep(POLL);
        }
        if others.may_read && !self.embeddings.is_empty() {
            self.embed(others);
        } else if others.may_read {
            self.prefill(others.decoding);
        }
        if self.running.is_empty() {
            self.in_flight = None;
        }
    }

    /// Ends those that were cancelled.
    pub fn end_cancelled(&mut self) {
        self.embeddings.end_cancelled();
        let cancelled = |running: &&Running| running.generation.cancelled();
        let ids: Vec<u64> = self
            .running
            .iter()
            .filter(cancelled)
            .map(|running| running.id)
            .collect();
        ids.into_iter().for_each(|id| self.end(id, Ok(LoopEnd::Cancelled)));
    }

    /// Ends an answer and tells its job how.
    fn end(&mut self, id: u64, how: Result<LoopEnd>) {
        let Some(index) = self.running.iter().position(|running| running.id == id) else {
            return;
        };
        let Running {
            generation, admitted, ..
        } = self.running.remove(index);
        if let Some(step) = &mut self.in_flight {
            step.rows
                .iter_mut()
                .filter(|row| **row == Some(id))
                .for_each(|row| *row = None);
        }
        let job = generation.job();
        self.mean_seconds += (admitted.elapsed().as_secs_f64() - self.mean_seconds) / 8.0;
        record_peak(&self.loaded, &job);
        let ended = how.and_then(|end| catch_panic(|| generation.finish(end)));
        if let Err(error) = ended {
            if matches!(error, Error::Mlx(_) | Error::Panicked(_)) {
                self.recover();
            }
            job.send(EngineEvent::Failed(error.into()));
        }
    }

    /// Waits for work that an abnormal end may have left in flight, and drops copies in which its cause may lie.
    fn recover(&self) {
        self.loaded.prefix_cache.borrow_mut().clear();
        self.loaded.features.borrow_mut().clear();
        memory::drain();
    }
}

/// Tells the memory guard what the model took at most. With several models loaded it is unknown which of them took it.
fn record_peak(loaded: &LoadedModel, job: &JobContext) {
    if let Some(guard) = job.shared.memory_guard().filter(|_| job.shared.loaded().len() == 1) {
        if let Ok(figures) = catch_panic(|| Ok(memory::figures()?)) {
            guard.record_peak(&loaded.files.source, figures.peak);
        }
    }
}
