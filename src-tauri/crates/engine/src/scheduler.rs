//! Decodes all admitted answers of a model together: each tick is one decode step for those whose prompts were read, and one
//! chunk of a prompt. One step is always in flight while the tokens of the one before it are read.

mod constrained;
mod embeddings;
mod pausing;
mod reading;
mod speculation;

use std::rc::Rc;
use std::time::{Duration, Instant};

use protocol::{EngineEvent, Priority};

use crate::cache::common_prefix;
use crate::error::{catch_panic, Error, Result};
use crate::generation::Generation;
use crate::job::JobContext;
use crate::load::LoadedModel;
use crate::memory;
use crate::ops::join;
use crate::pace::Pace;
use crate::prompt_lookup::{PromptLookup, Tuner};
use crate::sequence::{decode_logits, decode_step, ids_tensor, LoopEnd, Sequence};
use crate::step::{Choice, Step};
use crate::tensor::{async_eval, Tensor};

use embeddings::EmbeddingQueue;
pub use pausing::{Candidate, Pauses, Precedence};

/// Sequences that decode together at most.
const MAX_BATCH: usize = 16;

/// How long nothing is done if all wait for their grammars.
const AWAIT_GRAMMAR: Duration = Duration::from_millis(1);

/// How long a token of a running answer may be kept waiting by what others read: of a chat answer, and of others.
const GAPS: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(200)];

/// A prompt that has read nothing for so long comes first, whatever its class.
const PATIENCE: Duration = Duration::from_secs(5);

/// A prompt waits for another one that is being read if it saves reading so many tokens.
const MIN_SHARED: usize = 64;

/// Steps after which buffers that were kept for reuse are given back.
const CLEAR_EVERY: usize = 256;

/// What other models' answers want of the same device.
pub struct OtherModels {
    /// Whether there are none.
    pub alone: bool,
    /// The first class of those that decode.
    pub decoding: Option<Priority>,
    /// Whether a prompt of this model may be read now.
    pub may_read: bool,
}

