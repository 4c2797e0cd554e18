//! The comparison of a recorded step with the plain one, before it is used.

use mlx::ops::ids_tensor;
use mlx::recording::StepRows;
use mlx::tensor::Tensor;

use crate::error::Result;
use crate::models::Model;
use crate::products::product_check::{self, relative, worse};
use crate::sequence::recorded::{Recorded, RecordedSteps, READ_AT_ONCE};
use crate::sequence::state::{next_logits, SequenceState};
use crate::sequence::tokens::Tokens;

/// The largest difference of logits from those of the plain step, as a part of the largest, that is always taken:
/// kernels add in another order.
const TOLERANCE: f32 = 0.03;
/// The largest one that is taken if the plain step itself differs much from one way of reading to another.
const MAX_TOLERANCE: f32 = 0.2;

/// With how many tokens a row is compared that differs with the first ones.
const ATTEMPTS: u32 = 8;
/// From the tokens of one of these to those of the next.
const ATTEMPT_TOKENS: u32 = 1009;

impl RecordedSteps {
    /// True if a recorded step gives what the plain one does.
    pub(super) fn agrees(&self, model: &Model, recorded: &Recorded, rows: StepRows) -> Result<bool> {
        let name = recorded.verdict();
        if product_check::was_right(&name) {
            return Ok(true);
        }
        let compare = |attempt| match rows {
            StepRows::OfSequences(count) => self.differences_of_steps(model, recorded, count, attempt),
            StepRows::OfOne(_) => differences_of_reading(model, recorded, attempt),
        };
        let Some(mut differences) = compare(0)? else {
            return Ok(false);
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
                return Ok(false);
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
            return Ok(false);
        }
        tracing::debug!(difference, allowed, ?rows, "a recorded step is used");
        product_check::remember_right(&name);
        Ok(true)
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
                .begin(&Tokens::Computed(ids_tensor(&ids)), &mut states, None)?
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
                .begin(model, &Tokens::Computed(input.clone()), &mut [state], None)?
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
pub fn token(model: &Model, sequence: usize, place: u32) -> u32 {
    (sequence as u32 * 131 + place * 17 + 5) % model.vocabulary()
}
