//! Steps that are recorded, where the kernels of a device can do that: decode steps once for each number of sequences,
//! and one that reads the tokens of a short prompt.
//!
//! The plain step stays the rule of what is right. A recorded one is compared with it before a computer uses it the first
//! time, and left out if it differs, or if something in the model cannot be recorded.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use mlx::ops::ids_tensor;
use mlx::recording::{CachePlace, CacheShape, NextToken, StepRows};
use mlx::tensor::Tensor;

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::kernels::kernels;
use crate::models::{Input, Model};
use crate::products::product_check::{self, relative, worse};
use crate::sequence::state::{next_logits, SequenceState};
use crate::sequence::tokens::{RecordedTokens, SharedStep, Tokens};

/// The most sequences of a recorded step.
const MAX_SEQUENCES: usize = 32;
/// Tokens of one sequence that a recorded step reads at once.
const READ_AT_ONCE: usize = 32;
/// The most tokens that are read so: more are read faster at once by MLX's own products.
const MAX_READ: usize = 96;
/// The largest difference of logits from those of the plain step, as a part of the largest, that is always taken:
/// kernels add in another order.
const TOLERANCE: f32 = 0.03;
/// The largest one that is taken if the plain step itself differs much from one way of reading to another.
const MAX_TOLERANCE: f32 = 0.2;

/// With how many tokens a row is compared that differs with the first ones.
const ATTEMPTS: u32 = 8;
/// From the tokens of one of these to those of the next.
const ATTEMPT_TOKENS: u32 = 1009;

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
}