/// The admitted answers, all of one model, and the step in flight.
pub struct Scheduler {
    loaded: Rc<LoadedModel>,
    /// By class, then in the order of admission.
    running: Vec<Running>,
    embeddings: EmbeddingQueue,
    in_flight: Option<Step>,
    /// Who takes part in the steps that are being described or in flight.
    stepping: Vec<u64>,
    pace: Pace,
    tuner: Tuner,
    steps: usize,
    /// When the tokens of the last step were known, unless something else was computed since.
    last_step: Option<Instant>,
    /// When the model last had something to do.
    pub last_used: Instant,
    last_id: u64,
    /// Mean seconds from admission to end.
    mean_seconds: f64,
    pauses: Pauses,
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
    pub fn new(loaded: Rc<LoadedModel>, prompt_lookup: PromptLookup) -> Self {
        Self {
            loaded,
            running: Vec::new(),
            embeddings: EmbeddingQueue::default(),
            in_flight: None,
            stepping: Vec::new(),
            pace: Pace::default(),
            tuner: Tuner::new(prompt_lookup),
            steps: 0,
            last_step: None,
            last_used: Instant::now(),
            last_id: 0,
            mean_seconds: 5.0,
            pauses: Pauses::default(),
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
        self.running.iter().find(decoding).map(|running| running.generation.priority())
    }

    /// Whether a chat answer is admitted.
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

    /// The bytes that the caches of the admitted answers will grow by, without those that are paused.
    pub fn cache_growth(&self) -> u64 {
        let made = self.running.iter().filter(|running| !running.generation.paused());
        made.map(|running| running.generation.cache_growth()).sum()
    }

    /// How many answers and embedding jobs are admitted.
    pub fn len(&self) -> usize {
        self.running.len() + self.embeddings.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.running.is_empty() && self.embeddings.is_empty()
    }

    /// Mean seconds of an answer, from admission to end.
    pub fn mean_seconds(&self) -> f64 {
        self.mean_seconds
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
        } else if others.alone && self.stepping.is_empty() && self.running.iter().any(|running| running.generation.awaits_grammar()) {
            std::thread::sleep(AWAIT_GRAMMAR);
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
        let ids: Vec<u64> = self.running.iter().filter(cancelled).map(|running| running.id).collect();
        ids.into_iter().for_each(|id| self.end(id, Ok(LoopEnd::Cancelled)));
    }

    /// Begins the next step, then takes the tokens of the one before it.
    fn step(&mut self) -> Result<()> {
        let previous = self.in_flight.take();
        let members = self.members(previous.as_ref());
        self.stepping = members.iter().map(|(id, _)| *id).collect();
        self.stepping.extend(previous.iter().flat_map(|step| step.rows.iter().flatten()));
        let mut next = match members.is_empty() {
            true => None,
            false => Some(self.begin_step(&members, previous.as_ref())?),
        };
        if let Some(previous) = previous {
            self.accept(&previous, next.as_mut())?;
        }
        if let Some(next) = &mut next {
            self.choose(next)?;
        }
        self.in_flight = next;
        Ok(())
    }

    /// Who takes part in the next step, in the order of admission and class, and in which row of the step in flight its input is
    /// being computed.
    fn members(&self, in_flight: Option<&Step>) -> Vec<(u64, Option<usize>)> {
        let row = |id: u64| in_flight.and_then(|step| step.rows.iter().position(|row| *row == Some(id)));
        let able = self.running.iter().filter_map(|running| {
            let (row, generation) = (row(running.id), &running.generation);
            let able = if row.is_some() {
                generation.wants_another()
            } else {
                generation.ready()
            };
            able.then_some((running, row))
        });
        let able: Vec<(&Running, Option<usize>)> = able.collect();
        let member = |(running, row): &(&Running, Option<usize>)| (running.id, *row);
        // Whether a step failed because of an answer shows when that decodes alone, until a token of it is known.
        let mut suspects = self.running.iter().filter(|running| running.generation.suspect());
        let first = || {
            able.iter()
                .map(|(running, _)| *running)
                .find(|running| running.generation.suspect())
        };
        if let Some(suspect) = suspects.find(|running| row(running.id).is_some()).or_else(first) {
            return able.iter().filter(|(running, _)| running.id == suspect.id).map(member).collect();
        }
        let chat = |running: &Running| running.generation.priority() == Priority::Chat;
        let mixed = able.iter().any(|(running, _)| chat(running)) && able.iter().any(|(running, _)| !chat(running));
        let others_join = !mixed || self.pace.others_join(self.steps);
        able.iter()
            .filter(|(running, _)| others_join || chat(running))
            .take(MAX_BATCH)
            .map(member)
            .collect()
    }

    fn begin_step(&mut self, members: &[(u64, Option<usize>)], previous: Option<&Step>) -> Result<Step> {
        let input = self.input(members, previous)?;
        let rows: Vec<Option<u64>> = members.iter().map(|(id, _)| Some(*id)).collect();
        let (mut chat, mut others, mut waits) = (false, false, false);
        let mut sequences: Vec<&mut Sequence> = Vec::with_capacity(members.len());
        // Members stand in the same order.
        for running in self.running.iter_mut().filter(|running| rows.contains(&Some(running.id))) {
            match running.generation.priority() {
                Priority::Chat => chat = true,
                Priority::Api | Priority::Background => others = true,
            }
            waits |= running.generation.constrained();
            sequences.push(running.generation.sequence());
        }
        let choice = if waits {
            let logits = decode_logits(&self.loaded.model, &input, &mut sequences)?;
            async_eval([&logits])?;
            let members = rows.iter().copied().flatten().collect();
            Choice::Waiting { input, logits, members }
        } else {
            let decoded = decode_step(&self.loaded.model, &input, &mut sequences)?;
            async_eval(decoded.tensors())?;
            Choice::Made(decoded)
        };
        self.count_step()?;
        Ok(Step {
            choice,
            rows,
            chat,
            others,
        })
    }

    fn count_step(&mut self) -> Result<()> {
        self.steps += 1;
        if self.steps.is_multiple_of(CLEAR_EVERY) {
            memory::clear_cache()?;
        }
        Ok(())
    }

    /// The last token of each member `[members]`, of which some are still being computed.
    fn input(&self, members: &[(u64, Option<usize>)], previous: Option<&Step>) -> Result<Tensor> {
        if let Some(previous) = previous {
            let same = members.len() == previous.rows.len() && members.iter().enumerate().all(|(index, (_, row))| *row == Some(index));
            if same {
                return Ok(previous.made()?.tokens.clone());
            }
        }
        let known = |id: u64| {
            let running = self.running.iter().find(|running| running.id == id);
            running.and_then(|running| running.generation.tokens().last().copied())
        };
        let parts = members
            .iter()
            .map(|(id, row)| match (row, previous) {
                (Some(row), Some(step)) => step.made()?.tokens.slice(0, *row as i32, *row as i32 + 1),
                _ => {
                    let ids = ids_tensor(known(*id).as_slice());
                    if members.len() == 1 {
                        Ok(ids)
                    } else {
                        ids.astype(mlx_rs::Dtype::Uint32)
                    }
                }
            })
            .collect::<Result<Vec<_>>>()?;
        join(&parts, 0)
    }

    /// Waits for the tokens of a step, once for all, and hands them out. A row of the step after it is dropped if its answer has
    /// ended or goes on with other tokens than sampled ones.
    fn accept(&mut self, step: &Step, mut next: Option<&mut Step>) -> Result<()> {
        let decoded = step.made()?;
        let tokens = decoded.tokens.to_u32()?;
        self.record_step(step);
        for (row, (id, token)) in step.rows.iter().zip(tokens).enumerate() {
            let Some(running) = self.running.iter_mut().find(|running| Some(running.id) == *id) else {
                continue;
            };
            let logprobs = decoded.logprobs.get(row).and_then(Option::as_ref);
            let end = running.generation.accept(token, logprobs)?;
            let wanted = end.is_none() && running.generation.in_step();
            if let Some(row) = next.as_mut().and_then(|next| next.rows.iter_mut().find(|row| *row == id)) {
                if !wanted {
                    *row = None;
                }
            }
            let id = running.id;
            if let Some(end) = end {
                self.end(id, Ok(end));
            }
        }
        Ok(())
    }

    fn record_step(&mut self, step: &Step) {
        let now = Instant::now();
        if let (Some(last), true) = (self.last_step, step.chat) {
            self.pace.record_step(step.others, now - last);
        }
        if let (Some(last), 1) = (self.last_step, step.rows.len()) {
            self.tuner.record_step(now - last);
        }
        self.last_step = Some(now);
    }

    /// After a failed step everybody who took part begins anew, one at a time. Who fails alone is who it was.
    fn step_failed(&mut self, error: Error) {
        tracing::warn!(%error, sequences = self.stepping.len(), "a decode step failed");
        self.in_flight = None;
        let mut stepping = std::mem::take(&mut self.stepping);
        stepping.sort_unstable();
        stepping.dedup();
        self.recover();
        let alone = stepping.len() == 1;
        for running in &mut self.running {
            if stepping.contains(&running.id) && !(alone && running.generation.suspect()) {
                running.generation.restart();
                stepping.retain(|id| *id != running.id);
            }
        }
        if let Some(id) = stepping.first() {
            self.end(*id, Err(error));
        }
    }

    /// Who reads the next chunk: a running answer that has a few tokens to read, then who has waited too long, then by class. A
    /// prompt that shares much with one that is being read lets that one go first.
    fn next_reader(&mut self) -> Option<u64> {
        let readers: Vec<&Running> = self.running.iter().filter(|running| running.generation.reading()).collect();
        let few = |running: &&&Running| running.generation.decoding() && running.generation.unread() <= MIN_SHARED;
        if let Some(running) = readers.iter().find(few) {
            return Some(running.id);
        }
        let late = readers.iter().min_by_key(|running| running.generation.last_chunk());
        let late = late.filter(|running| running.generation.last_chunk().elapsed() > PATIENCE);
        let next = late.or(readers.first())?;
        let (id, generation) = (next.id, &next.generation);
        if generation.read().is_some() {
            return Some(id);
        }
        // Not begun: somebody may be about to read the same.
        let (prefix, kv_bits) = (generation.prefix(), generation.request().kv_bits);
        let most = prefix.tokens.len() - 1;
        let known = self.loaded.prefix_cache.borrow().known(prefix, most, kv_bits);
        let best = readers
            .iter()
            .filter(|other| other.generation.read().is_some() && other.generation.request().kv_bits == kv_bits)
            .map(|other| (common_prefix(prefix.first(most), other.generation.prefix()), other.id))
            .max();
        let Some((shared, other)) = best.filter(|(shared, _)| *shared >= known + MIN_SHARED) else {
            return Some(id);
        };
        let other = self.running.iter_mut().find(|running| running.id == other)?;
        if other.generation.read().is_some_and(|read| read < shared) {
            other.generation.pause_at(shared);
            return Some(other.id);
        }
        let (other, stored) = (other.id, catch_panic(|| other.generation.store()));
        if let Err(error) = stored {
            self.end(other, Err(error));
        }
        Some(id)
    }

    /// Ends an answer and tells its job how.
    fn end(&mut self, id: u64, how: Result<LoopEnd>) {
        let Some(index) = self.running.iter().position(|running| running.id == id) else {
            return;
        };
        let Running { generation, admitted, .. } = self.running.remove(index);
        if let Some(step) = &mut self.in_flight {
            step.rows.iter_mut().filter(|row| **row == Some(id)).for_each(|row| *row = None);
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
        memory::recover();
    }
}

/// Tells the memory guard what the model took at most. Beside another model nobody knows which of them took it.
fn record_peak(loaded: &LoadedModel, job: &JobContext) {
    if let Some(guard) = job.shared.memory_guard().filter(|_| job.shared.loaded().len() == 1) {
        if let Ok(figures) = catch_panic(memory::figures) {
            guard.record_peak(&loaded.files.source, figures.peak);
        }
    }
}
