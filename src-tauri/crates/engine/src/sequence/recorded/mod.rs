//! Steps that are recorded, where the kernels of a device can do that: decode steps once for each number of sequences,
//! and one that reads the tokens of a short prompt.
//!
//! The plain step stays the rule of what is right. A recorded one is compared with it before a computer uses it the first
//! time, and left out if it differs, or if something in the model cannot be recorded.

mod comparison;
mod draws;

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use mlx::recording::{CachePlace, CacheShape, NextToken, RowSampler, StepRows};
use mlx::tensor::Tensor;

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::kernels::kernels;
use crate::models::{Input, Model};
use crate::products::product_check;
use crate::sequence::state::SequenceState;
use crate::sequence::tokens::{RecordedTokens, SharedStep, Tokens};

/// The most sequences of a recorded step.
const MAX_SEQUENCES: usize = 32;
/// Tokens of one sequence that a recorded step reads at once.
const READ_AT_ONCE: usize = 32;
/// The most tokens that are read so: more are read faster at once by MLX's own products.
const MAX_READ: usize = 96;
/// The recorded steps of a model.
#[derive(Default)]
pub struct RecordedSteps {
    steps: RefCell<HashMap<StepRows, Option<Recorded>>>,
    /// By how much plain steps differ from each other, once that was asked.
    noise: Cell<Option<f32>>,
}

/// A recorded step.
#[derive(Clone)]
struct Recorded {
    step: SharedStep,
    /// The caches that it writes.
    caches: Rc<[CacheShape]>,
    /// True if it draws tokens as the samplers of this app do.
    draws: bool,
    /// The traces of the last one.
    last: Rc<RefCell<LastStep>>,
}

/// The traces of a recorded step, for the next one.
#[derive(Default)]
struct LastStep {
    /// The tokens of the last steps, of which two are kept where they are: older ones are read before.
    tokens: VecDeque<RecordedTokens>,
    /// Offset and position of each row of the next one, if it goes on from there.
    next: Vec<(u32, u32)>,
    /// The samplers that it has then; empty for those that take the likeliest.
    samplers: Vec<RowSampler>,
}

/// The output of a recorded step that was begun.
pub enum RecordedOutput {
    /// Its tokens count.
    Tokens(RecordedTokens),
    /// Its logits alone do.
    Logits,
}

impl RecordedSteps {
    /// Begins the step that reads `input`, one token of each sequence, and chooses the next ones by `samplers`, if there
    /// are. `None` if it has to be described: nothing was done then.
    ///
    /// # Errors
    /// If the device fails.
    pub fn begin(
        &self,
        model: &Model,
        input: &Tokens,
        states: &mut [&mut SequenceState],
        samplers: Option<&[RowSampler]>,
    ) -> Result<Option<RecordedOutput>> {
        if states.len() > MAX_SEQUENCES || !states.iter().all(|state| is_recordable(state)) {
            return Ok(None);
        }
        let rows = StepRows::OfSequences(states.len());
        match self.of(model, rows) {
            Some(recorded) => self.kept(rows, recorded.begin(input, states, samplers)),
            None => Ok(None),
        }
    }

    /// Reads tokens of one sequence for the sake of its caches. Returns false if they have to be read in another way:
    /// then none was read.
    ///
    /// # Errors
    /// If the device fails.
    pub fn read(&self, model: &Model, state: &mut SequenceState, ids: &[u32]) -> Result<bool> {
        if ids.len() > MAX_READ || state.images.is_some() || !is_recordable(state) {
            return Ok(false);
        }
        let rows = StepRows::OfOne(READ_AT_ONCE);
        match self.of(model, rows) {
            Some(recorded) => self.kept(rows, recorded.read(state, ids)),
            None => Ok(false),
        }
    }

    /// The result of a recorded step. One that failed is not used again.
    fn kept<T>(&self, rows: StepRows, result: Result<T>) -> Result<T> {
        if result.is_err() {
            self.steps.borrow_mut().insert(rows, None);
        }
        result
    }

    /// The logits `[sequences, vocabulary]` of the last step of so many sequences.
    ///
    /// # Errors
    /// If the device fails.
    pub fn logits(&self, sequences: usize) -> Result<Tensor> {
        let recorded = self
            .steps
            .borrow()
            .get(&StepRows::OfSequences(sequences))
            .cloned()
            .flatten();
        match recorded {
            Some(recorded) => Ok(recorded.step.borrow_mut().logits()?),
            None => Err(Error::Panicked("a step that was not recorded has no logits".into())),
        }
    }