impl RecordedSteps {
    /// Begins the step that reads `input`, one token of each sequence. `None` if it has to be described: nothing was
    /// done then.
    ///
    /// # Errors
    /// If the device fails.
    pub fn begin(
        &self,
        model: &Model,
        input: &Tokens,
        states: &mut [&mut SequenceState],
    ) -> Result<Option<RecordedTokens>> {
        if states.len() > MAX_SEQUENCES || !states.iter().all(|state| is_recordable(state)) {
            return Ok(None);
        }
        let rows = StepRows::OfSequences(states.len());
        match self.of(model, rows) {
            Some(recorded) => self.kept(rows, recorded.begin(input, states)),
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
        let name = format!("recorded step {}", recorded.step.borrow().name());
        if product_check::was_right(&name) {
            return Ok(Some(recorded));
        }
        let compare = |attempt| match rows {
            StepRows::OfSequences(count) => self.differences_of_steps(model, &recorded, count, attempt),
            StepRows::OfOne(_) => differences_of_reading(model, &recorded, attempt),
        };
        let Some(mut differences) = compare(0)? else {
            return Ok(None);
        };
        let largest = |differences: &[f32]| differences.iter().copied().fold(0.0, worse);
        // A mixture may choose another expert, and a softmax another key, where a rounding decides.
        let allowed = match largest(&differences) <= TOLERANCE {
            true => TOLERANCE,
            false => (3.0 * self.noise(model)?).clamp(TOLERANCE, MAX_TOLERANCE),
        };
        // That depends on the tokens. A row that is computed wrongly differs with any.
        for attempt in 1..ATTEMPTS {
            if largest(&differences) <= allowed {
                break;
            }
            let Some(others) = compare(attempt)? else {
                return Ok(None);
            };
            differences.iter_mut().zip(others).for_each(|(row, other)| {
                *row = if other < *row || other.is_nan() { other } else { *row };
            });
        }
        let difference = largest(&differences);
        let agrees = difference <= allowed;
        // It does not if one of them is no number.
        if !agrees {
            tracing::warn!(
                difference,
                allowed,
                ?rows,
                "a recorded step differs from the plain one, which is used"
            );
            return Ok(None);
        }
        tracing::debug!(difference, allowed, ?rows, "a recorded step is used");
        product_check::remember_right(&name);
        Ok(Some(recorded))
    }

    /// By how much the logits of each sequence differ in recorded steps from those that it has alone, as a part of the
    /// largest; `None` if they cannot be made. One of the sequences is so long that its attention has parts.
    fn differences_of_steps(
        &self,
        model: &Model,
        recorded: &Recorded,
        sequences: usize,
        attempt: u32,
    ) -> Result<Option<Vec<f32>>> {
        const LONG: u32 = 150;
        const COMPARED: u32 = 2;
        let first = attempt * ATTEMPT_TOKENS;
        let mut both = [(); 2].map(|()| {
            (0..sequences)
                .map(|_| SequenceState::new(model, None))
                .collect::<Vec<_>>()
        });
        let prompt: Vec<u32> = (first..first + LONG).map(|place| token(model, 0, place)).collect();
        for states in &mut both {
            states[0].prefill(model, &prompt)?;
        }
        let [alone, together] = &mut both;
        let mut apart = vec![0.0; sequences];
        for place in first + LONG..first + LONG + COMPARED {
            let ids: Vec<u32> = (0..sequences).map(|sequence| token(model, sequence, place)).collect();
            let wanted = alone.iter_mut().zip(&ids);
            let wanted = wanted.map(|(state, id)| self.logits_alone(model, state, *id, sequences));
            let wanted = wanted.collect::<Result<Vec<_>>>()?;
            let mut states: Vec<_> = together.iter_mut().collect();
            if recorded
                .begin(&Tokens::Computed(ids_tensor(&ids)), &mut states)?
                .is_none()
            {
                return Ok(None);
            }
            let found = recorded.step.borrow_mut().logits()?;
            for (sequence, (apart, wanted)) in apart.iter_mut().zip(&wanted).enumerate() {
                let found = found.slice(0, sequence as i32, sequence as i32 + 1)?;
                *apart = worse(*apart, relative(&found, &Tensor::from_f32(wanted, found.shape()))?);
            }
        }
        Ok(Some(apart))
    }

    /// The logits of one sequence: by its recorded step if others are compared with it, which was compared with the
    /// plain one, and takes less time.
    fn logits_alone(&self, model: &Model, state: &mut SequenceState, id: u32, sequences: usize) -> Result<Vec<f32>> {
        let input = ids_tensor(&[id]);
        if sequences > 1
            && self
                .begin(model, &Tokens::Computed(input.clone()), &mut [state])?
                .is_some()
        {
            return Ok(self.logits(1)?.to_f32()?);
        }
        Ok(next_logits(model, &input, &mut [state])?.to_f32()?)
    }

    /// By how much the logits of plain steps differ if the same tokens are read one by one and at once.
    fn noise(&self, model: &Model) -> Result<f32> {
        const TOKENS: u32 = 20;
        if let Some(noise) = self.noise.get() {
            return Ok(noise);
        }
        let ids: Vec<u32> = (0..TOKENS).map(|place| token(model, 0, place)).collect();
        let [mut at_once, mut singly] = [(); 2].map(|()| SequenceState::new(model, None));
        at_once.prefill(model, &ids)?;
        ids.iter().try_for_each(|id| singly.prefill(model, &[*id]))?;
        let noise = difference_of_next(model, &mut at_once, &mut singly)?;
        self.noise.set(Some(noise));
        Ok(noise)
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
            last: Rc::default(),
        }))
    }

    fn begin(&self, input: &Tokens, states: &mut [&mut SequenceState]) -> Result<Option<RecordedTokens>> {
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
        let number = step.begin(tokens.as_deref())?;
        states.iter_mut().for_each(|state| count_written(state, 1));
        let next = next
            .iter()
            .map(|(offset, position)| (offset + 1, position + 1))
            .collect();
        let made = RecordedTokens::new(self.step.clone(), number);
        let mut last = self.last.borrow_mut();
        last.tokens.push_back(made.clone());
        last.next = next;
        Ok(Some(made))
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
            step.begin(Some(&tokens))?;
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

/// By how much the logits differ after tokens that this step and the plain one have read, as a part of the largest;
/// `None` if it cannot read them.
fn differences_of_reading(model: &Model, recorded: &Recorded, attempt: u32) -> Result<Option<Vec<f32>>> {
    // Two steps, of which the second has rows to spare.
    let ids: Vec<u32> = (0..READ_AT_ONCE as u32 + 5)
        .map(|place| token(model, 0, attempt * ATTEMPT_TOKENS + place))
        .collect();
    let [mut plain, mut read] = [(); 2].map(|()| SequenceState::new(model, None));
    plain.prefill(model, &ids)?;
    match recorded.read(&mut read, &ids)? {
        true => difference_of_next(model, &mut plain, &mut read).map(|difference| Some(vec![difference])),
        false => Ok(None),
    }
}

/// By how much the logits of the next token differ, as a part of the largest.
fn difference_of_next(model: &Model, wanted: &mut SequenceState, found: &mut SequenceState) -> Result<f32> {
    let next = ids_tensor(&[token(model, 1, 0)]);
    let wanted = next_logits(model, &next, &mut [wanted])?;
    Ok(relative(&next_logits(model, &next, &mut [found])?, &wanted)?)
}

/// A token to compare with.
fn token(model: &Model, sequence: usize, place: u32) -> u32 {
    (sequence as u32 * 131 + place * 17 + 5) % model.vocabulary()
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
