//! Decode steps that are recorded, where the kernels of a device can do that: once for each number of sequences.
//!
//! The plain step stays the rule of what is right. A recorded one is compared with it before it is used, and left out
//! if it differs, or if something in the model cannot be recorded.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use mlx::ops::ids_tensor;
use mlx::recording::{CachePlace, NextToken};
use mlx::tensor::Tensor;

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::kernels::kernels;
use crate::models::{Input, Model};
use crate::products::product_check::relative;
use crate::sequence::tokens::{RecordedTokens, SharedStep, Tokens};
use crate::sequence::{next_logits, SequenceState};

/// The most sequences of a recorded step.
const MAX_SEQUENCES: usize = 32;
/// The largest difference of logits from those of the plain step, as a part of the largest: kernels add in another order.
const TOLERANCE: f32 = 0.05;

/// The recorded steps of a model.
#[derive(Default)]
pub struct RecordedSteps(RefCell<HashMap<usize, Option<Recorded>>>);

/// A recorded step of some number of sequences.
#[derive(Clone)]
struct Recorded {
    step: SharedStep,
    /// The number of the last one that was begun, and what the next one reads if it goes on from there.
    last: Rc<RefCell<(Option<u64>, Vec<(u32, u32)>)>>,
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
        if !are_recordable(states) {
            return Ok(None);
        }
        let Some(recorded) = self.of(model, states.len()) else {
            return Ok(None);
        };
        recorded.begin(input, states)
    }

    /// The logits `[sequences, vocabulary]` of the last step of so many sequences.
    ///
    /// # Errors
    /// If the device fails.
    pub fn logits(&self, sequences: usize) -> Result<Tensor> {
        let recorded = self.0.borrow().get(&sequences).cloned().flatten();
        match recorded {
            Some(recorded) => Ok(recorded.step.borrow_mut().logits()?),
            None => Err(Error::Panicked("a step that was not recorded has no logits".into())),
        }
    }

    /// Records the step of so many sequences, if it was not tried yet.
    pub fn prepare(&self, model: &Model, sequences: usize) {
        self.of(model, sequences);
    }

    fn of(&self, model: &Model, sequences: usize) -> Option<Recorded> {
        if sequences > MAX_SEQUENCES {
            return None;
        }
        if let Some(known) = self.0.borrow().get(&sequences) {
            return known.clone();
        }
        let recorded = match Recorded::new(model, sequences) {
            Ok(recorded) => recorded,
            Err(error) => {
                tracing::warn!(%error, sequences, "a decode step cannot be recorded; it is described each time");
                None
            }
        };
        self.0.borrow_mut().insert(sequences, recorded.clone());
        recorded
    }
}

/// True if every layer keeps its keys and values in a way that a recorded step writes.
fn are_recordable(states: &[&mut SequenceState]) -> bool {
    states.iter().all(|state| {
        let is_plain = |cache: &Cache| matches!(cache, Cache::Plain(_) | Cache::Rotating(_));
        state.offset > 0 && state.caches.iter().all(is_plain)
    })
}

impl Recorded {
    fn new(model: &Model, sequences: usize) -> Result<Option<Self>> {
        let mut caches: Vec<Vec<Cache>> = (0..sequences).map(|_| model.caches()).collect();
        let mut describe = |tokens: &Tensor| {
            let mut caches: Vec<&mut [Cache]> = caches.iter_mut().map(Vec::as_mut_slice).collect();
            let states = model.forward(&Input::text(tokens), &mut caches);
            let logits = states.and_then(|states| model.logits(&states));
            logits.map_err(|error| match error {
                Error::Unsupported(what) => mlx::Error::Unsupported(what),
                other => mlx::Error::Failed(other.to_string()),
            })
        };
        let Some(step) = kernels().record(sequences, &mut describe)? else {
            return Ok(None);
        };
        let recorded = Self {
            step: Rc::new(RefCell::new(step)),
            last: Rc::default(),
        };
        let difference = recorded.difference(model, sequences)?;
        // Also if it is no number.
        if difference.is_nan() || difference > TOLERANCE {
            tracing::warn!(
                difference,
                sequences,
                "a recorded step differs from the plain one, which is used"
            );
            return Ok(None);
        }
        tracing::debug!(difference, sequences, "a recorded step is used");
        Ok(Some(recorded))
    }

    /// By how much the logits of recorded steps differ from those of plain ones, as a part of the largest.
    fn difference(&self, model: &Model, sequences: usize) -> Result<f32> {
        const READ: u32 = 3;
        const COMPARED: u32 = 2;
        let token = |sequence: usize, place: u32| (sequence as u32 * 131 + place * 17 + 5) % model.vocabulary();
        let ids = |place: u32| -> Vec<u32> { (0..sequences).map(|sequence| token(sequence, place)).collect() };
        let mut both = [(); 2].map(|()| {
            (0..sequences)
                .map(|_| SequenceState::new(model, None))
                .collect::<Vec<_>>()
        });
        for states in &mut both {
            for place in 0..READ {
                let mut states: Vec<_> = states.iter_mut().collect();
                mlx::tensor::eval([&next_logits(model, &ids_tensor(&ids(place)), &mut states)?])?;
            }
        }
        let [plain, recorded] = &mut both;
        let mut apart: f32 = 0.0;
        for place in READ..READ + COMPARED {
            let input = Tokens::Computed(ids_tensor(&ids(place)));
            let mut states: Vec<_> = recorded.iter_mut().collect();
            if self.begin(&input, &mut states)?.is_none() {
                return Ok(f32::INFINITY);
            }
            let found = self.step.borrow_mut().logits()?;
            let mut states: Vec<_> = plain.iter_mut().collect();
            let wanted = next_logits(model, &ids_tensor(&ids(place)), &mut states)?;
            apart = apart.max(relative(&found, &wanted)?);
        }
        Ok(apart)
    }

    fn begin(&self, input: &Tokens, states: &mut [&mut SequenceState]) -> Result<Option<RecordedTokens>> {
        let next: Vec<(u32, u32)> = states
            .iter()
            .map(|state| {
                (
                    state.offset as u32,
                    (state.offset as u32).saturating_add_signed(state.delta()),
                )
            })
            .collect();
        let goes_on = {
            let last = self.last.borrow();
            let of_last = matches!(input, Tokens::Recorded(tokens) if tokens.are_of(&self.step, last.0));
            of_last && last.1 == next
        };
        let tokens = match goes_on {
            true => None,
            false => Some(input.to_u32()?),
        };
        let places = states.iter_mut().map(|state| {
            let places = state.caches.iter_mut().map(Cache::place);
            places.collect::<mlx::Result<Option<Vec<CachePlace<'_>>>>>()
        });
        let Some(places) = places.collect::<mlx::Result<Option<Vec<_>>>>()? else {
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
        for state in states {
            state.offset += 1;
            state.caches.iter_mut().for_each(Cache::count_written);
        }
        let next = next
            .iter()
            .map(|(offset, position)| (offset + 1, position + 1))
            .collect();
        *self.last.borrow_mut() = (Some(number), next);
        Ok(Some(RecordedTokens::new(self.step.clone(), number)))
    }
}