    /// Records the steps of one sequence, so that the first answer does not wait for that. `report` is called before
    /// each.
    ///
    /// # Errors
    /// Those of `report`.
    pub fn prepare(&self, model: &Model, mut report: impl FnMut() -> Result<()>) -> Result<()> {
        for rows in [StepRows::OfSequences(1), StepRows::OfOne(READ_AT_ONCE)] {
            report()?;
            self.of(model, rows);
        }
        Ok(())
    }

    fn of(&self, model: &Model, rows: StepRows) -> Option<Recorded> {
        if let Some(known) = self.steps.borrow().get(&rows) {
            return known.clone();
        }
        let recorded = match self.record(model, rows) {
            Ok(recorded) => recorded,
            Err(error) => {
                tracing::warn!(%error, ?rows, "a step cannot be recorded; it is described each time");
                None
            }
        };
        self.steps.borrow_mut().insert(rows, recorded.clone());
        recorded
    }

    /// A recorded step that gives what the plain one does; `None` if there is none.
    fn record(&self, model: &Model, rows: StepRows) -> Result<Option<Recorded>> {
        let Some(recorded) = Recorded::new(model, rows)? else {
            return Ok(None);
        };
        let agrees = self.agrees(model, &recorded, rows)?;
        Ok(match (agrees, rows) {
            (true, StepRows::OfSequences(sequences)) => Some(recorded.compared_draws(model, sequences)?),
            (true, StepRows::OfOne(_)) => Some(recorded),
            (false, _) => None,
        })
    }
}

/// True if every layer keeps its keys and values in a way that a recorded step writes.
fn is_recordable(state: &SequenceState) -> bool {
    let is_plain = |cache: &Cache| matches!(cache, Cache::Plain(_) | Cache::Rotating(_));
    !state.keeps_states() && state.caches.iter().all(is_plain)
}

impl Recorded {
    fn new(model: &Model, rows: StepRows) -> Result<Option<Self>> {
        let sequences = match rows {
            StepRows::OfSequences(count) => count,
            StepRows::OfOne(_) => 1,
        };
        let mut caches: Vec<Vec<Cache>> = (0..sequences).map(|_| model.caches()).collect();
        let mut describe = |tokens: &Tensor| {
            let mut caches: Vec<&mut [Cache]> = caches.iter_mut().map(Vec::as_mut_slice).collect();
            let states = model.forward(&Input::text(tokens), &mut caches);
            let made = states.and_then(|states| match rows {
                StepRows::OfSequences(_) => model.logits(&states),
                StepRows::OfOne(_) => Ok(states),
            });
            made.map_err(|error| match error {
                Error::Unsupported(what) => mlx::Error::Unsupported(what),
                other => mlx::Error::Failed(other.to_string()),
            })
        };
        let Some(step) = kernels().record(rows, &mut describe)? else {
            return Ok(None);
        };
        Ok(Some(Self {
            caches: step.cache_shapes().into(),
            step: Rc::new(RefCell::new(step)),
            draws: false,
            last: Rc::default(),
        }))
    }

    /// The name of the verdict on its logits.
    fn verdict(&self) -> String {
        format!("recorded step {}", self.step.borrow().name())
    }

    /// The same step, which draws tokens if it does that rightly; else their logits are drawn from.
    fn compared_draws(self, model: &Model, sequences: usize) -> Result<Self> {
        let name = format!("{}, drawn tokens", self.verdict());
        let drawing = Self { draws: true, ..self };
        let draws = product_check::was_right(&name) || draws::are_right(model, &drawing, sequences)?;
        match draws {
            true => product_check::remember_right(&name),
            false => tracing::warn!(
                sequences,
                "a recorded step draws other tokens than samplers; they draw them"
            ),
        }
        Ok(Self { draws, ..drawing })
    }

    fn begin(
        &self,
        input: &Tokens,
        states: &mut [&mut SequenceState],
        samplers: Option<&[RowSampler]>,
    ) -> Result<Option<RecordedOutput>> {
        let drawn = |sampler: &RowSampler| *sampler != RowSampler::LIKELIEST;
        let samplers = samplers.filter(|samplers| self.draws || !samplers.iter().any(drawn));
        let counts = samplers.is_some();
        let samplers = match samplers {
            Some(samplers) if samplers.iter().any(drawn) => samplers,
            _ => &[],
        };
        let next: Vec<(u32, u32)> = states.iter().map(|state| place_of_next(state)).collect();
        let goes_on = {
            let mut last = self.last.borrow_mut();
            if last.tokens.len() > 1 {
                if let Some(oldest) = last.tokens.pop_front() {
                    oldest.wait()?;
                }
            }
            let newest = last.tokens.back();
            let of_last =
                matches!((input, newest), (Tokens::Recorded(tokens), Some(newest)) if tokens.are_same(newest));
            of_last && last.next == next
        };
        let tokens = match goes_on {
            true => None,
            false => Some(input.to_u32()?),
        };
        let places = states.iter_mut().map(|state| self.places(&mut state.caches, 1));
        let Some(places) = places.collect::<Result<Option<Vec<_>>>>()? else {
            return Ok(None);
        };
        let mut step = self.step.borrow_mut();
        step.bind(&places)?;
        let tokens: Option<Vec<NextToken>> = tokens.map(|tokens| {
            let all = tokens.into_iter().zip(&next);
            all.map(|(token, (offset, position))| NextToken {
                token,
                offset: *offset,
                position: *position,
            })
            .collect()
        });
        let changed = (self.last.borrow().samplers != samplers).then(|| match samplers {
            [] => vec![RowSampler::LIKELIEST; states.len()],
            some => some.to_vec(),
        });
        let number = step.begin(tokens.as_deref(), changed.as_deref())?;
        states.iter_mut().for_each(|state| count_written(state, 1));
        let next = next
            .iter()
            .map(|(offset, position)| (offset + 1, position + 1))
            .collect();
        let made = RecordedTokens::new(self.step.clone(), number);
        let mut last = self.last.borrow_mut();
        last.tokens.push_back(made.clone());
        last.next = next;
        last.samplers = samplers.iter().map(|sampler| sampler.after()).collect();
        Ok(Some(match counts {
            true => RecordedOutput::Tokens(made),
            false => RecordedOutput::Logits,
        }))
    }

    /// Reads tokens in as many steps as they take. Rows to spare are written behind them, where the next token comes.
    fn read(&self, state: &mut SequenceState, ids: &[u32]) -> Result<bool> {
        let steps = ids.len().div_ceil(READ_AT_ONCE);
        if self.places(&mut state.caches, (steps * READ_AT_ONCE) as i32)?.is_none() {
            return Ok(false);
        }
        for ids in ids.chunks(READ_AT_ONCE) {
            let (offset, position) = place_of_next(state);
            let Some(places) = self.places(&mut state.caches, READ_AT_ONCE as i32)? else {
                return Err(Error::Panicked("a cache lost its room".into()));
            };
            let mut step = self.step.borrow_mut();
            step.bind(&vec![places; READ_AT_ONCE])?;
            let tokens: Vec<NextToken> = (0..READ_AT_ONCE as u32)
                .map(|row| NextToken {
                    token: ids.get(row as usize).copied().unwrap_or(0),
                    offset: offset + row,
                    position: position + row,
                })
                .collect();
            step.begin(Some(&tokens), None)?;
            count_written(state, ids.len());
        }
        // The time of a chunk tells how long the next one may be.
        kernels().wait_for_recorded();
        Ok(true)
    }

    fn places<'a>(&self, caches: &'a mut [Cache], more: i32) -> Result<Option<Vec<CachePlace<'a>>>> {
        let places = caches.iter_mut().zip(&*self.caches);
        let places = places.map(|(cache, shape)| cache.place(*shape, more));
        Ok(places.collect::<mlx::Result<_>>()?)
    }
}

/// Tokens before the next one of a sequence, and its position.
fn place_of_next(state: &SequenceState) -> (u32, u32) {
    let offset = state.offset as u32;
    (offset, offset.saturating_add_signed(state.delta()))
}

fn count_written(state: &mut SequenceState, count: usize) {
    state.offset += count;
    state
        .caches
        .iter_mut()
        .for_each(|cache| cache.count_written(count as i32));
}
